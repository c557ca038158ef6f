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

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from mixope.base.arrays import BoolArray, FloatArray, IntArray, distinct, sum_by
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import UNFOLLOWED, Transitions, transition_cells

FOLDS = 3
LONGEST, AHEAD = 64, 16
"""Steps that are followed in one go, by step and by logger."""
ENTRIES = 1_000_000
"""Numbers of V that are held at once."""
MOST_LEADS, AT_A_TIME = 4_000_000, 250_000
"""Pairs at a step times the states that they lead to: how many are looked at, and how many at a time."""
BANDS = 3
"""Early, middle and late steps."""
MOST_ROWS = 30_000
"""Of more rows, so many are compared one by one, in whole episodes from the first to the last."""
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
    group: IntArray
    """The number of a row's transition, as it was counted."""
    n_states: int
    n_pairs: int
    n_cells: int
    n_loggers: int
    cluster: IntArray | None = None
    """The unit of every episode, where they are named."""

    def summed(self, values: FloatArray) -> FloatArray:
        """Values of rows by episode, or by unit."""
        n = len(self.fold_of_episode)
        if self.cluster is None:
            return sum_by(self.episode, values, n)
        return sum_by(self.cluster[self.episode], values, int(self.cluster.max(initial=-1)) + 1)

    @cached_property
    def ones(self) -> FloatArray:
        """What every row counts."""
        return np.ones(len(self.step))

    @cached_property
    def cells_by_pair(self) -> tuple[IntArray, IntArray, IntArray]:
        """The cells in the order of their pairs, where each pair's begin, and the next state of every cell."""
        first = np.unique(self.cell, return_index=True)[1]
        pair, following = self.pair[first], self.next_state[first]
        order = np.argsort(pair, kind="stable")
        begin = np.searchsorted(pair[order], np.arange(self.n_pairs + 1))
        return order, begin, following


def lay(
    transitions: Transitions, ordered: OrderedRows, logger: IntArray, seed: int = 0, unit: IntArray | None = None
) -> Laid:
    """The rows of logs, with their episodes (or units) dealt into folds; ``logger`` is that of every episode.

    Rows after which nobody knows what came are left out: they are the last of their episodes. Those that ended where
    the recorder stopped would be left out too if they had gone on, so that as large a share of the ends is.
    """
    t, episodes = transitions, ordered.episodes
    told = _told(t.next_state[ordered.group], episodes.step, logger[episodes.episode], seed)
    group, episode = ordered.group[told], episodes.episode[told]
    _, cell = np.unique(transition_cells(t)[group], return_inverse=True)
    fold = dealt(logger, seed) if unit is None else dealt(logger[_first_of(unit)], seed)[unit]
    ended = t.next_state[group] < 0
    return Laid(
        state=t.state[group],
        pair=t.pair[group],
        cell=cell.ravel(),
        next_state=np.where(ended, t.n_states, t.next_state[group]),
        reward=episodes.reward[told],
        episode=episode,
        step=episodes.step[told],
        logger=logger[episode],
        fold=fold[episode],
        fold_of_episode=fold,
        group=group,
        n_states=t.n_states,
        n_pairs=t.n_pairs,
        n_cells=int(cell.max(initial=-1)) + 1,
        n_loggers=len(t.loggers),
        cluster=unit,
    )


def _told(next_state: IntArray, step: IntArray, logger: IntArray, seed: int) -> IntArray:
    """Rows that tell where they lead, and of the ends the share that would have told it at that step.

    Whether the recorder stopped has nothing to do with what came of a row; whether it kept one without a next
    observation has, because an end needs none. Of the rows of a logger at a step that did not end, u were not followed;
    so of those that ended, a share of 1 − u is kept, by chance.
    """
    lost, ended = next_state == UNFOLLOWED, next_state < 0
    if not lost.any():
        return np.arange(len(next_state))
    _, place = np.unique(np.stack([logger, step]), axis=1, return_inverse=True)
    place, n = place.ravel(), int(place.max()) + 1
    went_on = sum_by(place, (lost | ~ended).astype(np.float64), n)
    share = sum_by(place, lost.astype(np.float64), n) / np.maximum(went_on, 1.0)
    drawn = np.random.default_rng([seed, 59]).random(len(next_state)) < share[place]
    return np.flatnonzero(~lost & ~(ended & drawn))


