"""Draws from many discrete laws at once, by one binary search.

The laws are rows of probabilities laid end to end. With F(i, ·) the cumulative sums of row i, the array i + F(i, ·) is
sorted over all rows together, so the entry drawn for row i by a uniform u is the first one above i + u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.environments.model import Model


@dataclass(frozen=True, eq=False)
class Laws:
    """Rows of probabilities, ready to be drawn from."""

    ladder: FloatArray
    last: IntArray

    def draw(self, rows: IntArray, uniforms: FloatArray) -> IntArray:
        """The position, among all entries, of one draw from each of ``rows``."""
        found = np.searchsorted(self.ladder, rows + uniforms, side="right")
        # i + u can round up to i + 1, the first entry of the next row.
        return np.minimum(found, self.last[rows])


def laws(probabilities: FloatArray, row_starts: IntArray) -> Laws:
    """Laws from entries laid end to end; row i is ``probabilities[row_starts[i]:row_starts[i + 1]]``."""
    lengths = np.diff(row_starts)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.cumsum(probabilities)
    before = np.concatenate([[0.0], sums])[row_starts[:-1]]
    ladder = np.minimum(sums - before[rows], 1.0) + rows
    last = row_starts[1:] - 1
    last_possible = last - _trailing_zeros(probabilities, row_starts)
    ladder[last_possible] = np.arange(1, len(lengths) + 1)
    ladder = np.maximum.accumulate(ladder)
    return Laws(ladder, last_possible)


def transition_laws(model: Model) -> Laws:
    """The laws of a model's stored transitions, one row for each s·A + a."""
    return laws(model.transition.data, model.transition.indptr.astype(np.int64))


def action_laws(policies: FloatArray) -> Laws:
    """The action laws of stacked policies (…, A), one row for each leading index."""
    n_actions = policies.shape[-1]
    return laws(policies.ravel(), np.arange(policies.size // n_actions + 1) * n_actions)


def _trailing_zeros(probabilities: FloatArray, row_starts: IntArray) -> IntArray:
    """How many entries at the end of each row have probability 0."""
    positions = np.where(probabilities > 0, np.arange(len(probabilities)), -1)
    return row_starts[1:] - 1 - np.maximum.reduceat(positions, row_starts[:-1])
