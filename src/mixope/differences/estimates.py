"""Differences from estimates of one run: each keeps its scores by episode, so nothing is read again.

Targets are also set against what the loggers really earned, like with like: a mean over rows is a long-run average
only if every episode ran from its start to a true end, and a mean over T steps only if every one was cut there. Against
a discounted value nothing in the logs can be set.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixope.diagnostics import Verdict
from mixope.differences.joint import JointScores, against, logged_means, pairwise, rank
from mixope.differences.records import Difference, Differences
from mixope.estimate import Estimate
from mixope.intervals import few_episodes

UNCOVERED = 0.01
"""Target mass outside the logs above which a difference is said to be biased."""
_APPROXIMATE = "{}: an approximation error of about {:.3g} is part of its own interval and not of its differences'"
MOST_LOGGERS = 20
"""With more loggers than this, targets are set against none: a table of all of them says nothing to a reader."""


def differences_of(estimates: Sequence[Estimate], level: float, seed: int = 0) -> tuple[Differences, ...]:
    """One record for each estimator that has scores for two targets or more, in the order of the estimators."""
    made = (_one(group, level, seed) for group in _by_estimator(estimates))
    return tuple(found for found in made if found is not None)


def _by_estimator(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """The targets of each estimator; two estimators under one name are told apart by their order."""
    seen: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, int], list[Estimate]] = {}
    for estimate in estimates:
        if estimate.verdict is Verdict.REFERENCE:
            continue
        turn = seen.get((estimate.target, estimate.estimator), 0)
        seen[estimate.target, estimate.estimator] = turn + 1
        groups.setdefault((estimate.estimator, turn), []).append(estimate)
    return list(groups.values())


def _one(group: list[Estimate], level: float, seed: int) -> Differences | None:
    usable = [e for e in group if _usable(e)]
    if len(usable) < 2:
        return None
    first = usable[0]
    columns = [e.scores for e in usable if e.scores is not None]
    joint = JointScores(tuple(e.target for e in usable), np.array([e.value for e in usable]), np.stack(columns, axis=1))
    loggers = _against_loggers(first, joint, level, seed)
    left_out = [f"{e.target}: left out, {e.no_interval_because}" for e in group if not _usable(e)]
    return Differences(
        estimator=first.estimator,
        estimand=first.estimand,
        level=level,
        n_episodes=first.n_episodes,
        pairs=pairwise(joint, level, seed),
        ranking=rank(joint, level, seed),
        loggers=loggers,
        alerts=(
            *left_out,
            *bias_alerts([(e.target, e.uncovered_mass) for e in usable], any(e.corrects_coverage for e in usable)),
            *(_APPROXIMATE.format(e.target, off) for e in usable if (off := e.measures.get("approximation", 0.0)) > 0),
            *(f"{e.target}: {e.verdict}, and so is every difference with it" for e in usable if _refused(e)),
            *([few] if (few := few_episodes(first.n_episodes)) else []),
        ),
    )


def _usable(estimate: Estimate) -> bool:
    return estimate.scores is not None and len(estimate.scores) > 1 and bool(np.isfinite(estimate.value))


def _refused(estimate: Estimate) -> bool:
    return estimate.verdict is Verdict.UNSUPPORTED


def _against_loggers(estimate: Estimate, joint: JointScores, level: float, seed: int) -> tuple[Difference, ...]:
    """Every target less what each logger earned, of those whose mean is the same quantity."""
    totals, asked = estimate.episodes, estimate.estimand
    if totals is None or len(estimate.loggers) > MOST_LOGGERS or len(totals.rows) != len(joint.scores):
        return ()
    alike = {}
    for number, logger in enumerate(estimate.loggers):
        mine = totals.of(number)
        if mine.whole if asked.kind == "average" else asked.horizon is not None and mine.horizon == asked.horizon:
            alike[logger.label] = number
    return against(joint, logged_means(totals, alike, asked.horizon), level, seed) if alike else ()


def bias_alerts(masses: Sequence[tuple[str, float]], corrects_coverage: bool) -> tuple[str, ...]:
    """A sentence for every target with uncovered mass."""
    rests = (
        "there the difference rests on the value model"
        if corrects_coverage
        else "the difference can be off by more than its interval shows"
    )
    return tuple(
        f"{name}: {mass:.1%} of the target's mass is on actions that were never logged; {rests}"
        for name, mass in masses
        if mass > UNCOVERED
    )