def dealt(logger: IntArray, seed: int) -> IntArray:
    """A fold for every episode: those of a logger, and early and late ones, are spread evenly."""
    generator = np.random.default_rng([seed, 53])
    fold = np.empty(len(logger), dtype=np.int64)
    for j in np.unique(logger):
        mine = np.flatnonzero(logger == j)
        triples = np.argsort(generator.random((-(-len(mine) // FOLDS), FOLDS)), axis=1).ravel()
        fold[mine] = triples[: len(mine)]
    return fold


def _first_of(unit: IntArray) -> IntArray:
    """The first episode of every unit."""
    return np.asarray(np.unique(unit, return_index=True)[1], dtype=np.int64)


@dataclass(frozen=True)
class Replay:
    """By band of steps, or by logger: Σ (seen − predicted) over ``size`` rows, and what every episode adds to it.

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

    @property
    def off(self) -> FloatArray:
        """What was seen less what was predicted, per row."""
        return _ratio(self.total, self.size)

    @property
    def covered(self) -> FloatArray:
        """About the share of the rows that could be predicted: others took the same action in the same state."""
        return _ratio(self.size, self.rows)

    def by_unit(self, unit: IntArray | None) -> Replay:
        """With what every unit adds to it, where episodes belong to some, which were dealt into folds whole."""
        if unit is None:
            return self
        sums = [sum_by(unit, column) for column in self.by_episode.T]
        return replace(self, by_episode=np.stack(sums, axis=1), fold=self.fold[_first_of(unit)])

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
    by_logger: Replay | None
    later_steps: Replay | None
    later_episodes: Replay | None
    loggers: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Plan:
    """Where the rows to be predicted stand: their place in a window, and the kind that each counts in.

    There are several bands of places or several kinds of rows, and a column for each of them.
    """

    place: IntArray
    kind: IntArray
    n_kinds: int
    counts: FloatArray
    """g: what a reward at a place counts in every band."""
    goes_on: FloatArray
    """κ: the share of the rows at a place that are followed from there."""

    @property
    def width(self) -> int:
        """How many steps are followed in one go."""
        return len(self.counts)

    @classmethod
    def by_step(cls, rows: Laid, test: BoolArray, n_bands: int) -> _Plan:
        """Bands of steps from the starts of the episodes; of long ones, from where a window begins."""
        step = rows.step[test]
        begin, end = int(step.min()), int(step.max()) + 1
        band = band_of_steps(step, n_bands, int(rows.step.max()) + 1)
        width = min(_width(rows, test, n_bands, LONGEST), end - begin)
        place = np.where(test, rows.step - begin, 0) % width
        if end - begin > width:
            return cls(place, band[rows.step], n_bands, np.ones((width, 1)), _followed(rows, test, place, width))
        counts = (band[np.arange(width) + begin, None] == np.arange(n_bands)).astype(np.float64)
        return cls(place, np.zeros_like(place), 1, counts, _followed(rows, test, place, width))

    @classmethod
    def by_logger(cls, rows: Laid, test: BoolArray) -> _Plan:
        """All steps of every logger, some of them at a time."""
        width = min(_width(rows, test, rows.n_loggers, AHEAD), int(rows.step.max()) + 1)
        place = rows.step % width
        return cls(place, rows.logger, rows.n_loggers, np.ones((width, 1)), _followed(rows, test, place, width))


def _width(rows: Laid, test: BoolArray, n_columns: int, most: int) -> int:
    """As many steps as there is room for V, and for where every pair leads."""
    width = max(2, min(most, ENTRIES // (n_columns * (rows.n_states + 1))))
    visits = sum_by(rows.pair[test], np.ones(int(test.sum())), rows.n_pairs)
    leads = np.diff(rows.cells_by_pair[1])
    while width > 2 and float(np.minimum(visits, width * n_columns) @ leads) > MOST_LEADS:
        width //= 2
    return width


def _followed(rows: Laid, test: BoolArray, place: IntArray, width: int) -> FloatArray:
    """κ of every place; nothing is followed beyond a window."""
    last = np.append(rows.episode[1:] != rows.episode[:-1], True)
    alive = test & (rows.next_state < rows.n_states)
    goes_on = np.bincount(place[alive & ~last], minlength=width) / np.maximum(
        np.bincount(place[alive], minlength=width), 1
    )
    goes_on[-1] = 0.0
    return goes_on


def band_of_steps(step: IntArray, n_bands: int, n_steps: int) -> IntArray:
    """The band of every step, with about as many of the rows in each."""
    n = np.bincount(step, minlength=n_steps)
    before = np.cumsum(n) - n / 2.0
    return np.minimum((before * n_bands / max(int(n.sum()), 1)).astype(np.int64), n_bands - 1)


def replay(rows: Laid, train: BoolArray, test: BoolArray, n_bands: int = BANDS) -> Replay:
    """What was seen on some rows, by band of steps, beside what others predict of them."""
    plan = _Plan.by_step(rows, test, n_bands)
    band = band_of_steps(rows.step[test], n_bands, int(rows.step.max()) + 1)
    return _replayed(rows, plan, train, test, band[rows.step], n_bands)


def replay_by_logger(rows: Laid) -> Replay:
    """The same of each logger's rows, predicted from everybody's."""
    everything = np.ones(len(rows.step), dtype=np.bool_)
    return _replayed(rows, _Plan.by_logger(rows, everything), everything, everything, rows.logger, rows.n_loggers)


def _replayed(rows: Laid, plan: _Plan, train: BoolArray, test: BoolArray, column: IntArray, n_columns: int) -> Replay:
    """All three choices of the fold that tells V; ``column`` is where a row's reward is counted."""
    total, size = np.zeros(n_columns), np.zeros(n_columns)
    by_episode = np.zeros((len(rows.fold_of_episode), n_columns))
    for third in range(FOLDS):
        mine = train & (rows.fold == third)
        known = _Known(_ahead(rows, plan, mine), 1.0 / (1.0 + sum_by(rows.pair[mine], rows.ones[mine], rows.n_pairs)))
        for one in range(FOLDS):
            other = FOLDS - third - one
            if third == one:
                continue
            j, k = np.flatnonzero(test & (rows.fold == one)), np.flatnonzero(train & (rows.fold == other))
            added, share = _compare(rows, plan, known, j, k, by_episode)
            total += added
            size += sum_by(column[j], share, n_columns)
    n = sum_by(column[test], rows.ones[test], n_columns)
    earned = sum_by(column[test], rows.reward[test], n_columns)
    first, last = np.full(n_columns, np.iinfo(np.int64).max), np.zeros(n_columns, dtype=np.int64)
    np.minimum.at(first, column[test], rows.step[test])
    np.maximum.at(last, column[test], rows.step[test])
    # a row is compared twice: with either of the other folds
    halves = 0.5 * total, 0.5 * size, 0.5 * by_episode
    return Replay(*halves, rows.fold_of_episode, _ratio(earned, n), n, first, last)


@dataclass(frozen=True)
class _Known:
    """What a third of the logs tells: κ V by place and next state, and w of every pair."""

    ahead: FloatArray
    weight: FloatArray


def _ahead(rows: Laid, plan: _Plan, mine: BoolArray) -> FloatArray:
    """κ_{t+1} V_{t+1} from some rows: (places × (states + 1, the last after an end)) × bands.

    A state that these rows do not leave is worth what the others are on average.
    """
    n, n_bands = rows.n_states, plan.counts.shape[1]
    visits = sum_by(rows.state[mine], rows.ones[mine], n)
    reward = sum_by(rows.state[mine], rows.reward[mine], n) / np.maximum(visits, 1.0)
    share = 1.0 / np.maximum(visits, 1.0)[rows.state[mine]]
    moves = sparse.csr_array((share, (rows.state[mine], rows.next_state[mine])), shape=(n, n + 1))
    usual, unseen = visits / max(float(visits.sum()), 1.0), np.append(visits == 0, False)
    ahead, value = np.zeros((plan.width, n + 1, n_bands)), np.zeros((n + 1, n_bands))
    for place in range(plan.width - 1, -1, -1):
        ahead[place] = plan.goes_on[place] * value
        value[:n] = reward[:, None] * plan.counts[place] + moves @ ahead[place]
        value[unseen] = usual @ value[:n]
    return ahead.reshape(-1, n_bands)


def _compare(
    rows: Laid, plan: _Plan, known: _Known, j: IntArray, k: IntArray, by_episode: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """All rows j with all rows k that took the same action in the same state: the sum by column, w n of every row j.

    What each difference is worth is added to both of its episodes.
    """
    there = sum_by(rows.pair[k], rows.ones[k], rows.n_pairs)
    pair, place, kind, kinds = rows.pair[j], plan.place[j], plan.kind[j], plan.n_kinds
    code, of = distinct((pair * plan.width + place) * kinds + kind, rows.n_pairs * plan.width * kinds)
    met = _Met(
        code // kinds // plan.width, code // kinds % plan.width, code % kinds, np.bincount(of, minlength=len(code))
    )
    w = known.weight[met.pair]
    worth = rows.reward[j, None] * plan.counts[place] + known.ahead[place * (rows.n_states + 1) + rows.next_state[j]]
    theirs, moved = _elsewhere(rows, plan, known, met, k, w * met.rows)
    theirs += sum_by(rows.pair[k], rows.reward[k], rows.n_pairs)[met.pair, None] * plan.counts[met.place]
    share = (w * there[met.pair])[of]
    mine = share[:, None] * worth - (w[:, None] * theirs)[of]
    by_episode += _spread(rows.episode[j] * kinds + kind, mine, by_episode.shape)
    # the same differences, as the rows that these are compared with see them
    entry, size = met.pair * kinds + met.kind, rows.n_pairs * kinds
    constant = _sum_rows(entry, w[:, None] * _sum_rows(of, worth, len(w)), size)
    slope = _sum_rows(entry, (w * met.rows)[:, None] * plan.counts[met.place], size)
    for c in range(kinds):
        own = rows.pair[k] * kinds + c
        back = constant[own] - slope[own] * rows.reward[k, None] - moved[rows.cell[k] * kinds + c]
        by_episode += _spread(rows.episode[k] * kinds + c, back, by_episode.shape)
    return _sum_rows(kind, mine, kinds).ravel(), share


@dataclass(frozen=True)
class _Met:
    """Where rows to be predicted are: every pair, place and kind among them, with its number of rows."""

    pair: IntArray
    place: IntArray
    kind: IntArray
    rows: IntArray


def _elsewhere(
    rows: Laid, plan: _Plan, known: _Known, met: _Met, k: IntArray, size: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Where the rows k went on from the same pairs, at what that is worth at a place: Σ κ V(s′) for every entry of
    ``met``, and for every (s, a, s′) and kind, by ``size``."""
    n = sum_by(rows.cell[k], rows.ones[k], rows.n_cells)
    order, begin, following = rows.cells_by_pair
    leads = begin[met.pair + 1] - begin[met.pair]
    n_bands, n_moved = plan.counts.shape[1], rows.n_cells * plan.n_kinds
    theirs, moved = np.zeros((len(leads), n_bands)), np.zeros((n_moved, n_bands))
    chunk = np.cumsum(leads) // AT_A_TIME
    for low, high in pairwise([0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(leads)]):
        some = leads[low:high]
        at = np.repeat(np.arange(low, high), some)
        inside = np.arange(len(at)) - np.repeat(np.cumsum(some) - some, some)
        cell = order[np.repeat(begin[met.pair[low:high]], some) + inside]
        onward = known.ahead[met.place[at] * (rows.n_states + 1) + following[cell]]
        theirs[low:high] += _sum_rows(at - low, onward * n[cell, None], high - low)
        moved += _sum_rows(cell * plan.n_kinds + met.kind[at], size[at, None] * onward, n_moved)
    return theirs, moved


def _sum_rows(group: IntArray, values: FloatArray, n: int) -> FloatArray:
    return np.stack([sum_by(group, column, n) for column in values.T], axis=1)


def _spread(entry: IntArray, values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """By episode and column: of several kinds, or of several bands."""
    kinds = shape[1] // values.shape[1]
    return _sum_rows(entry, values, shape[0] * kinds).reshape(shape)
