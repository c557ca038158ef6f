"""Several targets, several estimators, one set of scans; and which target is better.

The estimates keep their scores by episode, so differences between targets cost no further scan (one long episode, which
is cut into blocks, costs one). The outer band of a target comes from the counts and is solved once a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixope.diagnostics import Verdict
from mixope.differences import Differences, compare_targets, differences_of
from mixope.engines import Engine
from mixope.errors import MixopeError, UsageError
from mixope.estimand import Estimand, Kind
from mixope.estimate import Comparison, Estimate
from mixope.estimators import REGISTRY
from mixope.evaluation import answer, as_estimand, automatic, look
from mixope.features import FeatureMap
from mixope.intervals import IntervalChoice, choose_interval
from mixope.partial import outer_band
from mixope.tabular import Counted


def compare(
    logs: Any,
    targets: Mapping[str, Any],
    estimators: str | Sequence[Any] = ("auto",),
    *,
    estimand: Kind | Estimand = "average",
    gamma: float | None = None,
    horizon: int | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    features: FeatureMap | None = None,
    interval: str | IntervalChoice = "auto",
    replicates: int = 500,
    jobs: int | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
) -> Comparison:
    """Evaluate every target with every estimator on the same logs, and rank the targets.

    ``estimators="all"`` takes every estimator that these logs and this estimand allow; ``skipped`` says which do not
    apply and why. With two targets or more, ``differences`` has their differences with joint intervals. ``interval``,
    ``replicates`` and ``jobs`` are those of :func:`mixope.evaluate`; an estimator that has no such interval says why.
    """
    choice = choose_interval(interval, replicates, jobs)
    if not targets:
        raise UsageError("no target was given; pass a mapping of names to policies")
    seen = look(logs, engine, features)
    every = isinstance(estimators, str) and estimators == "all"
    wanted = [estimators] if isinstance(estimators, str) else list(estimators)
    names = list(REGISTRY) if every else list(dict.fromkeys(automatic(seen)[0] if _auto(e) else e for e in wanted))
    skipped: list[tuple[str, str]] | None = [] if every else None
    question = as_estimand(estimand, gamma, horizon)
    options: dict[str, Any] = {"estimand": question, "level": level, "loggers": loggers, "seed": seed}
    found = answer(seen, targets, names, interval=choice, **options, skipped=skipped)
    differences: tuple[Differences, ...] = ()
    if isinstance(seen, Counted):
        found = _banded(found, seen, targets)
    if len(targets) > 1:
        differences = _differences(found, seen, targets, names, options)
    return Comparison(tuple(found), tuple(dict.fromkeys(skipped or ())), differences)


def _auto(estimator: Any) -> bool:
    return isinstance(estimator, str) and estimator == "auto"


def _banded(found: list[Estimate], seen: Counted, targets: Mapping[str, Any]) -> list[Estimate]:
    """With the outer band of each target that is not wholly covered."""
    open_ended = [e for e in found if e.uncovered_mass + e.outside_mass > 0 and e.verdict is not Verdict.REFERENCE]
    bands = {
        name: outer_band(seen, targets[name], estimand=open_ended[0].estimand)
        for name in dict.fromkeys(e.target for e in open_ended)
    }
    return [
        replace(e, band=(bands[e.target].low, bands[e.target].high)) if any(e is o for o in open_ended) else e
        for e in found
    ]


def _differences(
    found: list[Estimate], seen: Any, targets: Mapping[str, Any], names: Sequence[Any], options: dict[str, Any]
) -> tuple[Differences, ...]:
    """From the scores that the estimates keep; of one long episode, from its blocks."""
    counted = isinstance(seen, Counted)
    if counted and found and found[0].n_episodes < 2:
        return _by_blocks(seen, targets, names, options)
    return differences_of(found, options["level"], options["seed"])


def _by_blocks(
    seen: Counted, targets: Mapping[str, Any], names: Sequence[Any], options: dict[str, Any]
) -> tuple[Differences, ...]:
    """One record for each estimator that blocks allow."""
    made = []
    for name in names:
        try:
            made.append(compare_targets(seen, targets, name, **options))
        except MixopeError:  # no scores, or too few rows for blocks: the estimates themselves have said so
            continue
    return tuple(made)
