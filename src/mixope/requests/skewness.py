"""How skewed a mean is, and how many events that means: N rare events of one size have a skewness of 1/√N."""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray


def skewness(episode_scores: FloatArray) -> float:
    """γ = Σ s³ / (Σ s²)^{3/2} of centred scores: that of the mean of the episodes, 1/√N where N alike events decide."""
    centred = episode_scores - episode_scores.mean()
    size = float(np.abs(centred).max(initial=0.0))
    if size == 0.0:
        return 0.0
    unit = centred / size
    return float(np.sum(unit**3) / np.sum(unit**2) ** 1.5)


def deciding_events(episode_scores: FloatArray) -> float:
    """N = 1/γ²: how many events of one size would make scores as skewed; no more than there are episodes."""
    gamma, n = skewness(episode_scores), float(len(episode_scores))
    return min(gamma**-2, n) if gamma else n
