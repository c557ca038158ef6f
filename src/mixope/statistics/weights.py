"""How importance weights are spread: rows and weight by multiples of the mean weight.

A few bins say what an effective sample size hides: whether many rows carry a little, or a few carry nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray, sum_by

EDGES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Bounds of the bins of weights, as multiples of the mean weight."""
_BINS = len(EDGES) + 1


@dataclass(frozen=True)
class WeightBin:
    """Weights from ``low`` to ``high`` times the mean weight: their share of the rows and of all weight.

    The first bin holds those that are zero (or less) and has no ``low``, the last has no ``high``.
    """

    low: float | None
    high: float | None
    rows_share: float
    weight_share: float


def weight_bins(weight: FloatArray, rows: FloatArray) -> tuple[WeightBin, ...]:
    """The distribution of weights of so many rows each; empty where nothing is weighed."""
    total = float(weight @ rows)
    return WeightCount.of(weight * float(rows.sum()) / total, rows).bins() if total > 0 else ()


@dataclass(frozen=True)
class WeightCount:
    """Rows and weight by bin, and the largest weight, of some rows: a commutative monoid.

    Bins are multiples of one, so that the mean weight must be near one.
    """

    rows: FloatArray
    weight: FloatArray
    largest: float

    @classmethod
    def of(cls, weight: FloatArray, rows: FloatArray) -> WeightCount:
        """Of weights that so many rows have each."""
        where = np.where(weight > 0, np.searchsorted(np.array(EDGES), weight, side="right"), 0)
        return cls(sum_by(where, rows, _BINS), sum_by(where, weight * rows, _BINS), float(weight.max(initial=0.0)))

    def merge(self, other: WeightCount) -> WeightCount:
        """Of the rows of both."""
        return WeightCount(self.rows + other.rows, self.weight + other.weight, max(self.largest, other.largest))

    def bins(self) -> tuple[WeightBin, ...]:
        """Shares; empty where nothing is weighed."""
        if self.weight.sum() <= 0:
            return ()
        bounds = [(None, 0.0), *zip(EDGES, (*EDGES[1:], None), strict=True)]
        shares = zip(self.rows / self.rows.sum(), self.weight / self.weight.sum(), strict=True)
        return tuple(
            WeightBin(low, high, float(r), float(w)) for (low, high), (r, w) in zip(bounds, shares, strict=True)
        )
