"""Batch means: the standard error of one long episode, whose steps depend on each other.

Cut n scores into a blocks of length b and treat the block sums B_k as if they were independent:

    se² = n/(a b) · a/(a−1) · Σ (B_k − B̄)²,      value ± t_{level, a − 1} · se

The automatic length is the larger of √n (Flegal & Jones 2010: consistent, and long enough for coverage) and the
best length for the autocorrelation found, (2ρ/(1−ρ²))^{2/3} n^{1/3} with ρ at lag one (Carlstein 1986), but never so
long that fewer than ten blocks remain.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray
from mixope.intervals.clustered import Interval, quantile

FEWEST_BLOCKS = 10
SHORTEST = 50
"""Sequences shorter than this are not cut: nothing could be learnt about their dependence."""


def block_length(scores: FloatArray) -> int:
    """The automatic length for a sequence of scores (or the longest over the columns of several)."""
    n = len(scores)
    columns = scores.reshape(n, -1)
    found = max((_for_autocorrelation(column) for column in columns.T), default=1.0)
    return max(1, min(int(np.ceil(max(np.sqrt(n), found))), n // FEWEST_BLOCKS))


def _for_autocorrelation(scores: FloatArray) -> float:
    centred = scores - scores.mean()
    spread = float(centred @ centred)
    if spread == 0.0:
        return 1.0
    rho = float(np.clip(abs(centred[1:] @ centred[:-1]) / spread, 0.0, 0.999))
    return float((2.0 * rho / (1.0 - rho**2)) ** (2.0 / 3.0) * len(scores) ** (1.0 / 3.0))


def block_scores(scores: FloatArray, length: int | None = None) -> FloatArray:
    """Scores of blocks that can stand for those of episodes: Σ over them of s² is the se² of the module.

    A rest shorter than a block, at the beginning of the sequence, is left out and made up for by the factor n/(a b).
    """
    n = len(scores)
    size = block_length(scores) if length is None else length
    blocks = n // size
    used = scores[n - blocks * size :]
    sums = used.reshape(blocks, size, *scores.shape[1:]).sum(axis=1)
    return np.asarray((sums - sums.mean(axis=0)) * np.sqrt(n / (blocks * size) * blocks / (blocks - 1)))


def batch_means_error(scores: FloatArray, length: int | None = None) -> float:
    """The standard error of Σ scores."""
    return float(np.sqrt(np.sum(block_scores(scores, length) ** 2)))


def batch_means_interval(value: float, scores: FloatArray, level: float, length: int | None = None) -> Interval | None:
    """Value ± t · se from the scores of the steps in order; nothing if the sequence is too short to be cut."""
    if len(scores) < SHORTEST or not (np.isfinite(value) and bool(np.all(np.isfinite(scores)))):
        return None
    blocks = block_scores(scores, length)
    half = quantile(level, len(blocks) - 1) * float(np.sqrt(np.sum(blocks**2)))
    return Interval(value - half, value + half, level, f"batch means, {len(blocks)} blocks")
