"""Differences from logs and targets, by one estimator: solve all, one scan for the scores of all.

One long episode is cut into blocks, which stand for episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixope.arrays import FloatArray
from mixope.differences.estimates import bias_alerts
from mixope.differences.joint import JointScores, pairwise, rank
from mixope.differences.records import Differences
from mixope.errors import DataError, UsageError
from mixope.estimand import Estimand
from mixope.estimators import AnyEstimator, Solution, TrajectoryEstimator, make
from mixope.intervals import block_scores, few_episodes
from mixope.intervals.blocks import SHORTEST
from mixope.problem import Problem
from mixope.resampling import order_rows
from mixope.tabular import Counted, count, solve_one, sum_scores
from mixope.targets import check_labels, check_level, resolve_policy


def compare_targets(
    logs: Any,
    targets: Mapping[str, Any],
    estimator: str | AnyEstimator = "auto",
    *,
    estimand: Estimand | None = None,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Differences:
    """Differences between all pairs of targets on the same logs (or their first scan), and a ranking."""
    check_level(level)
    if len(targets) < 2:
        raise UsageError(f"a difference needs at least two targets, got {len(targets)}")
    counted = logs if isinstance(logs, Counted) else count(logs)
    asked = estimand or Estimand()
    made = make(counted.automatic[0] if isinstance(estimator, str) and estimator == "auto" else estimator)
    solutions = _solve_all(counted, targets, made, asked, loggers or {}, seed)
    by_episode = sum_scores(counted, list(solutions.values()), seed).scores
    joint = join(counted, solutions, by_episode, made)
    corrects = any(solution.corrects_coverage for solution in solutions.values())
    masses = [(name, solution.uncovered_mass) for name, solution in solutions.items()]
    few = few_episodes(len(by_episode))
    return Differences(
        estimator=made.name,
        estimand=asked,
        level=level,
        n_episodes=len(by_episode),
        pairs=pairwise(joint, level, seed),
        ranking=rank(joint, level, seed),
        alerts=(*bias_alerts(masses, corrects), *([few] if few else [])),
    )


def _solve_all(
    counted: Counted,
    targets: Mapping[str, Any],
    estimator: AnyEstimator,
    estimand: Estimand,
    loggers: Mapping[str, Any],
    seed: int,
) -> dict[str, Solution]:
    known = {str(label): resolve_policy(policy, counted.logs) for label, policy in loggers.items()}
    check_labels(known, counted.transitions.loggers)
    found = {}
    for name, policy in targets.items():
        problem = Problem(counted.transitions, resolve_policy(policy, counted.logs), estimand, known, seed=seed)
        found[name] = solve_one(counted, problem, estimator)
    return found


def join(
    counted: Counted, solutions: Mapping[str, Solution], by_episode: FloatArray, estimator: AnyEstimator
) -> JointScores:
    """Scores side by side: by episode, or by block where there is one episode."""
    for name, solution in solutions.items():
        if solution.no_interval_because or (solution.scores is None and solution.episode_scores is None):
            reason = solution.no_interval_because or "it has no scores"
            raise UsageError(f"'{estimator.name}' has no joint intervals ({name}): {reason}")
    values = np.array([solution.value for solution in solutions.values()])
    clusters = by_episode
    if len(by_episode) < 2:
        clusters = _block_scores(counted, list(solutions.values()), estimator)
    if not (np.all(np.isfinite(clusters)) and np.all(np.isfinite(values))):
        raise DataError("the values or scores of these targets are not finite", hint="look at each with evaluate")
    return JointScores(tuple(solutions), values, clusters)


def _block_scores(counted: Counted, solutions: list[Solution], estimator: AnyEstimator) -> FloatArray:
    if isinstance(estimator, TrajectoryEstimator) or counted.transitions.n_rows < SHORTEST:
        raise DataError(
            "these logs have one episode, which is too short to be cut into blocks"
            if not isinstance(estimator, TrajectoryEstimator)
            else f"'{estimator.name}' weighs whole episodes, and these logs have one",
            expected=f"two episodes, or one of at least {SHORTEST} steps and an estimator with scores by row",
            hint="log more episodes, or use 'emp'",
        )
    rows = order_rows(counted)
    return block_scores(np.stack([rows.scores(s.scores) for s in solutions if s.scores is not None], axis=1))
