"""Statistics in standard deviations of a normal law: the deviate that is as unlikely."""

from __future__ import annotations

from scipy.special import chdtrc, ndtri


def normal_of_chi_squared(statistic: float, degrees: float) -> float:
    """The normal deviate as unlikely as χ² with these degrees of freedom; 37 is the most a float can tell."""
    if degrees <= 0:
        return 0.0
    tail = float(chdtrc(degrees, max(statistic, 0.0)))
    return float(-ndtri(min(max(tail, 1e-300), 1.0 - 1e-16)))
