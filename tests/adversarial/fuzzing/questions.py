"""Questions drawn at random: estimator, estimand, interval, level, known loggers; some of them make no sense."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import mixope
from mixope.base.errors import MixopeError
from mixope.estimators import REGISTRY
from mixope.features import NormalisedBumps, OneHot, Standardise

from .policies import draw_policy, source

Recipe = dict[str, Any]

ESTIMATORS = tuple(name for name, entry in REGISTRY.items() if not entry.slow)
FEATURES = {"bumps": NormalisedBumps(4), "one-hot": OneHot(), "standard": Standardise()}
ESTIMANDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"gamma": 0.9},
    {"gamma": 0.5, "estimand": "discounted"},
    {"horizon": 3},
    {"horizon": 1},
    {"estimand": "episode"},
    {"estimand": "episode", "gamma": 0.8},
)
WRONG: dict[str, tuple[Any, ...]] = {
    "estimand": ("averages", "discounted", "horizon", 3, None, ""),
    "gamma": (1.0, 0.0, -1, float("nan"), "0.9", 1 - 1e-16, 1e-300, [0.9]),
    "horizon": (0, -3, 10**9, 2.5, "3", float("inf"), 10**25),
    "level": (0.0, 1.0, 95, float("nan"), "0.95", 1 - 1e-16, 1e-9, None),
    "interval": ("no", "clustered", "bootstrap", "blocks", 3, None, ["t"]),
    "replicates": (0, 1, 2, -5, 2.5, "20", None),
    "jobs": (0, -1, 1.5, "2"),
    "engine": ("memory", "embedded", "hadoop", 3),
    "seed": (-1, 2**64, 2**64 - 1, 1.5, "0", True, None),
    "estimator": ("empty", "", 3, None, "kernel", ["emp"]),
    "loggers": ({"old": "no-such-file.csv"}, {"nobody": [[1.0]]}, {}, [], {3: None}, "old"),
    "features": ("bumps", 3),
    "targets": ({}, [], 3, None, [[0.5, 0.5]], {"one": None}, {3: [[1.0]]}),
}
VERBS = ("evaluate", "evaluate", "evaluate", "inspect", "compare", "backtest")


def draw_question(draw: Random, states: str, actions: str) -> Recipe:
    """What is asked of a log with such states and actions."""
    vectors = states in ("vector", "scalar") or actions in ("floats", "vector")
    options: dict[str, Any] = {**draw.choice(ESTIMANDS)}
    if draw.random() < 0.25:
        options["interval"] = draw.choice(("t", "normal", "likelihood", "blocks", "bca", "percentile"))
        options["replicates"] = draw.choice((2, 3, 9))
    if draw.random() < 0.2:
        options["level"] = draw.choice((0.5, 0.8, 0.999))
    for name in draw.sample(tuple(WRONG), draw.choice((0, 0, 0, 1))):
        options[name] = draw.choice(WRONG[name])
    return {
        "verb": draw.choice(VERBS),
        "estimator": "auto" if vectors or draw.random() < 0.2 else draw.choice(ESTIMATORS),
        "target": draw_policy(draw, states, actions, wrong=0.1),
        "loggers": draw_policy(draw, states, actions, wrong=0.1) if draw.random() < 0.3 else None,
        "features": draw.choice(tuple(FEATURES)) if draw.random() < 0.05 else None,
        "options": {"jobs": 1, **options},
    }


def put(logs: Any, asked: Recipe) -> Any:
    """Ask; the answer is a record."""
    options = dict(asked["options"])
    known = asked["loggers"]
    if known is not None:
        options.setdefault("loggers", {"old": source(known), "new": source(known)})
    if asked["features"] is not None:
        options.setdefault("features", FEATURES[asked["features"]])
    target, estimator = source(asked["target"]), options.pop("estimator", asked["estimator"])
    targets = options.pop("targets", {"one": target, "two": target})
    match asked["verb"]:
        case "inspect":
            return mixope.inspect(logs, target, engine=options.get("engine"))
        case "compare":
            names = "all" if estimator == "auto" and _small(logs) else [estimator]
            return mixope.compare(logs, targets, names, **options)
        case "backtest":
            taken = ("loggers", "level", "features", "engine", "seed")
            return mixope.backtest(logs, estimator=estimator, **{k: v for k, v in options.items() if k in taken})
    return mixope.evaluate(logs, target, estimator, **options)


def _small(logs: Any) -> bool:
    try:
        return bool(logs.schema.discrete)
    except (AttributeError, MixopeError):
        return False


def number(value: Any) -> bool:
    """Whether there is a finite number."""
    return value is not None and bool(np.isfinite(value))
