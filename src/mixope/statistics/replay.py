"""Does the counted world replay the logs? Rewards by step, as the counts predict them, beside those that were seen.

An episode is followed from its start; its actions are what they were, and the counts say what each of them earns and
leads to. With g_t = 1 at the steps of a band, κ_t the share of episodes that are followed on to step t, and

    V_t(s) = g_t r(s) + κ_{t+1} Σ_{s′} P(s′|s) V_{t+1}(s′),      f_t = g_t r + κ_{t+1} V_{t+1}(s′),

what was seen in the band less what the counts predict there telescopes into the residuals of single rows, f_t less its
mean over all rows of the same (s, a). A row says what it earned and where it led whether or not its episode is followed
on, so that nothing hangs on why episodes were cut. The mean of a pair over the few rows that it has depends on what
came of them (who leaves a state soon has few rows there), so residuals are not formed. The sum is that over pairs of
rows j, k of different episodes that took the same action in the same state,

    S = Σ_x w_x Σ_{j,k at x} ( f_{t(j)}(j) − f_{t(j)}(k) ),      w_x = 1 / (1 + rows at x in a third part of the logs)

which has mean zero whatever the visits are, because that third part alone tells V and w. Episodes are dealt into three
folds, and every two of them are compared with V and w of the third. S is a U-statistic: the sum of all differences in
which an episode takes part is what it adds to the variance (twice what it should where each pair has two rows, which is
on the safe side).

Rows to be predicted (*test*) and rows to predict from (*train*) are all rows, or late and early ones. Episodes longer
than can be followed in one go are followed in windows, each from where it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.statistics.trajectories import OrderedRows
from mixope.statistics.transitions import Transitions, transition_cells

FOLDS = 3
LONGEST = 256
"""Steps that are followed in one go."""
ENTRIES = 1_000_000
"""Numbers of V that are held at once."""
MOST_LEADS, AT_A_TIME = 4_000_000, 250_000
"""Pairs at a step times the states that they lead to: how many are looked at, and how many at a time."""
BANDS = 3
"""Early, middle and late steps."""
MOST_LOGGERS = 8
"""With more loggers than this, none is shown by itself."""


@dataclass(frozen=True)
class Laid:
    """Rows in the order of their episodes; ``cell`` is a row's (s, a, s′), ``next_state`` after an end is the last."""

    state: IntArray
    pair: IntArray
    cell: IntArray
    next_state: IntArray
    reward: FloatArray
    episode: IntArray
    step: IntArray
    logger: IntArray
    fold: IntArray
    """Of every row."""
    fold_of_episode: IntArray
    n_states: int
    n_pairs: int
    n_cells: int
    n_loggers: int

    @cached_property
    def cells_by_pair(self) -> tuple[IntArray, IntArray, IntArray]:
        """The cells in the order of their pairs, where each pair's begin, and the next state of every cell."""
        first = np.unique(self.cell, return_index=True)[1]
        pair, following = self.pair[first], self.next_state[first]
        order = np.argsort(pair, kind="stable")
        begin = np.searchsorted(pair[order], np.arange(self.n_pairs + 1))
        return order, begin, following


def lay(transitions: Transitions, ordered: OrderedRows, logger: IntArray, seed: int = 0) -> Laid:
    """The rows of logs, with their episodes dealt into folds; ``logger`` is that of every episode."""
    t, group, episodes = transitions, ordered.group, ordered.episodes
    episode = episodes.episode
    _, cell = np.unique(transition_cells(t)[group], return_inverse=True)
    fold = dealt(logger, seed)
    ended = t.next_state[group] < 0
    return Laid(
        state=t.state[group],
        pair=t.pair[group],
        cell=cell.ravel(),
        next_state=np.where(ended, t.n_states, t.next_state[group]),
        reward=episodes.reward,
        episode=episode,
        step=episodes.step,
        logger=logger[episode],
        fold=fold[episode],
        fold_of_episode=fold,
        n_states=t.n_states,
        n_pairs=t.n_pairs,
        n_cells=int(cell.max(initial=-1)) + 1,
        n_loggers=len(t.loggers),
    )


