"""Logs with vector states or actions: passes of moments instead of counts.

    sample → behaviour → calibration → moments → solve → scores by episode

Each is one scan with memory that does not grow with the rows; what several estimators need is computed once a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from mixope.assembly import Question, assemble
from mixope.engines import Engine
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimate import Estimate, LoggerShare
from mixope.estimators.vector import Scan, VectorEstimator, VectorProblem, make_vector
from mixope.features import FeatureMap
from mixope.logs import Logs
from mixope.survey import Survey, survey_episodes
from mixope.targets import check_labels, resolve_policy

AUTOMATIC = ("dr", "emp")


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
    seed: int = 0,
    skipped: list[tuple[str, str]] | None = None,
) -> list[Estimate]:
    """Every estimator on every target; see :func:`mixope.tabular.run` for the arguments."""
    logs, survey = scanned.logs, scanned.survey
    known = {str(label): resolve_policy(policy, logs) for label, policy in (loggers or {}).items()}
    check_labels(known, [logger.label for logger in survey.loggers])
    made = [make_vector(name) for name in estimators]
    sampled = Scan(logs, scanned.engine, seed)
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
        shares = tuple(LoggerShare(logger.label, logger.rows, logger.mean) for logger in survey.loggers)
        scores = solution.episode_scores
        found.append(assemble(survey, question, estimator.name, solution, scores, shares, on_vectors=True))
    return found
