"""Do given probabilities fit the logged actions, where states do not repeat?

No policy gives its own actions a lower mean of log b than another law does: with û any law that has not seen the rows,

    E log û(a|s) − E log b(a|s) ≤ 0,      and  P(log û − log b > x) ≤ e⁻ˣ,

so that a mean that lies far above zero says that b is not the law of these actions. û is fitted to half of some rows
and judged on the other half. What is no law at all, such as a propensity of 1 in every row, passes that; but then the
ratio ρ = π/b does not have the mean 1. Neither sees what the other does: the target's own probabilities have ρ = 1.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import MixopeError
from mixope.behaviours.defaults import DefaultMixture
from mixope.behaviours.logged import Logged
from mixope.behaviours.per_logger import FittedPerLogger, PerLogger
from mixope.behaviours.protocol import FittedBehaviour
from mixope.requests.rows import Rows

SUSPECT = 4.0
"""Standard deviations above which a misfit is more than chance."""
_OFF, _SURE = 0.05, 8.0
"""By how much, and by how many standard deviations, the mean of ρ must miss 1: a few rows may not meet a heavy tail."""
_LEAST = 50
"""Rows that each half must have."""


def misfit_of_laws(rows: Rows, given: FittedBehaviour, seed: int) -> float:
    """How far log û lies above log b in the mean, in standard deviations; 0 where there is nothing to tell it by."""
    order = np.random.default_rng([seed, 37]).permutation(len(rows))
    half = len(rows) // 2
    if half < _LEAST:
        return 0.0
    fitting, judging = (rows.take(np.sort(part)) for part in (order[:half], order[half:]))
    model = PerLogger(DefaultMixture()) if isinstance(given, Logged) else DefaultMixture()
    try:
        fitted = model.fit(fitting, np.ones(half), seed)
        judging = judging.take(_told_by(fitted, judging))
        gain = fitted.log_prob(judging) - given.log_prob(judging)
    except MixopeError:  # too few rows of a logger, or actions that cannot be fitted
        return 0.0
    return _standardised(gain, judging.times)


def misfit_of_ratio(log_ratio: FloatArray, times: FloatArray) -> float:
    """How far the mean of ρ is from 1, in standard deviations; 0 where that may be chance."""
    off = np.exp(np.minimum(log_ratio, 30.0)) - 1.0
    if abs(float(np.average(off, weights=times))) <= _OFF:
        return 0.0
    found = abs(_standardised(off, times))
    return found if found > _SURE else 0.0


def _told_by(fitted: FittedBehaviour, rows: Rows) -> IntArray:
    """Rows of the loggers that have a model."""
    if not isinstance(fitted, FittedPerLogger):
        return np.arange(len(rows))
    return np.flatnonzero(np.isin(rows.logger, list(fitted.by_logger)))


def _standardised(values: FloatArray, times: FloatArray) -> float:
    """Σ x / √Σ (x − x̄)²; a mean of constants has no error and is judged by what they are."""
    if not len(values):
        return 0.0
    total, mean = float(times @ values), float(np.average(values, weights=times))
    spread = float(np.sqrt(times @ (values - mean) ** 2))
    return total / spread if spread > 1e-12 * abs(total) else float(np.sign(mean) * np.sqrt(times.sum()))
