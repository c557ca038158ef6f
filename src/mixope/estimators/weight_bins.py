"""How importance weights are spread: rows and weight by multiples of the mean weight.

A few bins say what an effective sample size hides: whether many rows carry a little, or a few carry nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray, sum_by

EDGES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Bounds of the bins of weights, as multiples of the mean weight."""


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
    if total <= 0:
        return ()
    where = np.searchsorted(np.array(EDGES), weight * float(rows.sum()) / total, side="right")
    where[weight <= 0] = 0
    return as_bins(sum_by(where, rows, len(EDGES) + 1), sum_by(where, weight * rows, len(EDGES) + 1))


class WeightCount:
    """Weights counted batch after batch, where their mean is known to be near one: bins, and the largest."""

    def __init__(self) -> None:
        self.rows, self.weight = np.zeros((2, len(EDGES) + 1))
        self.largest = 0.0

    def update(self, weight: FloatArray) -> None:
        """One batch."""
        where = np.where(weight > 0, np.searchsorted(np.array(EDGES), weight, side="right"), 0)
        self.rows += np.bincount(where, minlength=len(EDGES) + 1)
        self.weight += np.bincount(where, weights=weight, minlength=len(EDGES) + 1)
        self.largest = max(self.largest, float(weight.max(initial=0.0)))

    def bins(self) -> tuple[WeightBin, ...]:
        """Shares; empty where nothing is weighed."""
        return as_bins(self.rows, self.weight) if self.weight.sum() > 0 else ()


def as_bins(rows: FloatArray, weight: FloatArray) -> tuple[WeightBin, ...]:
    """Rows and weight by bin, as shares."""
    bounds = [(None, 0.0), *zip(EDGES, (*EDGES[1:], None), strict=True)]
    shares = zip(rows / rows.sum(), weight / weight.sum(), strict=True)
    return tuple(WeightBin(low, high, float(r), float(w)) for (low, high), (r, w) in zip(bounds, shares, strict=True))
