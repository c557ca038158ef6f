"""An interval that knows of an error of approximation besides chance.

    half² = (q se)² + (q τ)²,      q the t quantile

where τ is what the value is thought to be off because features cannot follow ratio and value exactly, judged by what
changes when there are half as many (:mod:`mixope.estimators.vector.scores`). It is not random between episodes, so no
score sees it, and it can exceed chance by far where the dynamics are deterministic.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixope.intervals.clustered import quantile
from mixope.intervals.uncertainty import Uncertainty


def widen(sure: Uncertainty, value: float, approximation: float, n_episodes: int) -> Uncertainty:
    """The same uncertainty with τ = ``approximation`` added in squares to both sides."""
    found, error = sure.interval, sure.standard_error
    if found is None or error is None or not (approximation > 0 and np.isfinite(approximation)):
        return sure
    reach = quantile(found.level, max((sure.n_blocks or n_episodes) - 1, 1)) * approximation
    low, high = value - np.hypot(value - found.low, reach), value + np.hypot(found.high - value, reach)
    wider = replace(found, low=float(low), high=float(high), method=f"{found.method} + approximation")
    return replace(sure, interval=wider, standard_error=float(np.hypot(error, approximation)))
