"""The clustered score interval: scores summed by episode, because rows of one episode are not independent.

    se² = m/(m−1) · Σ_episodes (Σ_rows score)²,      value ± q · se

with m the episodes and q the t quantile of m − 1 degrees of freedom (fewer where a few episodes decide), or the normal
one. The scores of m episodes sum to zero because the value was fitted to them, as the residuals of a mean do: hence
m/(m−1). One episode has no spread between episodes: see :mod:`mixope.uncertainty.blocks`.

Where a few events decide (a purchase in two thousand rows), scores are skewed, and intervals that reach as far to both
sides miss too low values of what is rare far more often than too high ones. With the skewness of the mean γ, which is
1/√N for N events of one size, Hall's (1992) transformation of the t statistic makes

    value − se · g⁻¹(±q),      g⁻¹(x) = 3/γ · ((1 + γ (x − γ/6))^{1/3} − 1)

and no more than q + |γ| (1/6 + 2q²/3) standard errors: g⁻¹ is all too steep where its root is near 0. For rare events
that is close to the exact Poisson interval, down to a single event. Each end is the farther one of this and of the
symmetric interval, so that no interval is narrower for it. Skewness that chance may have made, or that is too small to
matter, is not corrected: γ² is lowered by the square of three standard errors under the normal law (√6/m), or of 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from mixope.base.arrays import FloatArray
from mixope.requests.skewness import skewness

Law = Literal["t", "normal"]

LEAST_DEGREES = 10.0
SKEWED, CHANCE = 0.1, 3.0
"""Skewness of a mean that matters, and how many standard errors of it are taken for chance."""
FEW_EPISODES = 20
"""Below this the spread between episodes is itself poorly known."""


@dataclass(frozen=True)
class Interval:
    """A range for the value at a level, and how it was made; by how many refits, and how many more failed."""

    low: float
    high: float
    level: float
    method: str
    replicates: int | None = None
    failed: int | None = None

    def __str__(self) -> str:
        return f"[{self.low:.6g}, {self.high:.6g}] at {self.level:.0%}"

    def __iter__(self) -> Iterator[float]:
        """Its two ends: ``low, high = interval``."""
        return iter((self.low, self.high))

    @property
    def width(self) -> float:
        """high − low."""
        return self.high - self.low

    def to_dict(self) -> dict[str, float | str | int]:
        """Plain values for JSON; what refits tell only where there were refits."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def standard_error(episode_scores: FloatArray) -> float:
    """√(m/(m−1) Σ s²) over m episodes, or other clusters."""
    return float(np.sqrt(few_clusters(len(episode_scores)) * np.sum(episode_scores**2)))


def few_clusters(n: int) -> float:
    """m/(m−1): by how much Σ s² over the clusters that a value was fitted to is too small; 1 where there is but one."""
    return n / (n - 1) if n > 1 else 1.0


def degrees_of_freedom(episode_scores: FloatArray, at_most: float | None = None) -> float:
    """Of the t law: m − 1, or fewer where a few episodes decide: 2 m/(κ − 1), κ their kurtosis, which is 3 if normal.

    Σ s² is then known to a relative error of √((κ − 1)/m), as with that many normal scores (Satterthwaite). The
    kurtosis is itself hardly known, so that it takes away no degree below ten. ``at_most``: of clusters that are not of
    one size (:mod:`mixope.requests.clusters`).
    """
    m, squares = len(episode_scores), episode_scores**2
    square = float(np.sum(squares))
    most = float(m - 1 if at_most is None else min(m - 1, at_most))
    if m < 2 or square == 0.0:
        return max(most, 1.0)
    kurtosis = m * float(np.sum(squares**2)) / square**2
    return float(min(most, max(2.0 * m / max(kurtosis - 1.0, 1e-9), LEAST_DEGREES)))


def quantile(level: float, degrees: float, law: Law = "t") -> float:
    """How many standard errors a two-sided interval reaches to each side."""
    tail = 0.5 + level / 2
    return float(ndtri(tail)) if law == "normal" else float(stdtrit(degrees, tail))


def probability_positive(value: float, error: float, degrees: float) -> float:
    """That the truth behind a value with this standard error is above 0, by the t law."""
    if error == 0.0:
        return 0.5 if value == 0.0 else float(value > 0.0)
    return float(stdtr(degrees, value / error))


def clustered_interval(
    value: float, episode_scores: FloatArray, level: float, law: Law = "t", at_most: float | None = None
) -> Interval | None:
    """Value ± quantile · se, and farther where scores are skewed; nothing if there are fewer than two episodes."""
    episodes = len(episode_scores)
    if episodes < 2 or not np.isfinite(value):
        return None
    error = standard_error(episode_scores)
    below = above = quantile(level, degrees_of_freedom(episode_scores, at_most), law)
    if law == "t":
        most = episodes - 1.0 if at_most is None else min(episodes - 1.0, at_most)
        down, up = _skewed(excess_skewness(episode_scores), quantile(level, most))
        below, above = max(below, down), max(above, up)
    return Interval(value - below * error, value + above * error, level, f"clustered score, {law}")


def excess_skewness(episode_scores: FloatArray) -> float:
    """γ without what is too small to matter, or chance may have made."""
    found = skewness(episode_scores)
    usual = max(SKEWED, CHANCE * np.sqrt(6.0) / len(episode_scores))
    return float(np.copysign(np.sqrt(max(found**2 - usual**2, 0.0)), found))


def _skewed(gamma: float, q: float) -> tuple[float, float]:
    """How many standard errors Hall's interval reaches down and up."""
    if gamma == 0.0:
        return 0.0, 0.0

    def back(x: float) -> float:
        return float(3.0 / gamma * (np.cbrt(1.0 + gamma * (x - gamma / 6.0)) - 1.0))

    most = q + abs(gamma) * (1.0 / 6.0 + 2.0 * q**2 / 3.0)
    return min(back(q), most), min(-back(-q), most)


def few_episodes(n_episodes: int, *, units: bool = False) -> str | None:
    """A sentence where there are too few episodes, or units, to trust any spread between them."""
    if n_episodes >= FEW_EPISODES:
        return None
    if units:
        return (
            f"there are {n_episodes} units: a standard error from so few is itself uncertain, and intervals may cover"
            " less than they say"
        )
    if n_episodes == 1:
        return "there is one episode: the interval rests on blocks of its steps, not on independent episodes"
    return (
        f"there are {n_episodes} episodes: a standard error from so few clusters is itself uncertain, and intervals"
        " cover less than they say"
    )
