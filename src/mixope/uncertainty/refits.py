"""Bootstrap intervals: from the values of refits on resampled episodes to a range.

    percentile   the (1 ± level)/2 quantiles of the replicates
    BCa          the quantiles at  Φ(z₀ + (z₀ + z)/(1 − a (z₀ + z))),  z = ±Φ⁻¹(½ + level/2)

z₀ = Φ⁻¹(share of replicates below the estimate) corrects the median; a = Σ u³ / (6 (Σ u²)^{3/2}), u the influence of
each episode, corrects for a spread that changes with the value (Efron 1987). Where the replicates come from is in
:mod:`mixope.answers.resampling`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from mixope.base.arrays import FloatArray
from mixope.uncertainty.clustered import Interval

Method = Literal["bca", "percentile"]


def percentile_interval(replicates: FloatArray, level: float) -> Interval:
    """The central ``level`` of the replicates."""
    low, high = np.quantile(replicates, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level, _method("percentile", replicates))


def bca_interval(value: float, replicates: FloatArray, influence: FloatArray, level: float) -> Interval:
    """Bias-corrected and accelerated; ``influence`` is the score of every episode."""
    z0, a = median_bias(value, replicates), acceleration(influence)
    z = z0 + ndtri(np.array([0.5 - level / 2, 0.5 + level / 2]))
    low, high = np.quantile(replicates, ndtr(z0 + z / (1.0 - a * z)))
    return Interval(float(low), float(high), level, _method("BCa", replicates))


def _method(kind: str, replicates: FloatArray) -> str:
    return f"episode bootstrap, {kind}, {len(replicates)} refits"


def median_bias(value: float, replicates: FloatArray) -> float:
    """z₀; a tie counts half, and never all replicates on one side."""
    below = float(np.mean(replicates < value) + 0.5 * np.mean(replicates == value))
    edge = 0.5 / len(replicates)
    return float(ndtri(np.clip(below, edge, 1.0 - edge)))


def acceleration(influence: FloatArray) -> float:
    """a: a sixth of the skewness of the episodes' influence, over √episodes."""
    spread = float(np.sum(influence**2))
    return float(np.sum(influence**3)) / (6.0 * spread**1.5) if spread > 0 else 0.0
