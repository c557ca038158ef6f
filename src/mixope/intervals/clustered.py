"""The clustered score interval: scores summed by episode, because rows of one episode are not independent.

    se² = Σ_episodes (Σ_rows score)²,      value ± q · se

with q the t quantile of (episodes − 1) degrees of freedom, or the normal one. No small-sample factor is put on se²; the
t quantile stands for few episodes. One episode has no spread between episodes: see :mod:`mixope.intervals.blocks`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from mixope.arrays import FloatArray

Law = Literal["t", "normal"]

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

    @property
    def width(self) -> float:
        """high − low."""
        return self.high - self.low

    def to_dict(self) -> dict[str, float | str | int]:
        """Plain values for JSON; what refits tell only where there were refits."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def standard_error(episode_scores: FloatArray) -> float:
    """√Σ s² over episodes."""
    return float(np.sqrt(np.sum(episode_scores**2)))


def quantile(level: float, degrees: int, law: Law = "t") -> float:
    """How many standard errors a two-sided interval reaches to each side."""
    tail = 0.5 + level / 2
    return float(ndtri(tail)) if law == "normal" else float(stdtrit(degrees, tail))


def clustered_interval(value: float, episode_scores: FloatArray, level: float, law: Law = "t") -> Interval | None:
    """Value ± quantile · se, or nothing if there are fewer than two episodes."""
    episodes = len(episode_scores)
    if episodes < 2 or not np.isfinite(value):
        return None
    half = quantile(level, episodes - 1, law) * standard_error(episode_scores)
    return Interval(value - half, value + half, level, f"clustered score, {law}")


def few_episodes(n_episodes: int) -> str | None:
    """A sentence where there are too few episodes to trust any spread between them."""
    if n_episodes >= FEW_EPISODES:
        return None
    if n_episodes == 1:
        return "there is one episode: the interval rests on blocks of its steps, not on independent episodes"
    return (
        f"there are {n_episodes} episodes: a standard error from so few clusters is itself uncertain, and intervals"
        " cover less than they say"
    )
