"""Does a reward belong to the row that it stands in, or to the one before or after?

A reward is explained by the kind of transition (s, a, s′) of its own row. Recorded a step late, it is explained by that
of the row before; a step early, by that of the row after. For every row that has such a neighbour,

    D = (r − r̄)² n/(n−1)  by rows of the same own transition,  less the same by rows with the same neighbour,

both without bias for the variance that is left, so that D has mean zero at most where the own transition tells the
reward, also where a part of it that the neighbour shares (s alone, s′ alone) does. Rows that are alone of their kind on
either side say nothing. D is summed by episode; see :mod:`mixope.diagnostics.order` for what is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.statistics.trajectories import OrderedRows

_ROUNDING = 1e-9


@dataclass(frozen=True)
class RewardShifts:
    """Σ D by episode, against the row before (rewards that are late) and the row after (early)."""

    late: FloatArray
    early: FloatArray


def reward_shifts(ordered: OrderedRows, cell: IntArray) -> RewardShifts:
    """From rows in the order of their episodes; ``cell`` is the kind of transition of every group."""
    episode, reward = ordered.episodes.episode, ordered.episodes.reward
    mine, n = cell[ordered.group], ordered.episodes.n_episodes
    follows = np.flatnonzero(episode[1:] == episode[:-1]) + 1
    late = _difference(reward[follows], mine[follows], mine[follows - 1])
    early = _difference(reward[follows - 1], mine[follows - 1], mine[follows])
    return RewardShifts(sum_by(episode[follows], late, n), sum_by(episode[follows], early, n))


def _difference(reward: FloatArray, own: IntArray, neighbour: IntArray) -> FloatArray:
    """D of every row; 0 where it says nothing."""
    (left, known), (rest, known_too) = _unexplained(reward, own), _unexplained(reward, neighbour)
    return np.where(known & known_too, left - rest, 0.0)


def _unexplained(reward: FloatArray, cell: IntArray) -> tuple[FloatArray, BoolArray]:
    """(r − r̄)² n/(n−1) of every row, and whether its cell has another; what floats leave is nothing."""
    rows = sum_by(cell, np.ones(len(cell)))[cell]
    mean = sum_by(cell, reward)[cell] / rows
    several = rows >= 2
    scale = np.abs(reward).max(initial=0.0)
    off = np.where(np.abs(reward - mean) > _ROUNDING * scale, reward - mean, 0.0)
    return off**2 * np.divide(rows, rows - 1.0, out=np.ones_like(rows), where=several), several
