"""How importance weights are spread: rows and weight by multiples of the mean weight.

A few bins say what an effective sample size hides: whether many rows carry a little, or a few carry nearly all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mixope.base.arrays import FloatArray, sum_by

EDGES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Bounds of the bins of weights, as multiples of the mean weight."""
_FINE, _OCTAVES = 8, 64
"""Weights are counted in so many parts of every power of two, for so many powers on either side of one."""
_COUNTED = 2 * _FINE * _OCTAVES


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
    """Rows and weight by size, and the largest weight, of some rows: a commutative monoid.

    The mean weight is known at the end only, so weights are counted finely and put into bins by multiples of it then,
    to the nearest eighth of a power of two: exactly, where the mean is one.
    """

    rows: FloatArray
    weight: FloatArray
    largest: float

    @classmethod
    def of(cls, weight: FloatArray, rows: FloatArray) -> WeightCount:
        """Of weights that so many rows have each; the first place is for those that are zero or less."""
        size = np.log2(weight, out=np.zeros(len(weight)), where=weight > 0)
        place = np.clip(np.floor(_FINE * (size + _OCTAVES)), 0, _COUNTED - 1).astype(np.int64)
        where = np.where(weight > 0, 1 + place, 0)
        n = 1 + _COUNTED
        return cls(sum_by(where, rows, n), sum_by(where, weight * rows, n), float(weight.max(initial=0.0)))

    def merge(self, other: WeightCount) -> WeightCount:
        """Of the rows of both."""
        return WeightCount(self.rows + other.rows, self.weight + other.weight, max(self.largest, other.largest))

    def bins(self) -> tuple[WeightBin, ...]:
        """Shares; empty where nothing is weighed."""
        rows, weight = float(self.rows.sum()), float(self.weight.sum())
        if not (weight > 0 and math.isfinite(weight)):
            return ()
        mean = round(_FINE * math.log2(weight / rows))
        starts = [1 + _FINE * (_OCTAVES + round(math.log2(edge))) + mean for edge in EDGES[1:]]
        ends = np.clip([0, 1, *starts, 1 + _COUNTED], 0, 1 + _COUNTED)
        bounds = [(None, 0.0), *zip(EDGES, (*EDGES[1:], None), strict=True)]
        return tuple(
            WeightBin(low, high, float(self.rows[a:b].sum()) / rows, float(self.weight[a:b].sum()) / weight)
            for (low, high), (a, b) in zip(bounds, pairwise(ends.tolist()), strict=True)
        )
