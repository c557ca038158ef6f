"""The Gaussian kernel on standardised states, and its usual bandwidth."""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.features.protocol import namespace


def median_bandwidth(states: FloatArray, seed: int = 0) -> float:
    """The median distance between states of a sample."""
    from scipy.spatial.distance import pdist

    generator = np.random.default_rng([seed, 5])
    some = states[generator.choice(len(states), min(len(states), 1000), replace=False)]
    return float(np.median(pdist(some))) or 1.0


def gaussian_kernel(left: FloatArray, right: FloatArray, bandwidth: float) -> FloatArray:
    """exp(−|x − y|²/2h²) for all pairs, in the array library of the arguments."""
    xp = namespace(left)
    squares = xp.sum(left**2, axis=1)[:, None] + xp.sum(right**2, axis=1) - 2.0 * left @ right.T
    result: FloatArray = xp.exp(-0.5 * xp.maximum(squares, 0.0) / bandwidth**2)
    return result
