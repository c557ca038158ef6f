"""What a logger earned, as a mean with its error.

A good logger may succeed in all of a few episodes and show no spread at all. So one more score is added, as of one
episode with the spread of everybody's: it keeps the error from being nothing and vanishes with more data.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray
from mixope.statistics.episodes import EpisodeTotals


def earned(mine: EpisodeTotals, everybody: EpisodeTotals, horizon: int | None) -> tuple[float, FloatArray]:
    """The mean over T steps (nothing is earned after an end), or over all rows; and the scores of the episodes."""
    steps = _steps(mine, horizon)
    value = float(mine.reward.sum() / steps.sum())
    all_steps = _steps(everybody, horizon)
    spread = np.std(everybody.reward - everybody.reward.sum() / all_steps.sum() * all_steps)
    return value, np.append(mine.reward - value * steps, spread) / steps.sum()


def _steps(episodes: EpisodeTotals, horizon: int | None) -> FloatArray:
    return episodes.rows if horizon is None else np.full(len(episodes.rows), float(horizon))