def dealt(logger: IntArray, seed: int) -> IntArray:
    """A fold for every episode: those of a logger, and early and late ones, are spread evenly."""
    generator = np.random.default_rng([seed, 53])
    fold = np.empty(len(logger), dtype=np.int64)
    for j in np.unique(logger):
        mine = np.flatnonzero(logger == j)
        triples = np.argsort(generator.random((-(-len(mine) // FOLDS), FOLDS)), axis=1).ravel()
        fold[mine] = triples[: len(mine)]
    return fold


@dataclass(frozen=True)
class Replay:
    """By band of steps, then by logger: Σ (seen − predicted) over ``size`` rows, and what every episode adds to it.

    ``seen`` is the mean reward of the rows that were to be predicted, ``first`` and ``last`` their steps.
    """

    total: FloatArray
    size: FloatArray
    by_episode: FloatArray
    fold: IntArray
    seen: FloatArray
    rows: FloatArray
    first: IntArray
    last: IntArray
    n_bands: int

    @property
    def off(self) -> FloatArray:
        """What was seen less what was predicted, per row."""
        return _ratio(self.total, self.size)

    @property
    def covered(self) -> FloatArray:
        """About the share of the rows that could be predicted: others took the same action in the same state."""
        return _ratio(self.size, self.rows)

    @cached_property
    def _centred(self) -> FloatArray:
        n = np.bincount(self.fold, minlength=FOLDS)
        means = np.stack([sum_by(self.fold, column, FOLDS) / np.maximum(n, 1) for column in self.by_episode.T], axis=1)
        return np.asarray(self.by_episode - means[self.fold])

    @property
    def error(self) -> FloatArray:
        """The standard error of ``off``."""
        return _ratio(np.sqrt(np.sum(self._centred**2, axis=0)), self.size)

    @property
    def degrees(self) -> FloatArray:
        """Of the error: fewer than episodes where a few of them make most of it."""
        squares, n = self._centred**2, len(self.by_episode)
        total = squares.sum(axis=0)
        spread = np.sum(squares**2, axis=0) - total**2 / n
        most = np.full_like(total, n - FOLDS)
        return np.asarray(np.minimum(np.divide(2.0 * total**2, spread, out=most.copy(), where=spread > 0), most))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


@dataclass(frozen=True)
class Replays:
    """All of it, and out of time: None where there is too little to predict from."""

    whole: Replay | None
    later_steps: Replay | None
    later_episodes: Replay | None
    loggers: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Plan:
    """Where the rows to be predicted stand: their place in a window, and the columns that each counts in."""

    place: IntArray
    band: IntArray
    windows: bool
    counts: FloatArray
    """g: what a reward at a place counts in every band, and in all of them."""
    goes_on: FloatArray
    """κ: the share of the rows at a place that are followed from there."""
    by_logger: bool

    @classmethod
    def of(cls, rows: Laid, test: BoolArray, n_bands: int) -> _Plan:
        step = rows.step[test]
        begin, end = int(step.min()), int(step.max()) + 1
        width = min(_width(rows, test, n_bands), end - begin)
        windows = end - begin > width
        band = band_of_steps(step, n_bands, int(rows.step.max()) + 1)
        place = np.where(test, rows.step - begin, 0)
        counts = np.ones((width, n_bands + 1))
        if not windows:
            counts[:, :n_bands] = band[np.arange(width) + begin, None] == np.arange(n_bands)
        place = place % width
        last = np.append(rows.episode[1:] != rows.episode[:-1], True)
        alive = test & (rows.next_state < rows.n_states)
        followed = alive & ~last
        kept = np.bincount(place[followed], minlength=width) / np.maximum(np.bincount(place[alive], minlength=width), 1)
        kept[-1] = 0.0
        return cls(place, band[rows.step], windows, counts, kept, 1 < rows.n_loggers <= MOST_LOGGERS)


def _width(rows: Laid, test: BoolArray, n_bands: int) -> int:
    """How many steps are followed in one go: as many as there is room for V, and for where every pair leads."""
    width = max(2, min(LONGEST, ENTRIES // ((n_bands + 1) * (rows.n_states + 1))))
    kinds = n_bands * max(rows.n_loggers if rows.n_loggers <= MOST_LOGGERS else 1, 1)
    visits = sum_by(rows.pair[test], np.ones(int(test.sum())), rows.n_pairs)
    leads = np.diff(rows.cells_by_pair[1])
    while width > 2 and float(np.minimum(visits, width * kinds) @ leads) > MOST_LEADS:
        width //= 2
    return width


def band_of_steps(step: IntArray, n_bands: int, n_steps: int) -> IntArray:
    """The band of every step, with about as many of the rows in each."""
    n = np.bincount(step, minlength=n_steps)
    before = np.cumsum(n) - n / 2.0
    return np.minimum((before * n_bands / max(int(n.sum()), 1)).astype(np.int64), n_bands - 1)


def replay(rows: Laid, train: BoolArray, test: BoolArray, n_bands: int = BANDS) -> Replay:
    """What was seen on some rows, beside what others predict of them."""
    plan = _Plan.of(rows, test, n_bands)
    n_columns = n_bands + (rows.n_loggers if plan.by_logger else 0)
    found = _Sums(np.zeros(n_columns), np.zeros(n_columns), np.zeros((len(rows.fold_of_episode), n_columns)))
    for third in range(FOLDS):
        value, weight = _values(rows, plan, train & (rows.fold == third)), _weights(rows, train & (rows.fold == third))
        for one in range(FOLDS):
            other = FOLDS - third - one
            if third != one:
                _compare(rows, plan, value, weight, test & (rows.fold == one), train & (rows.fold == other), found)
    return _record(rows, plan, test, n_bands, found)


@dataclass(frozen=True)
class _Sums:
    """What is added up."""

    total: FloatArray
    size: FloatArray
    by_episode: FloatArray


def _record(rows: Laid, plan: _Plan, test: BoolArray, n_bands: int, found: _Sums) -> Replay:
    masks = [plan.band == k for k in range(n_bands)]
    masks += [rows.logger == j for j in range(len(found.total) - n_bands)]
    mine = [test & mask for mask in masks]
    n = np.array([float(m.sum()) for m in mine])
    earned = np.array([float(rows.reward[m].sum()) for m in mine])
    first = np.array([int(rows.step[m].min()) if m.any() else 0 for m in mine])
    last = np.array([int(rows.step[m].max()) if m.any() else 0 for m in mine])
    # a row is compared twice: with either of the other folds
    total, size, by_episode = (0.5 * sums for sums in (found.total, found.size, found.by_episode))
    return Replay(total, size, by_episode, rows.fold_of_episode, _ratio(earned, n), n, first, last, n_bands)


def _values(rows: Laid, plan: _Plan, mine: BoolArray) -> FloatArray:
    """V at every place, from some rows: (places + 1) × (states + 1, the last after an end) × (bands + 1).

    A state that these rows do not leave is worth what the others are on average.
    """
    n, (width, n_columns) = rows.n_states, plan.counts.shape
    visits = sum_by(rows.state[mine], np.ones(int(mine.sum())), n)
    reward = sum_by(rows.state[mine], rows.reward[mine], n) / np.maximum(visits, 1.0)
    share = 1.0 / np.maximum(visits, 1.0)[rows.state[mine]]
    moves = sparse.csr_array((share, (rows.state[mine], rows.next_state[mine])), shape=(n, n + 1))
    usual, unseen = visits / max(float(visits.sum()), 1.0), np.append(visits == 0, False)
    value = np.zeros((width + 1, n + 1, n_columns))
    for place in range(width - 1, -1, -1):
        value[place, :n] = reward[:, None] * plan.counts[place] + plan.goes_on[place] * (moves @ value[place + 1])
        value[place, unseen] = usual @ value[place, :n]
    return value


def _weights(rows: Laid, mine: BoolArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + sum_by(rows.pair[mine], np.ones(int(mine.sum())), rows.n_pairs)))


def _compare(
    rows: Laid, plan: _Plan, value: FloatArray, weight: FloatArray, test: BoolArray, train: BoolArray, found: _Sums
) -> None:
    """All rows of one fold with all rows of another that took the same action in the same state."""
    n_columns, n_bands = len(found.total), plan.counts.shape[1] - 1
    there = sum_by(rows.pair[train], np.ones(int(train.sum())), rows.n_pairs)
    j, k = np.flatnonzero(test & (there[rows.pair] > 0)), np.flatnonzero(train)
    if not len(j):
        return
    columns = np.append(np.arange(n_bands), np.full(n_columns - n_bands, n_bands))
    met = _Met.of_rows(rows, plan, j, columns, n_bands)
    counts, w = plan.counts[:, columns], weight[met.pair]
    place, of = plan.place[j], met.of
    onward = plan.goes_on[place, None] * value[place + 1, rows.next_state[j]][:, columns]
    worth = (rows.reward[j, None] * counts[place] + onward) * met.mask[of]
    scale = met.mask * counts[met.place]
    theirs, moved = _elsewhere(rows, plan, value, met, k, columns, w * met.rows)
    theirs += sum_by(rows.pair[k], rows.reward[k], rows.n_pairs)[met.pair, None] * scale
    share = (w * there[met.pair])[of]
    mine = share[:, None] * worth - (w[:, None] * theirs)[of]
    found.total[:] += mine.sum(axis=0)
    found.size[:n_bands] += sum_by(plan.band[j], share, n_bands)
    if plan.by_logger:
        found.size[n_bands:] += sum_by(rows.logger[j], share, n_columns - n_bands)
    found.by_episode[:] += _sum_rows(rows.episode[j], mine, len(found.by_episode))
    # the same differences, as the rows that these are compared with see them
    constant = _sum_rows(met.pair, w[:, None] * _sum_rows(of, worth, len(w)), rows.n_pairs)
    slope = _sum_rows(met.pair, (w * met.rows)[:, None] * scale, rows.n_pairs)
    back = constant[rows.pair[k]] - slope[rows.pair[k]] * rows.reward[k, None] - moved[rows.cell[k]]
    found.by_episode[:] += _sum_rows(rows.episode[k], back, len(found.by_episode))


@dataclass(frozen=True)
class _Met:
    """Rows to be predicted by pair and place: which each row belongs to, and of each how many rows in what columns."""

    of: IntArray
    pair: IntArray
    place: IntArray
    rows: FloatArray
    mask: FloatArray

    @classmethod
    def of_rows(cls, rows: Laid, plan: _Plan, j: IntArray, columns: IntArray, n_bands: int) -> _Met:
        kind = _kinds(rows, plan, j)
        code = (rows.pair[j] * plan.counts.shape[0] + plan.place[j]) * (int(kind.max()) + 1) + kind
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        mask = _mask(rows, plan, j[first], n_bands, len(columns))
        n = np.bincount(of.ravel()).astype(np.float64)
        return cls(of.ravel(), rows.pair[j][first], plan.place[j][first], n, mask)


def _elsewhere(
    rows: Laid, plan: _Plan, value: FloatArray, met: _Met, k: IntArray, columns: IntArray, size: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where the rows k went on from the same pairs, at what that is worth at a place: Σ κ V(s′) for every entry of
    ``met``, and the same for every (s, a, s′), by ``size``."""
    n = sum_by(rows.cell[k], np.ones(len(k)), rows.n_cells)
    order, begin, following = rows.cells_by_pair
    leads = begin[met.pair + 1] - begin[met.pair]
    theirs, moved = np.zeros((len(leads), len(columns))), np.zeros((rows.n_cells, len(columns)))
    chunk = np.cumsum(leads) // AT_A_TIME
    for low, high in pairwise([0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(leads)]):
        some = leads[low:high]
        at = np.repeat(np.arange(low, high), some)
        inside = np.arange(len(at)) - np.repeat(np.cumsum(some) - some, some)
        cell = order[np.repeat(begin[met.pair[low:high]], some) + inside]
        at, cell = at[n[cell] > 0], cell[n[cell] > 0]
        place = met.place[at]
        onward = plan.goes_on[place, None] * value[place + 1, following[cell]][:, columns] * met.mask[at]
        theirs[low:high] += _sum_rows(at - low, onward * n[cell, None], high - low)
        moved += _sum_rows(cell, size[at, None] * onward, rows.n_cells)
    return theirs, moved


def _kinds(rows: Laid, plan: _Plan, j: IntArray) -> IntArray:
    kind = plan.band[j] if plan.windows else np.zeros(len(j), dtype=np.int64)
    return kind * rows.n_loggers + rows.logger[j] if plan.by_logger else kind


def _mask(rows: Laid, plan: _Plan, j: IntArray, n_bands: int, n_columns: int) -> FloatArray:
    mask = np.ones((len(j), n_columns))
    if plan.windows:
        mask[:, :n_bands] = plan.band[j, None] == np.arange(n_bands)
    if plan.by_logger:
        mask[:, n_bands:] = rows.logger[j, None] == np.arange(n_columns - n_bands)
    return mask


def _sum_rows(group: IntArray, values: FloatArray, n: int) -> FloatArray:
    return np.stack([sum_by(group, column, n) for column in values.T], axis=1)
