"""Small logs of every kind, and what can be done to them without changing the question.

Every world has two loggers of known policies and recorded propensities. A variant is the same log shuffled, renamed,
dealt to two tables, or with other rewards.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import mixope
from mixope.answers.answering import answer
from mixope.behaviours import ClassifierMixture, HeteroscedasticGaussian, known
from mixope.engines import MemoryEngine
from mixope.estimators import REGISTRY
from mixope.estimators.learned import LearnedValue
from mixope.features import ColumnFeatures, NormalisedBumps, OneHot
from mixope.session.questions import as_estimand
from mixope.session.session import look
from mixope.solvers.fitted_q import FittedQSettings
from mixope.worlds import continuous, linear_quadratic, simulate
from random_worlds import random_model
from vector.test_discrete_actions import LOGGERS as PUSHES
from vector.test_discrete_actions import TARGET as PUSH
from vector.test_discrete_actions import columns as pushed

S, A, SHIFT, SCALE = 4, 2, 2.5, -3.0
ESTIMANDS = {
    "average": {},
    "discounted": {"gamma": 0.8},
    "horizon": {"horizon": 5},
    "episode": {"estimand": "episode"},
}
LABELS, OTHER_LABELS = ("logger-0", "logger-1"), ("zoe", "adam")


@dataclass(frozen=True)
class World:
    """Columns; ``policies(names)`` gives the target and the loggers under new names of states and actions."""

    columns: dict
    policies: Callable
    names: dict = field(default_factory=dict)
    features: object = None
    behaviour: object = None
    estimands: tuple = ("average", "discounted", "horizon")
    missing: str | None = None

    @property
    def kind(self):
        return "counts" if self.features is None else "features"

    def estimator(self, name):
        """Cheap where the default would fit several models and choose between them."""
        if name == "fqe":
            return LearnedValue(FittedQSettings(width=16, renewals=4, steps=4, batch=32), jobs=1)
        fitted = name in ("emp", "emp-single", "kl-emp", "dr", "kernel") and self.behaviour is not None
        return REGISTRY[name].make(behaviour=self.behaviour) if fitted else name


# --- the worlds


def small_model(ends):
    generator = np.random.default_rng(17)
    return random_model(generator, [0.4, 0.6, 0.0, 0.0], A, lambda s, t: (t == S - 1) & (s < S - 1) & ends)


def ids(ends, features=None):
    laws = np.random.default_rng(23).dirichlet([5, 5], size=(3, S))
    names = {"observation": np.array(["delta", "alpha", "zulu", "bravo"]), "action": np.array(["right", "left"])}

    def policies(names):
        return [mixope.TabularPolicy(law, names.get("observation"), names.get("action")) for law in laws]

    behaviour = None if features is None else ClassifierMixture(GaussianNB(), features=one_hot)
    columns = simulate(small_model(ends), laws[1:], 40, 8, seed=3)
    if features is None:
        return World(columns, policies, names, estimands=tuple(ESTIMANDS) if ends else tuple(ESTIMANDS)[:3])
    asked = ("discounted", "episode") if ends else ("average", "horizon")
    return World(columns, policies, names, features, behaviour, asked)


def one_hot(states):
    """Of ids under either name."""
    known = {"delta": 0, "alpha": 1, "zulu": 2, "bravo": 3}
    return np.eye(S)[[known.get(s, s) for s in np.asarray(states).tolist()]]


def factors():
    """A torus walk whose moves add up by factor; one action of every third state is never logged."""
    generator, (rows, wide), actions = np.random.default_rng(2), (4, 3), 3
    states = np.array([[x, y] for x in range(rows) for y in range(wide)])
    allowed = np.ones((len(states), actions))
    allowed[::3, 2] = 0.0
    loggers = [allowed / allowed.sum(axis=1, keepdims=True), allowed * [1.0, 2.0, 1.0]]
    loggers[1] /= loggers[1].sum(axis=1, keepdims=True)
    steps, lines = 12, []
    for episode in range(48):
        x, y = int(generator.integers(rows)), 0
        for step in range(steps):
            law = loggers[episode % 2][x * wide + y]
            a, moved = int(generator.choice(actions, p=law)), generator.random() < 0.8
            after = (x + int(moved and a == 0)) % rows, (y + int(moved and a == 1)) % wide
            reward = 0.5 * x - y + 0.25 * a + generator.normal(scale=0.3)
            lines.append((episode, step, x, y, a, reward, *after, LABELS[episode % 2], law[a]))
            x, y = after
    named = ("episode_id", "step", "observation.row", "observation.column", "action", "reward")
    named += ("next_observation.row", "next_observation.column", "policy_id", "action_prob")
    columns = {name: np.array(values) for name, values in zip(named, zip(*lines, strict=True), strict=True)}
    laws = [generator.dirichlet([3, 3, 1], size=len(states)), *loggers]

    def policies(names):
        levels = (names.get("observation.row", np.arange(rows)), names.get("observation.column", np.arange(wide)))
        parts = np.stack([levels[0][states[:, 0]], levels[1][states[:, 1]]], axis=1)
        return [mixope.TabularPolicy(law, parts, names.get("action"), factors=("row", "column")) for law in laws]

    names = {
        "observation.row": np.array(["n3", "n1", "n2", "n0"]),
        "observation.column": np.array(["c1", "c2", "c0"]),
        "action": np.array(["up", "aside", "still"]),
    }
    return World({**columns, "terminated": np.zeros(len(lines), dtype=bool)}, policies, names)


def discrete_actions():
    """Vector states and two actions."""
    columns = dict(pushed(1, 16, 20))
    columns["policy_id"] = np.where(columns["policy_id"] == "timid", *LABELS)

    def policies(names):
        return [mixope.CallablePolicy(p, actions=list(names.get("action", (0, 1)))) for p in (PUSH, *PUSHES)]

    names = {"action": np.array(["left", "right"])}  # landmarks are drawn from rows that are sorted by action too
    return World(columns, policies, names, NormalisedBumps(8), ClassifierMixture(GaussianNB()))


def continuous_actions():
    laws = [linear_quadratic.target(), *linear_quadratic.loggers(4)[2:]]
    columns = continuous.simulate(linear_quadratic.linear_quadratic(), laws[1:], 16, 20, seed=1)
    return World(columns, lambda names: laws, {}, NormalisedBumps(8), HeteroscedasticGaussian())


def mixed():
    """Wards, a habit that is sometimes not recorded, and a number that is sometimes not measured."""
    generator, steps, lines = np.random.default_rng(8), 12, []

    def chance(ward, x, urge):
        return 1 / (1 + np.exp(-urge - 0.5 * (ward == 2) - 0.4 * np.nan_to_num(x)))

    def measured(x):
        return np.nan if generator.random() < 0.15 else x

    for episode in range(40):
        ward, x, habit = int(generator.integers(3)), generator.normal(), [None, "yes", "no"][generator.integers(3)]
        seen = measured(x)
        for step in range(steps):
            logger = episode % 2
            p = float(chance(ward, seen, (-0.4, 0.5)[logger]))
            a = int(generator.random() < p)
            after = ward if generator.random() < 0.6 else int(generator.integers(3))
            x_after = 0.5 * x + 0.3 * a + 0.3 * generator.normal()
            reward = x - 0.5 * (ward == 1) + 0.2 * (habit == "yes") + 0.3 * a + 0.2 * generator.normal()
            seen_after, taken = measured(x_after), (1 - p, p)[a]
            here, there = (ward, habit, seen), (after, habit, seen_after)
            lines.append((episode, step, *here, a, reward, *there, LABELS[logger], taken))
            ward, x, seen = after, x_after, seen_after
    named = ("episode_id", "step", "observation.ward", "observation.habit", "observation.x", "action", "reward")
    named += ("next_observation.ward", "next_observation.habit", "next_observation.x", "policy_id", "action_prob")
    columns = {name: np.array(values) for name, values in zip(named, zip(*lines, strict=True), strict=True)}

    def policies(names):
        wards, actions = names.get("observation.ward", np.arange(3)), list(names.get("action", (0, 1)))

        def policy(urge):
            def law(states):
                p = chance(np.where(states["ward"] == wards[2], 2, 0), states["x"], urge)
                return np.stack([1 - p, p], axis=1)

            return mixope.CallablePolicy(law, actions=actions)

        return [policy(urge) for urge in (1.0, -0.4, 0.5)]

    names = {"observation.ward": np.array(["north", "east", "south"]), "action": np.array(["give", "hold"])}
    columns["terminated"] = np.zeros(len(lines), dtype=bool)
    return World(columns, policies, names, ColumnFeatures(8), ClassifierMixture(GaussianNB()), missing="keep")


WORLDS = {
    "mixed": mixed,
    "ids": lambda: ids(False),
    "ids that end": lambda: ids(True),
    "factors": factors,
    "one-hot ids": lambda: ids(False, OneHot()),
    "one-hot ids that end": lambda: ids(True, OneHot()),
    "discrete actions": discrete_actions,
    "continuous actions": continuous_actions,
}
TINY = "continuous actions"
"""The world in which slow estimators are tried."""


@cache
def world(name):
    return WORLDS[name]()


def takers(name):
    """The estimators that take such a world; slow ones in the tiny world alone, and networks where JAX is tested."""
    usable = {n: e for n, e in REGISTRY.items() if n != "emp-neural" and (not e.slow or name == TINY)}
    return [n for n, e in usable.items() if world(name).kind in e.takes]


# --- what can be done to them


def with_reward(columns, change):
    return {**columns, "reward": change(columns["reward"])}


def renamed(columns, names):
    """Other names in another order for states, actions and loggers."""
    found = {}
    for name, values in columns.items():
        new = names.get(name.removeprefix("next_"))
        found[name] = values if new is None else new[values]
    return {**found, "policy_id": np.where(columns["policy_id"] == LABELS[0], *OTHER_LABELS)}


def rearranged(columns):
    """Rows shuffled, columns reversed, and episodes dealt to two tables."""
    order = np.random.default_rng(5).permutation(len(columns["step"]))
    third = (columns["episode_id"] % 3 == 0)[order]
    return [{name: columns[name][order][mask] for name in reversed(columns)} for mask in (third, ~third)]


VARIANTS = {
    "as it is": lambda c: [c],
    "again": lambda c: [c],
    "shifted": lambda c: [with_reward(c, lambda r: r + SHIFT)],
    "scaled": lambda c: [with_reward(c, lambda r: r * SCALE)],
    "ones": lambda c: [with_reward(c, np.ones_like)],
    "rearranged": rearranged,
}


@cache
def answers(name, variant, estimand):
    """Every estimator that takes the world: its estimate, or the words with which it refuses."""
    here = world(name)
    names, labels, tables = {}, LABELS, None
    if variant == "renamed":
        names, labels, tables = here.names, OTHER_LABELS, [renamed(here.columns, here.names)]
    target, *loggers = here.policies(names)
    logs = mixope.read(*(tables or VARIANTS[variant](here.columns)), missing=here.missing)
    seen, refusals = look(logs, MemoryEngine(threads=1), here.features), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "BY_ROWS", {})  # who acted where: by shares, not by the best of several classifiers
        found = answer(
            seen,
            {"new": target},
            [here.estimator(n) for n in takers(name)],
            estimand=as_estimand(**{"estimand": "average", "gamma": None, "horizon": None, **ESTIMANDS[estimand]}),
            loggers=dict(zip(labels, loggers, strict=True)),
            skipped=refusals,
        )
    return {e.estimator: e for e in found} | {refused.estimator: refused.reason for refused in refusals}
