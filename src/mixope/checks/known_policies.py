"""Does what is known of the loggers fit the actions that they logged?

An estimator that divides by a behaviour tests it on the way (Σ(ρ − 1) before calibration). One that counts it does not,
though policies were given or propensities recorded: then the actions of every logger are held against its policy by
Pearson's χ²,

    Σ (n(s,a) − n(s) π_j(a|s))² / (n(s) π_j(a|s))

over the pairs that are expected at least five times; all others of a logger are one. Recorded propensities p may differ
from row to row. Σ 1/p over the rows of (s, a) should be n(s), and with p̄ = Σ 1/p / Σ 1/p² in the place of π_j(a|s)

    Σ (Σ 1/p − n(s))² p̄ / n(s)

is the same sum where p is the same for all rows, with mean Σ (1 − p̄) whichever actions are in it, which stands in for
its degrees of freedom. Where p changes within the rows of a pair, because the logger was changed or learned, the rows
that were taken need not show how small it was: an action that was taken often while it was likely may have no row from
when it was not. There 1/p̄ is no less than Σ 1/p² / Σ 1/p over all rows of the logger, the mean of 1/p over everything
that it could have done. What is expected less than five times to happen is left out: nobody recorded the propensity of
an action that was not taken. What is expected less than five times not to happen is one sum, and counts where something
else was done too often: propensities of 1 in every row do not pass. Both see labels that changed places. Policies also
see actions under each other's names where all loggers share the mistake; propensities do only if they were looked up by
the wrong name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.tails import normal_of_chi_squared
from mixope.policies.protocol import Policy
from mixope.requests.problem import Problem, pair_probabilities
from mixope.requests.transitions import Transitions

LEAST = 5.0
"""Rows that must be expected of a pair for it to be judged alone."""
CHANGES = 0.01
"""The variance of 1/p within pairs, by its mean square, above which a logger's propensities change from row to row."""


@dataclass(frozen=True)
class Off:
    """How far probabilities are off: in standard deviations, which grow with the rows, and by which share of them.

    The share is √((χ² − ν)/n), about the relative error of a typical probability.
    """

    deviations: float
    share: float

    @classmethod
    def of(cls, statistic: float, degrees: float, rows: float) -> Off:
        """Of χ² over that many rows."""
        share = float(np.sqrt(max(statistic - degrees, 0.0) / max(rows, 1.0)))
        return cls(normal_of_chi_squared(statistic, degrees), share)


def misfit_of_policies(problem: Problem) -> Off | None:
    """Over all known loggers that logged anything."""
    labels = problem.transitions.loggers
    known = {labels.index(label): policy for label, policy in problem.loggers.items() if label in labels}
    parts = [_of_logger(problem, number, policy) for number, policy in known.items()]
    if not parts:
        return None
    rows = problem.transitions
    n = float(rows.rows[np.isin(rows.logger, list(known))].sum())
    return Off.of(sum(part[0] for part in parts), sum(part[1] for part in parts), n)


def _of_logger(problem: Problem, number: int, policy: Policy) -> tuple[float, float]:
    """The statistic and its degrees of freedom."""
    rows = problem.transitions
    taken = sum_by(rows.pair, rows.rows * (rows.logger == number), rows.n_pairs)
    visits = sum_by(rows.pair_state, taken, rows.n_states)
    expected = visits[rows.pair_state] * pair_probabilities(policy, rows, f"logger {rows.loggers[number]!r}")
    judged = expected >= LEAST
    rare = visits.sum() - float(expected[judged].sum())
    # an action that should never be taken counts as if it were expected once
    statistic = float(np.sum((taken[judged] - expected[judged]) ** 2 / expected[judged]))
    statistic += (float(taken[~judged].sum()) - rare) ** 2 / max(rare, 1.0)
    covered = sum_by(rows.pair_state[judged], expected[judged], rows.n_states)
    complete = np.count_nonzero((visits > 0) & (covered > visits * (1 - 1e-9)))
    return statistic, float(np.count_nonzero(judged) - complete + (rare >= 1.0))


def misfit_of_propensities(problem: Problem) -> Off | None:
    """Over all loggers and states whose rows have propensities."""
    rows = problem.transitions
    if rows.inverse is None or rows.inverse_squared is None:
        return None
    sums = rows.rows, rows.inverse, rows.inverse_squared
    statistic = degrees = 0.0
    for number in range(len(rows.loggers)):
        mine = np.flatnonzero(rows.logger == number)
        found = _of_recorded(rows, *(sum_by(rows.pair[mine], each[mine], rows.n_pairs) for each in sums))
        statistic, degrees = statistic + found[0], degrees + found[1]
    return Off.of(statistic, degrees, float(rows.rows.sum())) if degrees > 0 else None


def _of_recorded(rows: Transitions, taken: FloatArray, inverse: FloatArray, squared: FloatArray) -> tuple[float, float]:
    """One logger's statistic, from n, Σ 1/p and Σ 1/p² of every pair, and its degrees of freedom.

    A state in which a propensity is missing says nothing.
    """
    state = rows.pair_state
    visits = sum_by(state, taken, rows.n_states)
    known = np.isfinite(sum_by(state, inverse, rows.n_states))[state] & (taken > 0)
    mean = np.divide(inverse, squared, out=np.zeros(rows.n_pairs), where=known)
    constant = float(np.sum(inverse[known] ** 2 / taken[known]))
    if float(squared[known].sum()) > (1.0 + CHANGES) * constant:
        mean = np.minimum(mean, inverse[known].sum() / squared[known].sum())
    expected = visits[state] * mean
    judged = known & (np.minimum(expected, visits[state] - expected) >= LEAST)
    n, p = visits[state[judged]], mean[judged]
    statistic, degrees = float(np.sum((inverse[judged] - n) ** 2 * p / n)), float(np.sum(1.0 - p))
    sure = known & ~judged & (mean > 0.5)
    n, p = visits[state[sure]], mean[sure]
    missed = float(np.sum(n - inverse[sure]))  # how often something else was done instead
    if missed > 0:
        statistic += missed**2 / max(float(np.sum(n * (1.0 - p) / p)), 1.0)
    return statistic, degrees + float(missed > 0)
