"""The average of the logs: what the loggers earned, a reference line and no estimate of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixope.base.errors import UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.features.estimators import logged_mean_on_features
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Solution, Weights
from mixope.requests.problem import Problem
from mixope.requests.transitions import BASIS


@dataclass(frozen=True)
class LoggedMean(BothKinds):
    """Mean reward over all logged rows."""

    name: str = "logged-mean"
    ignores_loggers: ClassVar[bool] = True

    def solve(self, problem: Problem | FeatureProblem) -> Asking[Solution]:
        """Every row counts one."""
        if problem.estimand.kind != "average":
            raise UsageError("'logged-mean' is the mean over the logged steps; it has no discount and no horizon")
        return super().solve(problem)

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """From the totals of the rows."""
        return logged_mean_on_features(problem)

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """From the counts."""
        rows = problem.logged
        value = float(rows.reward.sum() / rows.n_rows)
        scores = np.zeros((rows.n_groups, len(BASIS)))
        scores[:, BASIS.index("rows")] = -value / rows.n_rows
        scores[:, BASIS.index("reward")] = 1.0 / rows.n_rows
        weights = Weights(rows.rows, rows.rows, 1.0)
        reference = Solution(value=value, is_reference=True)
        return scored(problem, CountedSolution(reference, scores, weights, of_logged=True))
