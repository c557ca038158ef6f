"""Logs and what can be done to them without changing the question: shuffle, rename, split, shift and scale rewards."""

from functools import cache

import numpy as np

import mixope
from mixope.environments import from_outcomes, simulate
from mixope.errors import UsageError
from mixope.estimators import REGISTRY
from mixope.evaluation import as_estimand
from mixope.tabular import count, run

S, A = 4, 2
SHIFT, SCALE = 2.5, -3.0
ESTIMANDS = {"average": {}, "discounted": {"gamma": 0.8}, "horizon": {"horizon": 5}}
WORLDS = ("continuing", "ending")
LABELS = ("logger-0", "logger-1")


def model(ends):
    generator = np.random.default_rng(17)
    s, a, t = (i.ravel() for i in np.indices((S, A, S)))
    return from_outcomes(
        "small",
        shape=(S, A),
        state=s,
        action=a,
        next_state=t,
        probability=generator.dirichlet(np.full(S, 2.0), size=(S, A)).ravel(),
        reward=np.round(generator.normal(size=S * A * S), 2),
        start=np.array([0.4, 0.6, 0.0, 0.0]),
        terminated=(t == S - 1) & (s < S - 1) & ends,
    )


def policies():
    """The target and two loggers, all of full support."""
    return np.random.default_rng(23).dirichlet([5, 5], size=(3, S))


@cache
def columns(world):
    _, *loggers = policies()
    return simulate(model(world == "ending"), loggers, 40, 8, seed=3)


def question(rename_states=None, rename_actions=None, labels=LABELS):
    """Target and known loggers, under other names where asked."""
    made = [mixope.TabularPolicy(law, rename_states, rename_actions) for law in policies()]
    return made[0], dict(zip(labels, made[1:], strict=True))


def with_reward(world, change):
    base = columns(world)
    return mixope.read({**base, "reward": change(base["reward"])}), *question()


def shuffled(world):
    base = columns(world)
    order = np.random.default_rng(5).permutation(len(base["step"]))
    return mixope.read({name: values[order] for name, values in base.items()}), *question()


def renamed(world):
    """Strings for ids, in another order than before; episodes and loggers too."""
    base = dict(columns(world))
    states, actions = np.array(["delta", "alpha", "zulu", "bravo"]), np.array(["right", "left"])
    labels = dict(zip(LABELS, ("zoe", "adam"), strict=True))
    base["observation"], base["next_observation"] = states[base["observation"]], states[base["next_observation"]]
    base["action"] = actions[base["action"]]
    base["policy_id"] = np.array([labels[label] for label in base["policy_id"]])
    base["episode_id"] = np.array([f"episode {97 - e}" for e in base["episode_id"]])
    return mixope.read(base), *question(states, actions, tuple(labels.values()))


def split(world):
    """Two tables read together; episodes go to one or the other."""
    base = columns(world)
    half = base["episode_id"] % 3 == 0
    parts = [{name: values[mask] for name, values in base.items()} for mask in (half, ~half)]
    return mixope.read(*parts), *question()


def split_by_logger(world):
    """One table a logger, labelled when they are read."""
    base = columns(world)
    parts = {
        label: {name: values[base["policy_id"] == label] for name, values in base.items() if name != "policy_id"}
        for label in LABELS
    }
    return mixope.read(parts), *question()


VARIANTS = {
    "as it is": lambda world: (mixope.read(columns(world)), *question()),
    "shifted": lambda world: with_reward(world, lambda r: r + SHIFT),
    "scaled": lambda world: with_reward(world, lambda r: r * SCALE),
    "ones": lambda world: with_reward(world, np.ones_like),
    "shuffled": shuffled,
    "renamed": renamed,
    "split": split,
    "split by logger": split_by_logger,
}


@cache
def answers(world, variant, estimand):
    """Every estimator of the registry: its estimate, or the error with which it refuses."""
    logs, target, known = VARIANTS[variant](world)
    counted, found = count(logs), {}
    for name in REGISTRY:
        try:
            (found[name],) = run(
                counted, {"new": target}, [name], estimand=as_estimand(estimand, **_options(estimand)), loggers=known
            )
        except UsageError as refusal:
            found[name] = refusal
    return found


def _options(estimand):
    return {"gamma": None, "horizon": None, **ESTIMANDS[estimand]}
