"""Policies drawn at random, right and wrong ones: arrays, tables, functions, Gaussian laws, and what is no policy."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from mixope import policies
from mixope.policies import read_policies, read_policy

from .faults import FAULTS, axes, spoil

Recipe = dict[str, Any]

STATES = {"ids": list(range(4)), "strings": ["a", "b", "c", "ä d"], "factors": [[0, 0], [0, 1], [1, 0], [1, 1]]}
ACTIONS = {"ints": [0, 1], "strings": ["left", "right"]}


def draw_policy(draw: Random, states: str = "ids", actions: str = "ints", wrong: float = 0.5) -> Recipe:
    """A policy for such states and actions; a share of them has something wrong."""
    forms = ("array", "array", "table", "columns", "function", "constant", "known", "sparse")
    if states in ("vector", "scalar"):
        forms = ("function", "constant", "pairs")
    if actions in ("floats", "vector"):
        forms = ("gaussian", "linear", "squashed", "density")
    faulty = draw.random() < wrong
    form = draw.choice(tuple(FORMS)) if faulty and draw.random() < 0.4 else draw.choice(forms)
    n = draw.choice((0, 1, 1, 2)) if faulty else 0
    return {
        "form": form,
        "states": states if states in STATES else draw.choice(tuple(STATES)),
        "actions": actions if actions in ACTIONS else draw.choice(tuple(ACTIONS)),
        "width": 2 if actions == "vector" else 1,
        "seed": draw.getrandbits(32),
        "faults": [[draw.choice(tuple(FAULTS)), draw.choice(("p", "s", "a")), draw.getrandbits(32)] for _ in range(n)],
        "options": _draw_options(draw) if faulty and draw.random() < 0.4 else {},
    }


def _draw_options(draw: Random) -> dict[str, Any]:
    every: dict[str, tuple[Any, ...]] = {
        "default": ("uniform", 0, "left", [0.5, 0.5], [1.0], "nowhere", 1.5, [0.5, float("nan")], {}),
        "unknown_actions": ("zero", "error", "ignore", None),
        "actions": ([0, 1], ["left", "right"], [0], [0, 0], [0, "a"], 3, [], [[0, 1]], [0.5, 1.5]),
        "columns": ({"prob": "p"}, {"observation": ["x", "y"]}, {"prob": "nowhere"}, {"nothing": "prob"}, "prob", {}),
        "trust": (True, False),
        "outputs": ("logits", "nothing"),
    }
    names = draw.sample(tuple(every), draw.choice((1, 1, 2)))
    return {name: draw.choice(every[name]) for name in names}


def source(recipe: Recipe) -> Any:
    """What a user would hand over as this policy."""
    draw = np.random.default_rng(recipe["seed"])
    parts = {
        "p": draw.dirichlet([1.0, 1.0], 4),
        "s": np.array(STATES[recipe["states"]]),
        "a": np.array(ACTIONS[recipe["actions"]]),
    }
    for name, part, seed in recipe["faults"]:
        parts[part] = spoil(parts[part], name, seed)
    return FORMS[recipe["form"]](parts["p"], parts["s"], parts["a"], recipe)


def make(recipe: Recipe) -> Any:
    """The policy itself."""
    given = source(recipe)
    if recipe["form"] == "several":
        return read_policies(given, **{k: v for k, v in recipe["options"].items() if k in ("default", "columns")})
    return read_policy(given, **recipe["options"])


def _long(p: Any, s: Any, a: Any) -> dict[str, Any]:
    """One line for each state and action; as it comes where the parts do not fit."""
    try:
        states, actions = len(s), len(a)
        rows, columns = np.repeat(np.arange(states), actions), np.tile(np.arange(actions), states)
        picked = np.asarray(s)[rows]
        named = (
            {"observation": picked}
            if picked.ndim == 1
            else {f"observation.{k}": picked[:, i] for i, k in enumerate("xy")}
        )
        return {**named, "action": np.asarray(a)[columns], "prob": np.asarray(p).ravel()}
    except (TypeError, ValueError, IndexError):
        return {"observation": s, "action": a, "prob": p}


def _table(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
    import pyarrow as pa

    columns = _long(p, s, a)
    try:
        return pa.table({name: pa.array(list(values)) for name, values in columns.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return columns


def _sparse(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
    from scipy import sparse

    try:
        return sparse.csr_array(np.asarray(p, dtype=float))
    except (TypeError, ValueError, Warning):
        return p


class Answer:
    """A function of observations that answers with what it holds, cut or repeated to so many rows where it can."""

    def __init__(self, value: Any, name: str = "answer") -> None:
        self.value, self.__name__ = value, name

    def __call__(self, observations: Any) -> Any:
        try:
            return np.resize(self.value, (len(observations), *np.shape(self.value)[1:]))
        except (TypeError, ValueError, ZeroDivisionError):
            return self.value


class Pairs(Answer):
    """The same of observations and actions."""

    def __call__(self, observations: Any, actions: Any) -> Any:  # type: ignore[override]
        return super().__call__(observations)


def _function(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
    return policies.CallablePolicy(Answer(p), a)


def _gaussian(kind: Any) -> Callable[..., Any]:
    def make(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
        mean = np.asarray(p)[:, : recipe["width"]] if axes(p) == 2 else p
        return kind(Answer(mean), 0.5 if recipe["seed"] % 4 else p)

    return make


def _linear(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
    weights = np.asarray(p)[: 2 if recipe["seed"] % 2 else 1, : recipe["width"]] if axes(p) == 2 else p
    return policies.LinearGaussianPolicy(weights, 0.0, 0.5)


class One:
    """A function of one state that answers with an entry, or a row, of what it holds."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, state: Any) -> Any:
        if np.ndim(state) > 1 or (np.ndim(state) and len(state) > 3):
            raise ValueError("one state, please")
        return self.value[crc32(str(np.ravel(state)[:1]).encode()) % len(self.value)]


