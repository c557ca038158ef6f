"""Logs with vector states or actions: passes of moments instead of counts.

    sample → behaviour → calibration → moments → solve → scores by episode

Each is one scan with memory that does not grow with the rows; what several estimators need is computed once a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mixope.assembly import Question, assemble, judge
from mixope.diagnostics.approximation import approximation, correction
from mixope.diagnostics.steadiness import value_is_steady
from mixope.engines import Engine
from mixope.errors import MixopeError, UsageError
from mixope.estimand import Estimand
from mixope.estimate import Estimate, LoggerShare
from mixope.estimators.solution import Solution
from mixope.estimators.vector import Scan, VectorEstimator, VectorProblem, VectorTrajectory, make_vector
from mixope.features import FeatureMap
from mixope.intervals import IntervalChoice, Scores
from mixope.intervals.approximation import widen
from mixope.logs import Logs
from mixope.survey import Survey, survey_episodes
from mixope.targets import check_labels, resolve_policy

AUTOMATIC = ("dr", "emp")
MOST_PIECES = 200_000
"""Steps are kept apart for blocks up to so many; of longer logs, pieces of several steps."""
NO_REFITS = (
    "interval={!r} refits behaviour, ratio and value on resampled episodes: cheap where transitions are counted, but it"
    " would take every pass over vectors again for each replicate; use t, normal, likelihood or blocks here"
)


@dataclass(frozen=True)
class Scanned:
    """Vector logs after the survey."""

    logs: Logs
    engine: Engine
    survey: Survey
    features: FeatureMap | None = None


def scan(logs: Logs, engine: Engine, features: FeatureMap | None = None) -> Scanned:
    """Survey the episodes."""
    return Scanned(logs, engine, survey_episodes(logs, engine)[0], features)


def run_vectors(
    scanned: Scanned,
    targets: Mapping[str, Any],
    estimators: Sequence[str | VectorEstimator],
    *,
    estimand: Estimand,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    interval: IntervalChoice = IntervalChoice(),
    beside: Sequence[str | VectorEstimator] = (),
    seed: int = 0,
    skipped: list[tuple[str, str]] | None = None,
) -> list[Estimate]:
    """Every estimator on every target; see :func:`mixope.tabular.run` for the arguments."""
    if interval.refits:
        raise UsageError(NO_REFITS.format(interval.name))
    logs, survey = scanned.logs, scanned.survey
    known = {str(label): resolve_policy(policy, logs) for label, policy in (loggers or {}).items()}
    check_labels(known, [logger.label for logger in survey.loggers])
    made = [make_vector(name) for name in (*estimators, *beside)]
    blocks = interval.wants_blocks(survey.n_episodes, survey.n_rows, estimand)
    pieces = max(1, survey.n_rows // MOST_PIECES) if blocks and estimand.kind == "average" else None
    sampled = Scan(logs, scanned.engine, seed, piece_steps=pieces)
    problems = [
        (name, VectorProblem(sampled, resolve_policy(target, logs), estimand, known, scanned.features, seed))
        for name, target in targets.items()
    ]
    found = []
    for (name, problem), estimator in product(problems, made):
        try:
            solution = estimator.solve(problem)
        except MixopeError as refusal:
            if skipped is None:
                raise
            skipped.append((estimator.name, str(refusal).splitlines()[0]))
            continue
        question = Question(name, problem.target, estimand, level, seed)
        found.append(_dress(survey, sampled, question, estimator, solution, interval))
    return found


def _dress(
    survey: Survey,
    sampled: Scan,
    question: Question,
    estimator: VectorEstimator,
    solution: Solution,
    interval: IntervalChoice,
) -> Estimate:
    """Interval, with what approximation adds to it, and the checks that vectors have of their own."""
    scores, measures = _scores(sampled, solution, estimator), solution.measures
    sure = judge(survey, question, solution, scores, interval)
    sure = widen(sure, solution.value, measures.get("approximation", 0.0), survey.n_episodes)
    moved = correction(measures, solution.value, sure.interval.width if sure.interval else 0.0)
    checks = (approximation(measures, sure.standard_error), moved)
    further = (*(check for check in checks if check), *value_is_steady(scores.by_episode, survey.episodes))
    dressed = (survey, question, estimator.name, solution, scores.by_episode, _shares(survey, sampled, solution))
    return assemble(*dressed, uncertainty=sure, on_vectors=True, further=further)


def _shares(survey: Survey, scan: Scan, solution: Solution) -> tuple[LoggerShare, ...]:
    """Rows and earnings of every logger; where weights are known by episode, how much of the weight rests on it."""
    weights, totals = solution.episode_weights, survey.episodes
    plain = tuple(LoggerShare(logger.label, logger.rows, logger.mean) for logger in survey.loggers)
    if weights is None or totals is None:
        return plain
    logger = totals.logger if len(weights.total) == len(totals.logger) else np.repeat(totals.logger, scan.pieces)
    masks = [(logger == j).astype(np.float64) for j in range(len(plain))]
    return tuple(
        replace(
            share,
            weight_share=float(weights.total @ mine / weights.total.sum()),
            effective_sample_size=weights.effective_sample_size(mine),
        )
        for share, mine in zip(plain, masks, strict=True)
    )


def _scores(scan: Scan, solution: Solution, estimator: VectorEstimator) -> Scores:
    """By episode; and in pieces too where the score pass was asked for them, which trajectory weights have none of."""
    given = solution.episode_scores
    if given is None or scan.piece_steps is None or isinstance(estimator, VectorTrajectory):
        return Scores(given)
    first = np.cumsum(scan.pieces) - scan.pieces
    return Scores(np.add.reduceat(given, first), given, scan.pieces, scan.piece_steps)
