"""The clustered score interval: scores summed by episode, because rows of one episode are not independent.

    se² = Σ_episodes (Σ_rows score)²,      value ± t_{level, episodes − 1} · se

No small-sample factor is put on se²; the t quantile stands for few episodes. One episode has no spread between
episodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mixope.arrays import FloatArray


@dataclass(frozen=True)
class Interval:
    """A range for the value at a level, and how it was made."""

    low: float
    high: float
    level: float
    method: str

    def __str__(self) -> str:
        return f"[{self.low:.6g}, {self.high:.6g}] at {self.level:.0%}"

    @property
    def width(self) -> float:
        """high − low."""
        return self.high - self.low


def standard_error(episode_scores: FloatArray) -> float:
    """√Σ s² over episodes."""
    return float(np.sqrt(np.sum(episode_scores**2)))


def clustered_interval(value: float, episode_scores: FloatArray, level: float) -> Interval | None:
    """Value ± t · se, or nothing if there are fewer than two episodes."""
    episodes = len(episode_scores)
    if episodes < 2 or not np.isfinite(value):
        return None
    half = float(stdtrit(episodes - 1, 0.5 + level / 2)) * standard_error(episode_scores)
    return Interval(value - half, value + half, level, "clustered score, t")