class Own:
    """A class without a fingerprint that answers with what it holds."""

    def __init__(self, laws: Any, actions: Any) -> None:
        self.laws, self.actions = Answer(laws), actions

    def probs(self, observations: Any) -> Any:
        return self.laws(observations)

    def log_prob(self, observations: Any, actions: Any) -> Any:
        return np.log(np.abs(self.laws(observations)[:, 0]) + 0.1)


class Chooser:
    """A model with ``predict``."""

    def __init__(self, value: Any) -> None:
        self.predict = Answer(value)


def _rule(p: Any, s: Any, a: Any, recipe: Recipe) -> Any:
    """A dict where the parts can be its keys and values."""
    try:
        states = [tuple(state) if np.ndim(state) else state for state in np.asarray(s, dtype=object).tolist()]
        return dict(zip(states, np.resize(np.asarray(a, dtype=object), len(states)).tolist(), strict=True))
    except (TypeError, ValueError, ZeroDivisionError):
        return {0: a}


def _raising(observations: Any) -> Any:
    raise ZeroDivisionError("a policy that fails")


FORMS: dict[str, Callable[[Any, Any, Any, Recipe], Any]] = {
    "array": lambda p, s, a, recipe: p,
    "lists": lambda p, s, a, recipe: p.tolist() if hasattr(p, "tolist") else p,
    "known": lambda p, s, a, recipe: policies.TabularPolicy(p, s, a),
    "choices": lambda p, s, a, recipe: policies.TabularPolicy.deterministic(a, None, None),
    "columns": lambda p, s, a, recipe: _long(p, s, a),
    "several": lambda p, s, a, recipe: {**_long(p, s, a), "policy_id": _long(p, s, a)["action"]},
    "table": _table,
    "sparse": _sparse,
    "function": _function,
    "bare function": lambda p, s, a, recipe: Answer(p),
    "pairs": lambda p, s, a, recipe: policies.CallablePolicy(Pairs(np.full(4, 0.5) if recipe["seed"] % 2 else p)),
    "density": lambda p, s, a, recipe: policies.CallablePolicy(Pairs(np.ravel(p) if axes(p) else p)),
    "constant": lambda p, s, a, recipe: policies.Constant(p[0] if axes(p) == 2 and len(p) else p, a),
    "uniform": lambda p, s, a, recipe: policies.uniform(a),
    "uniform somewhere": lambda p, s, a, recipe: policies.uniform(a, s),
    "gaussian": _gaussian(policies.GaussianPolicy),
    "squashed": _gaussian(policies.SquashedGaussianPolicy),
    "linear": _linear,
    "softened": lambda p, s, a, recipe: policies.Softened(policies.TabularPolicy(p, s, a), recipe["seed"] % 3 / 2),
    "too soft": lambda p, s, a, recipe: policies.Softened(policies.uniform([0, 1]), p),  # type: ignore[arg-type]
    "mixture": lambda p, s, a, recipe: policies.Mixture([policies.TabularPolicy(p, s, a), policies.uniform(a)]),
    "weighted": lambda p, s, a, recipe: policies.Mixture([policies.uniform([0, 1])] * 2, p),
    "rule": _rule,
    "one choice": lambda p, s, a, recipe: One(a),
    "one law": lambda p, s, a, recipe: policies.CallablePolicy(One(p), a),
    "choices of a batch": lambda p, s, a, recipe: policies.CallablePolicy(Answer(a), a),
    "own class": lambda p, s, a, recipe: Own(p, a),
    "model": lambda p, s, a, recipe: Chooser(a if recipe["seed"] % 2 else p),
    "raising": lambda p, s, a, recipe: policies.CallablePolicy(_raising, [0, 1]),
    "nothing": lambda p, s, a, recipe: None,
    "a number": lambda p, s, a, recipe: 3,
    "a class": lambda p, s, a, recipe: dict,
    "no file": lambda p, s, a, recipe: "no-such-file.csv",
    "a module": lambda p, s, a, recipe: "os:system",
    "no module": lambda p, s, a, recipe: "no_such_module:policy",
    "strange text": lambda p, s, a, recipe: "a\0b.csv",
}


def ask(policy: Any, recipe: Recipe) -> None:
    """Everything a policy answers, on observations of its own kind or of another."""
    draw = np.random.default_rng(recipe["seed"] + 1)
    states, actions = np.array(STATES[recipe["states"]]), np.array(ACTIONS[recipe["actions"]])
    if recipe["form"] in ("gaussian", "squashed", "linear", "density"):
        states, actions = draw.normal(size=(4, 2)), draw.uniform(-1, 1, (4, recipe["width"]))
    elif draw.random() < 0.2:
        states = np.array(STATES[("ids", "strings", "factors")[draw.integers(3)]])
    rows = draw.integers(0, len(states), 6)
    taken = actions[rows] if len(actions) == len(states) else actions[draw.integers(0, len(actions), 6)]
    if draw.random() < 0.1:
        taken = spoil(taken, tuple(FAULTS)[draw.integers(len(FAULTS))], int(draw.integers(2**32)))
    repr(policy), policy.fingerprint()
    policy.log_prob(states[rows], taken)
    if hasattr(policy, "probs"):
        policy.probs(states[rows])
    if hasattr(policy, "sample"):
        policy.sample(states[rows], draw)
