"""Does a reward belong to the row that it stands in, or to the one before or after?

A reward is explained by the kind of transition (s, a, s′) of its own row. Recorded a step late, it is explained by that
of the row before; a step early, by that of the row after. For every row that has such a neighbour,

    D = (r − r̄)² n/(n−1)  by rows of the same own transition,  less the same by rows with the same neighbour,

both without bias for the variance that is left, so that D has mean zero at most where the own transition tells the
reward, also where a part of it that the neighbour shares (s alone, s′ alone) does. Rows that are alone of their kind on
either side say nothing. D is summed by episode; see :mod:`mixope.checks.order` for what is made of it.

That is blind to a few episodes among many whose rewards are late. But where each row has its reward, what the own
transition leaves of it has nothing to do with the one before; where some have that of the row before, it follows what
that row earns on average. So besides, within every kind of transition,

    E = (r − r̄)(m − m̄) / (σ_r σ_m),   m the mean reward of the neighbour's kind, but for the neighbour itself,

whose mean is zero as long as the reward depends on its own row alone. Each kind counts by its correlation, so that
rare large rewards do not drown small ones. Neighbours of the same kind say nothing.

Where states are vectors, r̄ is a quadratic of (s, a, s′), bent at quantiles of every column (rewards have edges: |x|, a
limit, a threshold), that is fitted to the rows. It only approximates what a transition tells, of its own row as of the
neighbour, and the neighbour may come out a little better; so it has to leave a tenth less than the own row does before
anything is said. Rows are neighbours if one begins exactly where another of its episode led; a sample of longer logs
holds few of those. What it misses hangs together along an episode, so that E would be none; instead every episode is
judged by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, number_tuples, sum_by
from mixope.features import StateEncoding
from mixope.features.quadratic import Quadratic
from mixope.requests.rows import Rows
from mixope.requests.trajectories import OrderedRows

_ROUNDING = 1e-9
BETTER = 0.1
"""The share by which a neighbour must leave less than the own row does, where both are approximated."""
ROWS_PER_FEATURE = 10
REFITS, IN_PLACE, LEAST_KEPT = 2, 0.5, 0.3
"""Mean rewards are fitted again so often, to episodes up to so many standard errors, while these hold so many rows."""
LEAST_ROWS = 5
"""Rows of an episode below which nothing is said of it by itself."""
BENDS, MOST_FEATURES = 7, 400
"""Of every column, and of all."""
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


def reward_echoes(ordered: OrderedRows, cell: IntArray) -> RewardShifts:
    """Σ E by episode, from rows in the order of their episodes."""
    episode, reward = ordered.episodes.episode, ordered.episodes.reward
    mine, n = cell[ordered.group], ordered.episodes.n_episodes
    rows, total = (sum_by(mine, x)[mine] for x in (np.ones(len(mine)), reward))
    others = np.divide(total - reward, rows - 1.0, out=np.zeros_like(total), where=rows > 1)
    follows = np.flatnonzero(episode[1:] == episode[:-1]) + 1
    follows = follows[mine[follows] != mine[follows - 1]]
    sums = []
    for own, neighbour in ((follows, follows - 1), (follows - 1, follows)):
        known = rows[neighbour] > 1
        one, other = own[known], neighbour[known]
        echo = _correlated(mine[one], reward[one], others[other], np.abs(reward).max(initial=0.0))
        sums.append(sum_by(episode[one], echo, n))
    return RewardShifts(*sums)


def _correlated(cell: IntArray, left: FloatArray, right: FloatArray, scale: float) -> FloatArray:
    """The product of two numbers, each centred and scaled within its kind; what floats leave is nothing."""
    if not len(cell):
        return np.zeros(0)
    rows = sum_by(cell, np.ones(len(cell)))[cell]
    product = np.ones(len(cell))
    for values in (left, right):
        off = values - sum_by(cell, values)[cell] / rows
        off = np.where(np.abs(off) > _ROUNDING * scale, off, 0.0)
        spread = np.sqrt(sum_by(cell, off**2)[cell] / rows)
        product *= np.divide(off, spread, out=np.zeros_like(off), where=spread > 0)
    return product


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


@dataclass(frozen=True)
class Shifts:
    """Of rewards on vectors: whether all stand a step off, by the sums; whether those of some episodes do.

    ``late`` and ``early`` are one number an episode: its mean of D in standard errors, once the mean rewards are those
    of the episodes in which the own row explains more.
    """

    all_rows: RewardShifts
    late: FloatArray
    early: FloatArray


def shifts_of_vectors(rows: Rows) -> Shifts | None:
    """From a sample of the rows; None where states are no vectors, or where too few rows have a neighbour."""
    parts = parts_of_transitions(rows)
    before, after = neighbours(rows) if parts is not None else (np.zeros(0, dtype=np.int64),) * 2
    if parts is None or rows.episode is None or len(after) < 2:
        return None
    features = quadratic(*parts)
    room = min(len(after) // ROWS_PER_FEATURE - 1, MOST_FEATURES) - features.shape[1]
    features = np.column_stack([features, hinges(np.concatenate(parts, axis=1), room)])
    if len(after) < ROWS_PER_FEATURE * (features.shape[1] + 1):
        return None
    _, number = np.unique(rows.episode[after], return_inverse=True)
    features = np.column_stack([np.ones(len(features)), features])
    late = rows.reward[after], features[after], features[before]
    early = rows.reward[before], features[before], features[after]
    sums = RewardShifts(*(sum_by(number, _lacking(*each)) for each in (late, early)))
    return Shifts(sums, *(_deviates(*each, number) for each in (late, early)))


def quadratic(*parts: FloatArray) -> FloatArray:
    """Coordinates, squares and products of several blocks of columns."""
    joined = np.concatenate(parts, axis=1)
    return np.asarray(Quadratic().fit(joined).transform(joined))


def hinges(rows: FloatArray, most: int) -> FloatArray:
    """max(x − q, 0) of every column at its inner quantiles, as many as there is room for."""
    bends = min(most // rows.shape[1], BENDS)
    columns = [x for x in rows.T if len(np.unique(x)) > bends + 1]
    if bends < 1 or not columns:
        return np.zeros((len(rows), 0))
    shares = np.arange(1, bends + 1) / (bends + 1)
    return np.concatenate([np.maximum(x[:, None] - np.quantile(x, shares), 0.0) for x in columns], axis=1)


def transitions_as_numbers(rows: Rows) -> FloatArray | None:
    """(s, a, s′) of every row as numbers; None where they are names."""
    parts = parts_of_transitions(rows)
    return None if parts is None else np.concatenate(parts, axis=1)


def parts_of_transitions(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """s, a and s′ of every row as numbers; None where they are names."""
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
    return here, action, there


def neighbours(rows: Rows) -> tuple[IntArray, IntArray]:
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
    left, rest = (_off(reward, design, _law(reward, design)) for design in (own, neighbour))
    return np.asarray((1.0 - BETTER) * left - rest)


def _deviates(reward: FloatArray, own: FloatArray, neighbour: FloatArray, episode: IntArray) -> FloatArray:
    """The mean of D in standard errors, by episode; where those are few rows or all alike, nothing (−∞).

    Late rewards of some episodes blur the mean rewards of all. So these are fitted again to the episodes that seem to
    have theirs in place, which in healthy logs are nearly all; and both rows are judged by the same mean rewards.
    """
    rows = sum_by(episode, np.ones(len(episode)))
    lacking, found = _lacking(reward, own, neighbour), np.full(len(rows), -np.inf)
    for _ in range(REFITS + 1):
        mean = sum_by(episode, lacking) / rows
        error = np.sqrt(sum_by(episode, (lacking - mean[episode]) ** 2) / np.maximum(rows - 1.0, 1.0) / rows)
        known = (rows >= LEAST_ROWS) & (error > 0)
        found = np.divide(mean, error, out=np.full(len(rows), -np.inf), where=known)
        kept = (found <= IN_PLACE)[episode]
        if kept.mean() < LEAST_KEPT:
            break
        law = _law(reward[kept], own[kept])
        lacking = (1.0 - BETTER) * _off(reward, own, law) - _off(reward, neighbour, law)
    return found


def _law(reward: FloatArray, design: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(design, reward, rcond=1e-10)[0])


def _off(reward: FloatArray, design: FloatArray, law: FloatArray) -> FloatArray:
    """The squares of what a regression leaves; what floats leave is nothing."""
    off = reward - design @ law
    return np.where(np.abs(off) > _ROUNDING * np.abs(reward).max(initial=0.0), off, 0.0) ** 2
