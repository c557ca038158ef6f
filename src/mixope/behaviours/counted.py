"""Counted behaviours: maximum likelihood in the tabular case is the frequency of each action in each state.

``CountedMixture`` pools all loggers, which is the idea of EMP:  π̂₀(a|s) = Σ c n(s,a) / Σ c n(s).
``CountedPerLogger`` counts each logger's rows apart:  π̂_j(a|s) = n_j(s,a) / n_j(s).
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.behaviours.protocol import Inverse
from mixope.problem import Problem


class CountedMixture:
    """b = π̂₀, counted over the pooled (and possibly re-weighted) rows."""

    name = "mixture"
    counted = True
    fitted = True

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """One frequency a logged pair."""
        rows = problem.transitions
        return Inverse.of_groups(frequency(rows.state, rows.pair, rows.rows * weight), rows)


class CountedPerLogger:
    """b = π̂_j, counted over the rows of each logger."""

    name = "per logger"
    counted = True
    fitted = True

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """One frequency a logger and logged pair."""
        rows = problem.transitions
        state = rows.logger * rows.n_states + rows.state
        pair = rows.logger * rows.n_pairs + rows.pair
        return Inverse.of_groups(frequency(state, pair, rows.rows), rows)


def frequency(state: IntArray, pair: IntArray, count: FloatArray) -> FloatArray:
    """count(pair)/count(state) for every group."""
    by_state = sum_by(state, count)
    by_pair = sum_by(pair, count)
    with np.errstate(invalid="ignore"):
        share = by_pair[pair] / by_state[state]
    return np.where(count > 0, share, 1.0)
