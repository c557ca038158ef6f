"""Importance sampling by episodes on vectors: the tabular rules with densities.

ρ from recorded propensities where all rows have them, else from the loggers' known policies, else from a density
fitted to each logger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from mixope.arrays import FloatArray
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.per_logger_rows import PerLoggerRows
from mixope.estimators.solution import Solution
from mixope.estimators.trajectory import Trajectory
from mixope.estimators.vector.defaults import default_behaviour
from mixope.estimators.vector.problem import VectorProblem
from mixope.statistics.rows import Rows
from mixope.statistics.trajectories import Trajectories, running_sums

LogProb = Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class VectorTrajectory:
    """A trajectory rule with densities."""

    rule: Trajectory

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def solve(self, problem: VectorProblem) -> Solution:
        """One pass over whole episodes."""
        data = self._balanced(problem) if self.rule.balance else self._own(problem)
        return self.rule.weigh(problem.estimand, data)

    def _own(self, problem: VectorProblem) -> Trajectories:
        sample = problem.scan.sample
        recorded = bool(np.isfinite(sample.propensity).all()) or set(problem.labels) <= set(problem.loggers)
        behaviour = LoggedRows(problem.loggers) if recorded else PerLoggerRows(default_behaviour(problem))
        fitted = problem.fitted(behaviour, f"own {recorded}")

        def log_ratio(rows: Rows) -> FloatArray:
            return problem.target.log_prob(rows.observation, rows.action) - fitted.log_prob(rows)

        return problem.scan.trajectories(self.name, log_ratio)

    def _balanced(self, problem: VectorProblem) -> Trajectories:
        """log Π π − log Σ_k β_k Π π_k, differenced so that the pass can cumulate it."""
        laws = [_law(problem, label) for label in problem.labels]
        sample = problem.scan.sample
        begun = np.array([sample.start[sample.logger == label].sum() for label in problem.labels], dtype=np.float64)
        shares = begun / begun.sum() if begun.all() else np.full(len(begun), 1.0 / len(begun))

        def log_ratio(rows: Rows) -> FloatArray:
            assert rows.episode is not None
            cumulated = np.stack([running_sums(law(rows), rows.episode) for law in laws])
            mixed = logsumexp(cumulated + np.log(shares)[:, None], axis=0)
            first = np.append(True, rows.episode[1:] != rows.episode[:-1])
            step = mixed - np.where(first, 0.0, np.append(0.0, mixed[:-1]))
            return np.asarray(problem.target.log_prob(rows.observation, rows.action) - step)

        return problem.scan.trajectories(self.name, log_ratio)


def _law(problem: VectorProblem, label: str) -> LogProb:
    """log π_k of every row: known, or fitted on that logger's rows."""
    if label in problem.loggers:
        policy = problem.loggers[label]
        return lambda rows: policy.log_prob(rows.observation, rows.action)
    mine = (problem.scan.sample.logger == label).astype(np.float64)
    fitted = problem.fitted(default_behaviour(problem), f"law {label}", mine)
    return fitted.log_prob
