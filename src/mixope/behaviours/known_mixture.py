"""The mixture of known policies: b(a|s) = Σ_j p̂(j|s) π_j(a|s), with p̂(j|s) the share of logger j among the rows at s.

Uses more than the mixture that is counted from actions alone (the exact π_j), and less than logged propensities
(it does not care which logger drew the action).
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.behaviours.logged import check_positive
from mixope.behaviours.protocol import Inverse
from mixope.errors import UsageError
from mixope.problem import Problem, pair_probabilities
from mixope.statistics.transitions import Transitions


class KnownMixture:
    """b from labels and the loggers' policies; with one logger, its recorded propensities do."""

    name = "known mixture"
    counted = False
    fitted = False

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """Mix the loggers' probabilities by their share of the state's rows."""
        rows = problem.transitions
        share = logger_share(rows, weight)
        behaviour = np.zeros(rows.n_pairs)
        for number, label in enumerate(rows.loggers):
            if share[number].any():
                behaviour += share[number][rows.pair_state] * self._probabilities(problem, number, label)
        check_positive(behaviour[rows.pair], rows.rows)
        return Inverse.of_groups(behaviour[rows.pair], rows)

    def _probabilities(self, problem: Problem, number: int, label: str) -> FloatArray:
        rows = problem.transitions
        if label not in problem.loggers and rows.inverse is not None and len(rows.loggers) == 1:
            return recorded_probabilities(rows, number)
        return pair_probabilities(problem.known_logger(label), rows, f"logger {label!r}")


def logger_share(rows: Transitions, weight: FloatArray) -> FloatArray:
    """p̂(j|s): shape (loggers, states)."""
    counts = np.zeros((len(rows.loggers), rows.n_states))
    np.add.at(counts, (rows.logger, rows.state), rows.rows * weight)
    total = counts.sum(axis=0)
    return np.asarray(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))


def recorded_probabilities(rows: Transitions, number: int) -> FloatArray:
    """A logger's probabilities on the pairs it logged, from recorded propensities that must agree with one another."""
    assert rows.inverse is not None
    assert rows.inverse_squared is not None
    mine = rows.logger == number
    count = sum_by(rows.pair[mine], rows.rows[mine], rows.n_pairs)
    inverse = sum_by(rows.pair[mine], rows.inverse[mine], rows.n_pairs)
    squared = sum_by(rows.pair[mine], rows.inverse_squared[mine], rows.n_pairs)
    seen = count > 0
    mean = inverse[seen] / count[seen]
    if not np.allclose(squared[seen] / count[seen], mean**2, rtol=1e-6):
        raise UsageError(
            f"the recorded propensities of logger {rows.loggers[number]!r} change from row to row in the same state,"
            " so it is not one policy; use 'bch' (logged propensities) or 'emp'"
        )
    result = np.zeros(rows.n_pairs)
    result[seen] = 1.0 / mean
    return result
