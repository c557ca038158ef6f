"""Given state and action, does what happened before tell what comes next? From rows in the order of their episodes.

If the state is all that matters, what comes of a row has nothing to do with its past, whoever acts: the loggers may be
many, remember, or learn. Episodes are dealt into three folds. Five kinds of sums by episode have mean zero then:

one step back    In the other folds, p(y|x) is the share of the rows of x = (s, a) that led to y, e(y|x, u) that of the
                 rows before which u was, the action or the state of the step before, and n are the rows of (x, u):
                     g(x, u, y) = n / (n + 10) · (e(y|x, u) − p(y|x)) / (p(y|x) + .05).
                 Summed is g less its mean under p: the direction in which u moved the next state elsewhere. Of rewards,
                 likewise, (r − r̄(x)) · n / (n + 10) · (r̄(x, u) − r̄(x)).
the whole past   With φ the reward, how good the next state is, whether it is another, or a column of it, and
                 ε = φ − E(φ|x), summed is ε_t · Σ_{u<t} ε_u / (5 + t). The two ε are about means of different folds, so
                 that the error of neither is met again in the other.
where it was     Of what is a number of the state, with m_t its mean over all states before t, summed is
                 ε_t (m_t − E(m_t|x)): whether an episode is drawn back to where it was.
how long         The same with whether the row ends the episode as outcome, and t as m_t; either sign tells.
alike before     With n the rows of x earlier in the episode, and n(y) of them that led to y as this one does, summed is
                 (n(y) − Σ_{these rows} p(y_u|x)) / (2 + n): whether what happened once happens again.

All are sums of what is new in a row times something that was known before it. Where the number of visits of a pair
hangs on what came of it, the mean of a pair over its own rows is biased; here means come from other episodes, and what
their error leaves is of second order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, sum_by
from mixope.requests.episodes import EpisodeSums
from mixope.requests.replay import FOLDS, Laid, lay
from mixope.requests.stale import paired
from mixope.requests.transitions import Transitions

SHRUNK, DAMPED = 10.0, 0.05
SETTLES, SETTLES_ALIKE = 5.0, 2.0
MOST_COLUMNS = 4
"""Columns of the next state that are followed along the whole past."""
ACTION, STATE, WHOLE, ALIKE = "the action before", "the state before", "the whole past", "the same before"
EARLIER, LASTED = "the mean of the states before", "how long the episode has lasted"
NEXT, REWARD, WORTH, PACE, COLUMN = "the next state", "the reward", "how good the next state is", "the pace", "column"
END = "its end"
_FLOOR = 1e-9


@dataclass(frozen=True)
class Trace:
    """What a past adds to the state in telling an outcome, by episode.

    ``share`` is how much it explains of what the state leaves over, where that is known.
    """

    past: str
    outcome: str
    by_episode: FloatArray
    share: float | None = None


@dataclass(frozen=True)
class Pasts:
    """The rows of all episodes in order, and what their pasts add, whatever is asked."""

    rows: Laid
    traces: tuple[Trace, ...]
    back: tuple[tuple[str, IntArray], ...]
    """One step back: what is known of it, and the number of (s, a) with it, of every row."""
    follows: BoolArray


def pasts_of(transitions: Transitions, sums: EpisodeSums) -> Pasts | None:
    """From rows in order; None where there are none, or no row follows another."""
    if sums.ordered is None:
        return None
    rows = lay(transitions, sums.ordered, sums.totals.logger, unit=sums.totals.clusters().unit)
    follows = np.zeros(len(rows.step), dtype=np.bool_)
    follows[1:] = rows.episode[1:] == rows.episode[:-1]
    if not follows.any():
        return None
    before = [(ACTION, transitions.action[rows.group]), (STATE, rows.state)]
    back = tuple((past, paired(rows.pair, np.append(code[:1], code[:-1]))) for past, code in before)
    found = [*_steps_back(rows, back, follows), *whole_pasts(rows, transitions.observations), _alike(rows)]
    return Pasts(rows, tuple(trace for trace in found if np.count_nonzero(trace.by_episode) > 1), back, follows)


def _steps_back(rows: Laid, back: Sequence[tuple[str, IntArray]], follows: BoolArray) -> Iterator[Trace]:
    for past, kind in back:
        told = _next_told(rows, kind, follows)
        yield Trace(past, NEXT, rows.summed(told), float(told.sum()) / float(follows.sum()))
        yield told_of(rows, rows.reward, past, kind, follows)


def _next_told(rows: Laid, kind: IntArray, follows: BoolArray) -> FloatArray:
    """g of every row, less its mean under p."""
    both = paired(kind, rows.cell)  # (x, u, y)
    first = np.unique(both, return_index=True)[1]
    cell_of, kind_of = rows.cell[first], kind[first]
    pair_of_cell = rows.pair[np.unique(rows.cell, return_index=True)[1]]
    told = np.zeros(len(kind))
    for fold in range(FOLDS):
        fit, judged = follows & (rows.fold != fold), follows & (rows.fold == fold)
        ones = rows.ones[fit]
        of_pair = np.maximum(sum_by(rows.pair[fit], ones, rows.n_pairs), 1.0)
        p = sum_by(rows.cell[fit], ones, rows.n_cells) / of_pair[pair_of_cell]
        n = sum_by(kind[fit], ones, int(kind.max(initial=-1)) + 1)
        e = sum_by(both[fit], ones, len(first)) / np.maximum(n, 1.0)[kind_of]
        pull, damped = n / (n + SHRUNK), p / (p + DAMPED)
        usual = sum_by(pair_of_cell, p * damped, rows.n_pairs)
        mean = sum_by(kind_of, e * damped[cell_of], len(n))
        g = (e[both[judged]] - p[rows.cell[judged]]) / (p[rows.cell[judged]] + DAMPED)
        told[judged] = pull[kind[judged]] * (g - mean[kind[judged]] + usual[rows.pair[judged]])
    return told


def told_of(rows: Laid, values: FloatArray, past: str, kind: IntArray, follows: BoolArray) -> Trace:
    """What one step back tells of a number, rewards for instance."""
    told, left = np.zeros(len(kind)), 0.0
    scale = _FLOOR * float(np.abs(values).max(initial=0.0))
    for fold in range(FOLDS):
        fit, judged = follows & (rows.fold != fold), follows & (rows.fold == fold)
        ones = rows.ones[fit]
        known = sum_by(rows.pair[fit], ones, rows.n_pairs)
        mean = sum_by(rows.pair[fit], values[fit], rows.n_pairs) / np.maximum(known, 1.0)
        n = sum_by(kind[fit], ones, int(kind.max(initial=-1)) + 1)
        given = sum_by(kind[fit], values[fit], len(n)) / np.maximum(n, 1.0)
        mine, seen = mean[rows.pair[judged]], known[rows.pair[judged]] > 0
        off = np.where(seen, values[judged] - mine, 0.0)
        pull = (n / (n + SHRUNK))[kind[judged]] * (given[kind[judged]] - mine)
        told[judged] = np.where((np.abs(off) > scale) & (np.abs(pull) > scale), off * pull, 0.0)
        left += float(off @ off)
    return Trace(past, REWARD, rows.summed(told), float(told.sum()) / left if left > 0 else None)


def whole_pasts(rows: Laid, observations: AnyArray) -> Iterator[Trace]:
    """What the past of the episode tells of rewards, moves and columns of the state."""
    alive = rows.next_state < rows.n_states
    everywhere = np.ones(len(rows.step), dtype=np.bool_)
    visits = np.maximum(sum_by(rows.state, rows.ones, rows.n_states + 1), 1.0)
    worth = sum_by(rows.state, rows.reward, rows.n_states + 1) / visits
    moved = (rows.next_state != rows.state).astype(np.float64)
    yield _followed(rows, REWARD, rows.reward, everywhere)
    yield _followed(rows, PACE, moved, alive)
    yield _lasted(rows)
    of_state = [(WORTH, worth)]
    if observations.ndim > 1:
        columns = enumerate(_ranked(observations)[:MOST_COLUMNS])
        of_state += [(f"{COLUMN} {k}", np.append(column, 0.0)) for k, column in columns]
    for outcome, values in of_state:
        yield _followed(rows, outcome, values[rows.next_state], alive)
        yield _drawn_to(rows, outcome, values, alive)


def _followed(rows: Laid, outcome: str, values: FloatArray, known: BoolArray) -> Trace:
    """Σ ε_t · Σ_{u<t} ε_u / (5 + t)."""
    told, left, size = np.zeros(len(rows.step)), 0.0, 0.0
    for fold in range(FOLDS):
        mine = np.flatnonzero((rows.fold == fold) & known)
        off, again = (_off(rows, values, known, mine, (fold + k) % FOLDS) for k in (1, 2))
        before = _earlier(rows, mine, again)
        told[mine] = 0.5 * (off * before + again * _earlier(rows, mine, off))
        left, size = left + float(off @ off), size + float(before @ before)
    return Trace(WHOLE, outcome, rows.summed(told), _explained(told, left, size))


def _drawn_to(rows: Laid, outcome: str, values: FloatArray, known: BoolArray) -> Trace:
    """Σ ε_t (m_t − E(m_t|x)), m_t the mean of the states before."""
    earlier, before = earlier_sums(values[rows.state], rows.episode)
    mean, known = earlier / np.maximum(before, 1), known & (before > 0)
    told, left, size = np.zeros(len(rows.step)), 0.0, 0.0
    for fold in range(FOLDS):
        mine = np.flatnonzero((rows.fold == fold) & known)
        off = _off(rows, values[rows.next_state], known, mine, (fold + 1) % FOLDS)
        stands = _off(rows, mean, known, mine, (fold + 2) % FOLDS)
        told[mine] = off * stands
        left, size = left + float(off @ off), size + float(stands @ stands)
    return Trace(EARLIER, outcome, rows.summed(told), _explained(told, left, size))


def _lasted(rows: Laid) -> Trace:
    """Whether ends follow how long the episode has lasted; of frail and robust ones, or where the step is missing."""
    ended, everywhere = (rows.next_state >= rows.n_states).astype(np.float64), np.ones(len(rows.step), dtype=np.bool_)
    lasted = earlier_sums(ended, rows.episode)[1].astype(np.float64)
    told, left, size = np.zeros(len(rows.step)), 0.0, 0.0
    for fold in range(FOLDS) if ended.any() else ():
        mine = np.flatnonzero(rows.fold == fold)
        off = _off(rows, ended, everywhere, mine, (fold + 1) % FOLDS)
        stands = _off(rows, lasted, everywhere, mine, (fold + 2) % FOLDS)
        told[mine] = off * stands
        left, size = left + float(off @ off), size + float(stands @ stands)
    return Trace(LASTED, END, rows.summed(told * (1.0 if told.sum() > 0 else -1.0)), _explained(told, left, size))


def _explained(told: FloatArray, left: float, size: float) -> float | None:
    """r²: how much of what is left over a number explains."""
    return float(told.sum()) ** 2 / (left * size) if left * size > 0 else None


def _ranked(observations: AnyArray) -> list[FloatArray]:
    """The columns that vary, by the order of their values."""
    ranks = [np.unique(column, return_inverse=True)[1].ravel() for column in observations.T]
    return [rank / float(rank.max()) for rank in ranks if rank.max(initial=0) > 0]


def _off(rows: Laid, values: FloatArray, known: BoolArray, mine: IntArray, fold: int) -> FloatArray:
    """ε of some rows, about the means of a fold; 0 where that has fewer than two rows of the pair."""
    fit = (rows.fold == fold) & known
    n = sum_by(rows.pair[fit], rows.ones[fit], rows.n_pairs)
    mean = sum_by(rows.pair[fit], values[fit], rows.n_pairs) / np.maximum(n, 1.0)
    off = np.where(n[rows.pair[mine]] >= 2, values[mine] - mean[rows.pair[mine]], 0.0)
    return np.where(np.abs(off) > _FLOOR * np.abs(values).max(initial=0.0), off, 0.0)


def _earlier(rows: Laid, mine: IntArray, off: FloatArray) -> FloatArray:
    """Σ ε of the earlier rows of the episode / (5 + their number)."""
    total, before = earlier_sums(off, rows.episode[mine])
    return np.asarray(total / (SETTLES + before))


def earlier_sums(values: FloatArray, run: IntArray) -> tuple[FloatArray, IntArray]:
    """Σ of the earlier rows of the same run, and their number; rows of a run follow each other."""
    begins = np.flatnonzero(np.append(True, run[1:] != run[:-1])[: len(run)])
    length = np.diff(np.append(begins, len(run)))
    total = np.cumsum(values) - values
    return total - np.repeat(total[begins], length), np.arange(len(run)) - np.repeat(begins, length)


def _alike(rows: Laid) -> Trace:
    """Whether what a pair led to once in an episode it leads to again."""
    turn = np.argsort(rows.episode * rows.n_pairs + rows.pair, kind="stable")
    of_pair = (rows.episode * rows.n_pairs + rows.pair)[turn]
    of_cell = (rows.episode * rows.n_cells + rows.cell)[turn]
    within = np.argsort(of_cell, kind="stable")
    same = np.zeros(len(turn))
    same[within] = earlier_sums(np.zeros(len(turn)), of_cell[within])[1]
    cell, pair, fold = rows.cell[turn], rows.pair[turn], rows.fold[turn]
    told = np.zeros(len(turn))
    for k in range(FOLDS):
        fit, mine = fold != k, np.flatnonzero(fold == k)
        n = sum_by(pair[fit], np.ones(int(fit.sum())), rows.n_pairs)
        p = sum_by(cell[fit], np.ones(int(fit.sum())), rows.n_cells)[cell[mine]] / np.maximum(n[pair[mine]], 1.0)
        usual, before = earlier_sums(p, of_pair[mine])
        told[mine] = np.where(n[pair[mine]] > 0, (same[mine] - usual) / (SETTLES_ALIKE + before), 0.0)
    in_order = np.zeros(len(told))
    in_order[turn] = told
    return Trace(ALIKE, NEXT, rows.summed(in_order))
