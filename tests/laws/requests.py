"""One example at least of every kind of request, with logs to ask it of; and when two answers are the same."""

import importlib
import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np

import mixope
from mixope.answers.answering import answer
from mixope.answers.resampling import episode_counts_request
from mixope.engines import MemoryEngine
from mixope.estimators.features.estimators import LogRatios, RewardSums
from mixope.estimators.features.scores import ScoreSums
from mixope.estimators.features.value import ValueSums
from mixope.estimators.learned import LearnedValue
from mixope.features import NormalisedBumps
from mixope.inspection.passes import Measure
from mixope.requests.checksum import Checksum
from mixope.requests.episodes import EpisodeShape, score_lookup
from mixope.requests.grouping import Aggregate, Grouped, Grouping, GroupSums
from mixope.requests.probes import make_probes
from mixope.requests.repeats import make_marks
from mixope.requests.request import OfLoggers
from mixope.requests.sample import Sample
from mixope.requests.scores import ScoreTable
from mixope.requests.trajectories import NumberedSteps
from mixope.requests.transitions import BASIS, transition_grouping
from mixope.session.questions import as_estimand
from mixope.session.session import count, sample
from mixope.solvers.fitted_q import FittedQSettings
from mixope.worlds import continuous, linear_quadratic, simulate, walk

ESTIMATORS = ("emp", "dr", "sadl", "mwl", "wis-step", "mis-step", "logged-mean")


@cache
def kinds():
    """Every class of the library that is a request, found by what it can do."""
    found = set()
    for module in pkgutil.walk_packages(mixope.__path__, "mixope."):
        if module.name.endswith("__main__") or ".cli" in module.name:
            continue
        for _, thing in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            methods = all(callable(getattr(thing, name, None)) for name in ("columns", "of"))
            if methods and hasattr(thing, "whole_episodes") and is_dataclass(thing):
                found.add(thing)
    return found


@cache
def id_logs():
    """Ragged episodes that end or are cut, of two loggers; rewards in quarters."""
    laws = np.random.default_rng(4).dirichlet([3, 3], size=(2, 6))
    base = simulate(walk(), list(laws), 24, 9, seed=8)
    return mixope.read({**base, "reward": np.round(4 * base["reward"]) / 4})


@cache
def vector_logs():
    """Two loggers of a linear–quadratic system."""
    return mixope.read(continuous.simulate(linear_quadratic.linear_quadratic(), loggers(), 12, 20, seed=1))


def loggers():
    return linear_quadratic.loggers(4)[2:]


class Noted:
    """An engine that notes what it was asked."""

    name = "noted"

    def __init__(self):
        self.asked, self.inner = [], MemoryEngine()

    def scan(self, logs, requests, expected_rows=None):
        self.asked += requests
        return self.inner.scan(logs, requests, expected_rows)


@cache
def examples():
    """Requests with the logs that they are asked of: those of the counted case, and what estimators ask on features."""
    return {**_of_counts(), **_of_features()}


def _of_counts():
    logs = id_logs()
    seen = count(logs)
    tables = [np.random.default_rng(0).integers(-4, 5, size=(seen.transitions.n_groups, len(BASIS))) / 4.0]
    scores, by_episode = score_lookup(
        seen.transitions,
        seen.groups,
        logs.schema,
        tables,
        0,
        make_probes(seen.transitions, 0),
        (),
        make_marks(seen.transitions),
    )
    totals = Grouping((), (Aggregate("rows", "count"), Aggregate("reward", "sum", ("reward",))))
    found = {
        "transitions": Grouped(transition_grouping(logs.schema)),
        "scores by episode": Grouped(by_episode, scores),
        "score table": ScoreTable(tables[0], seen.numbers),
        "counts by episode": episode_counts_request(seen),
        "total": Grouped(totals),
        "numbered steps": NumberedSteps(seen.numbers),
        "sample of ids": Sample(60),
        "shape of ids": EpisodeShape(),
        "checksum": Checksum(),
    }
    return {name: (request, logs) for name, request in found.items()}


QUICK = LearnedValue(FittedQSettings(width=8, renewals=2, steps=2, batch=16))


def _of_features():
    logs, engine = vector_logs(), Noted()
    seen = sample(logs, engine, NormalisedBumps(5))
    known = dict(zip(seen.labels, loggers(), strict=True))
    target = {"new": linear_quadratic.target()}
    asked = {
        ("average", None, None): ESTIMATORS,
        ("horizon", None, 3): ("lstdq",),
        ("discounted", 0.9, None): ("emp", QUICK),
    }
    for estimand, names in asked.items():
        answer(seen, target, names, estimand=as_estimand(*estimand), loggers=known)
    engine.asked += [Sample(60, 1), Measure(logs.schema.observation)]
    some = {type(each): each for each in engine.asked}
    engine.asked += [OfLoggers(some[kind], seen.labels[:1]) for kind in (ValueSums, ScoreSums, LogRatios, RewardSums)]
    return {f"{type(each).__name__} {number}": (each, logs) for number, each in enumerate(engine.asked)}


def assert_same(left, right, where="", share=1e-12):
    """Equal, sums of floats up to their rounding; episodes and samples in whatever order they came."""
    assert type(left) is type(right), where
    if isinstance(left, GroupSums):
        assert left.grouping == right.grouping, where
        left, right = left.table, right.table
    if hasattr(left, "in_key_order"):
        left, right = left.in_key_order(), right.in_key_order()
    if hasattr(left, "hashes"):
        left, right = (each.rows.take(np.argsort(each.hashes, kind="stable")) for each in (left, right))
    if is_dataclass(left):
        for each in fields(left):
            if not each.name.startswith("_"):
                assert_same(getattr(left, each.name), getattr(right, each.name), f"{where}.{each.name}", share)
    elif hasattr(left, "column_names"):
        assert left.column_names == right.column_names, where
        for name in left.column_names:
            assert_same(left.column(name).to_numpy(), right.column(name).to_numpy(), f"{where}.{name}", share)
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for name in left:
            assert_same(left[name], right[name], f"{where}.{name}", share)
    elif isinstance(left, tuple):
        assert len(left) == len(right), where
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            assert_same(one, other, f"{where}.{number}", share)
    elif isinstance(left, (float, np.ndarray)) and np.asarray(left).dtype.kind == "f":
        size = float(np.abs(np.asarray(right)[np.isfinite(right)]).max(initial=0.0))
        np.testing.assert_allclose(left, right, rtol=share, atol=share * size, err_msg=where)
    else:
        assert np.array_equal(np.asarray(left), np.asarray(right)), where
