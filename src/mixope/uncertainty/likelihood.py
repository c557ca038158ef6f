"""The empirical-likelihood interval: all values that a re-weighting of the episodes could have, at little loss.

With x_i = value + n s_i the pseudo-value of episode i, a candidate μ is kept if

    −2 log max { Π n p_i : Σ p_i = 1, Σ p_i (x_i − μ) = 0 } = 2 Σ log(1 + λ (x_i − μ))  ≤  χ²_{1, level}

where λ solves Σ (x_i − μ) / (1 + λ (x_i − μ)) = 0 (Owen 1988). The shape follows the skewness of the episodes,
and the interval stays within the range of the pseudo-values: with few episodes it is too short.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from mixope.base.arrays import FloatArray
from mixope.uncertainty.clustered import Interval

METHOD = "empirical likelihood"


def likelihood_interval(value: float, episode_scores: FloatArray, level: float) -> Interval | None:
    """Where −2 log R ≤ χ²; nothing if there are fewer than two episodes."""
    n = len(episode_scores)
    if n < 2 or not np.isfinite(value):
        return None
    centred = n * (episode_scores - episode_scores.mean())
    spread = float(np.sqrt(np.mean(centred**2)))
    if spread == 0.0:
        return Interval(value, value, level, METHOD)
    limit = float(chdtri(1.0, 1.0 - level))
    unit = centred / spread
    low, high = -_reach(-unit, limit), _reach(unit, limit)
    return Interval(value + spread * low, value + spread * high, level, METHOD)


def deviance(centred: FloatArray) -> float:
    """−2 log R that the mean of these numbers is 0; infinite where 0 is outside their range."""
    low, high = float(centred.min()), float(centred.max())
    if low >= 0.0 or high <= 0.0:
        return 0.0 if low == high == 0.0 else float("inf")
    from scipy.optimize import brentq

    edge = 1.0 - 0.5 / len(centred)  # no p_i exceeds one, so 1 + λ x_i ≥ 1/n
    slope = brentq(lambda v: float(np.sum(centred / (1.0 + v * centred))), -edge / high, -edge / low, xtol=1e-14)
    return 2.0 * float(np.sum(np.log1p(slope * centred)))


def _reach(unit: FloatArray, limit: float) -> float:
    """How far above 0 the mean of ``unit`` (which is 0) can be moved before the deviance passes the limit."""
    top = float(unit.max())
    inner = top * (1.0 - 1e-9)
    if deviance(unit - inner) <= limit:
        return inner
    from scipy.optimize import brentq

    return float(brentq(lambda mean: min(deviance(unit - mean), 1e6) - limit, 0.0, inner, xtol=1e-12))
