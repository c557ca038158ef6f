"""Batch means: the standard error of one long episode, whose steps depend on each other.

Cut n scores into a blocks of about b steps and treat the block sums B_k as if they were independent:

    se² = a/(a−1) · Σ (B_k − n_k/n · Σ B)²,      value ± t_{level, a − 1} · se

n_k being the steps of block k. No step is left out, and no block goes on into the next episode where there are several.

The automatic length is the larger of √n (Flegal & Jones 2010: consistent, and long enough for coverage) and the
best length for the autocorrelation found, (2ρ/(1−ρ²))^{2/3} n^{1/3} with ρ at lag one (Carlstein 1986), but never so
long that fewer than ten blocks remain.

A discounted value is one of the start law too, and blocks of steps do not tell how few starts there were. If starts
are spread as the logged states are, their share of the error is k sd V(s) / √starts over all logged states, k = 1 − γ;
it is added to that of the blocks. Where the process mixes fast, or γ is near one, it is small.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray, IntArray

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


def block_scores(scores: FloatArray, length: int | None = None, lengths: IntArray | None = None) -> FloatArray:
    """Scores B_k − n_k/n · Σ B of blocks, which can stand for those of episodes.

    ``lengths`` are those of the episodes, where there are several; each is cut into blocks of equal size or nearly so.
    """
    size = block_length(scores) if length is None else length
    edges = _edges(np.array([len(scores)]) if lengths is None else lengths, size)
    steps = np.diff(np.append(edges, len(scores)))
    sums = np.add.reduceat(scores, edges, axis=0)
    share = (steps / len(scores)).reshape(-1, *[1] * (scores.ndim - 1))
    return np.asarray(sums - share * sums.sum(axis=0))


def _edges(lengths: IntArray, size: int) -> IntArray:
    """Where blocks begin: every episode has as many as fit into it, and at least one."""
    pieces = np.maximum(lengths // size, 1)
    number = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = np.repeat(np.cumsum(lengths) - lengths, pieces)
    return np.asarray(begin + number * np.repeat(lengths, pieces) // np.repeat(pieces, pieces), dtype=np.int64)
