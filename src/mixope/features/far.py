"""Does the target go where nobody went? How many of its pairs lie far from all that was logged.

The distance of a pair (s, a) is that to the nearest logged pair of another episode, in standard units. Logged pairs
have such distances themselves: *far* is what lies beyond 19 in 20 of them. A target that does what was done has 5 % of
its pairs there. A learned value is a guess where it is far, and all networks may guess alike.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray

_LOOKED_AT, _REFERENCE = 1000, 6000
_QUANTILE = 0.95


def far_share(
    inputs: FloatArray, ahead: FloatArray, shares: FloatArray, episode: IntArray, going: BoolArray, seed: int
) -> float | None:
    """The share of the pairs that the target makes of logged next states which lie far; None if nothing can be told."""
    draw = np.random.default_rng([seed, 71])
    reference = draw.permutation(len(inputs))[:_REFERENCE]
    own = draw.permutation(len(inputs))[:_LOOKED_AT]
    next_ones = draw.permutation(np.flatnonzero(going))[:_LOOKED_AT]
    if len(np.unique(episode[reference])) < 2 or not len(next_ones):
        return None
    law = shares[next_ones].astype(np.float64)
    total = law.sum(axis=1)
    reached = np.cumsum(law, axis=1) < (draw.random(len(next_ones)) * total)[:, None]
    column = np.minimum(reached.sum(axis=1), law.shape[1] - 1)
    logged = _nearest(inputs[own], episode[own], inputs[reference], episode[reference])
    chosen = _nearest(ahead[next_ones, column], episode[next_ones], inputs[reference], episode[reference])
    limit = np.quantile(logged, _QUANTILE)
    return float(np.mean(chosen > limit * (1.0 + 1e-6) + 1e-12))


def _nearest(pairs: FloatArray, own: IntArray, others: FloatArray, whose: IntArray) -> FloatArray:
    """The distance from every pair to the nearest of the others that belongs to another episode."""
    size, found = np.einsum("ij,ij->i", others, others), []
    for low in range(0, len(pairs), 256):
        part, mine = pairs[low : low + 256], own[low : low + 256]
        square = np.einsum("ij,ij->i", part, part)[:, None] - 2.0 * (part @ others.T) + size
        square[mine[:, None] == whose[None, :]] = np.inf
        found.append(np.sqrt(np.maximum(square.min(axis=1), 0.0)))
    return np.concatenate(found)
