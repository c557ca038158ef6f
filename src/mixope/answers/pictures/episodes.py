"""What is by episode: the estimate as the log grows, and what episodes earned.

With ψ_e the scores of all N episodes, the first n of them alone would give about

    V_n = V + N/n Σ_{e ≤ n} ψ_e,      se_n = N/n √(n/(n−1) Σ_{e ≤ n} (ψ_e − ψ̄)²)

which is exact where the value is a mean over episodes, and elsewhere the first order of it: nothing is fitted again.
An error of approximation, which no score sees, widens all intervals as it widens that of the estimate.
Episodes come in the order of their names, loggers in turn, so that each of them has its share of every beginning.
"""

from __future__ import annotations

import math

import numpy as np

from mixope.answers.pictures.records import Grown, ReturnBar
from mixope.base.arrays import FloatArray, IntArray
from mixope.uncertainty import degrees_of_freedom, quantile, standard_error

POINTS = 24
LEAST = 10
"""Episodes at the first point; half as many again must follow."""
BARS = 16


def growth(value: float, in_turn: FloatArray, level: float, approximation: float = 0.0) -> tuple[Grown, ...]:
    """The value and its interval after more and more episodes, from scores in turn; nothing where they are few."""
    total = len(in_turn)
    if total < 3 * LEAST // 2 or not math.isfinite(value):
        return ()
    sums = np.cumsum(in_turn)
    found = []
    for n in np.unique(np.geomspace(LEAST, total, POINTS).round().astype(np.int64)).tolist():  # of many, few are long
        scaled = in_turn[:n] * (total / n)
        around = scaled - scaled.mean()
        chance = quantile(level, degrees_of_freedom(around)) * standard_error(around)
        half = math.hypot(chance, quantile(level, max(n - 1, 1)) * approximation)
        at = value + total / n * float(sums[n - 1])
        found.append(Grown(n, at, at - half, at + half))
    return tuple(found)


def loggers_in_turn(logger: IntArray) -> IntArray:
    """An order of the episodes in which every beginning holds about the same share of each logger's."""
    by_logger = np.argsort(logger, kind="stable")
    count = np.bincount(logger)
    first = np.cumsum(count) - count
    rank = np.empty(len(logger))
    rank[by_logger] = np.arange(len(logger)) - first[logger[by_logger]]
    return np.lexsort((logger, (rank + 0.5) / count[logger]))


def returns(earned: FloatArray) -> tuple[ReturnBar, ...]:
    """How many episodes earned how much, in bars between round numbers."""
    low, high = float(earned.min(initial=np.inf)), float(earned.max(initial=-np.inf))
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        return ()
    edges = _round_edges(low, high)
    counts, _ = np.histogram(earned, bins=edges)
    return tuple(
        ReturnBar(a, b, int(n)) for a, b, n in zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True)
    )


def _round_edges(low: float, high: float) -> FloatArray:
    """Multiples of 1, 2 or 5 times a power of ten around all values, for at most :data:`BARS` bars."""
    wide = (high - low) or max(abs(low), 1.0)
    size = 10.0 ** math.floor(math.log10(wide / BARS))
    step = next(size * k for k in (1, 2, 5, 10, 20) if wide / (size * k) <= BARS - 1)
    start = math.floor(low / step)
    stop = max(math.ceil(high / step), start + 1)
    return np.arange(start, stop + 1, dtype=np.float64) * step
