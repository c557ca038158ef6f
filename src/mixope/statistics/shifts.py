"""Does a reward belong to the row that it stands in, or to the one before or after?

A reward is explained by the kind of transition (s, a, s′) of its own row. Recorded a step late, it is explained by that
of the row before; a step early, by that of the row after. For every row that has such a neighbour,

    D = (r − r̄)² n/(n−1)  by rows of the same own transition,  less the same by rows with the same neighbour,

both without bias for the variance that is left, so that D has mean zero at most where the own transition tells the
reward, also where a part of it that the neighbour shares (s alone, s′ alone) does. Rows that are alone of their kind on
either side say nothing. D is summed by episode; see :mod:`mixope.diagnostics.order` for what is made of it.

Where states are vectors, r̄ is a quadratic of (s, a, s′) that is fitted to the rows. It only approximates what a
transition tells, of its own row as of the neighbour, and the neighbour may come out a little better; so it has to leave
a tenth less than the own row does before anything is said. Rows are neighbours if one begins exactly where another of
its episode led; a sample of longer logs holds few of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray, number_tuples, sum_by
from mixope.features import StateEncoding
from mixope.features.quadratic import Quadratic
from mixope.statistics.rows import Rows
from mixope.statistics.trajectories import OrderedRows

_ROUNDING = 1e-9
BETTER = 0.1
"""The share by which a neighbour must leave less than the own row does, where both are approximated."""
ROWS_PER_FEATURE = 10
MOST_ACTIONS = 12
"""Discrete actions are told apart by a column each, up to so many."""


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


def shifts_of_vectors(rows: Rows) -> RewardShifts | None:
    """From a sample of the rows; None where states are no vectors, or where too few rows have a neighbour."""
    explained = transitions_as_numbers(rows)
    before, after = _neighbours(rows) if explained is not None else (np.zeros(0, dtype=np.int64),) * 2
    if explained is None or rows.episode is None or len(after) < 2:
        return None
    features = Quadratic().fit(explained).transform(explained)
    if len(after) < ROWS_PER_FEATURE * (features.shape[1] + 1):
        return None
    _, number = np.unique(rows.episode[after], return_inverse=True)
    late = _lacking(rows.reward[after], features[after], features[before])
    early = _lacking(rows.reward[before], features[before], features[after])
    return RewardShifts(sum_by(number, late), sum_by(number, early))


def transitions_as_numbers(rows: Rows) -> FloatArray | None:
    """(s, a, s′) of every row as numbers; None where they are names."""
    if rows.observation.dtype.kind != "f":
        return None
    action = rows.action.reshape(len(rows), -1)
    if action.dtype.kind != "f":
        names = np.unique(action)
        if len(names) > MOST_ACTIONS:
            return None
        action = (action == names[None, :]).astype(np.float64)
    here, there = rows.observation.reshape(len(rows), -1), rows.next_observation.reshape(len(rows), -1)
    if rows.roles is not None:
        encoding = StateEncoding.fit(here, rows.roles)
        here, there = encoding.transform(here), encoding.transform(there)
    return np.concatenate([here, action, there], axis=1)


def _neighbours(rows: Rows) -> tuple[IntArray, IntArray]:
    """Pairs of rows of an episode, the second of which begins where the first led and is the only one to do so."""
    n = len(rows)
    episode = np.tile(rows.episode if rows.episode is not None else np.zeros(n, dtype=np.int64), 2)
    places = np.concatenate([rows.observation.reshape(n, -1), rows.next_observation.reshape(n, -1)])
    code, _ = number_tuples([episode, *places.T])
    begins = np.bincount(code[:n], minlength=int(code.max(initial=-1)) + 1)
    row_at = np.zeros(len(begins), dtype=np.int64)
    row_at[code[:n]] = np.arange(n)
    leads = np.flatnonzero(~rows.terminated & (begins[code[n:]] == 1))
    follows = row_at[code[n:][leads]]
    return leads[leads != follows], follows[leads != follows]


def _lacking(reward: FloatArray, own: FloatArray, neighbour: FloatArray) -> FloatArray:
    """D of every row: what the own features leave of the reward, less a tenth, less what the neighbour's leave."""
    left, rest = _left(reward, own), _left(reward, neighbour)
    return np.asarray((1.0 - BETTER) * left - rest)


def _left(reward: FloatArray, features: FloatArray) -> FloatArray:
    """The squared residuals of a regression; what floats leave is nothing."""
    design = np.column_stack([np.ones(len(reward)), features])
    off = reward - design @ np.linalg.lstsq(design, reward, rcond=1e-10)[0]
    return np.where(np.abs(off) > _ROUNDING * np.abs(reward).max(initial=0.0), off, 0.0) ** 2
