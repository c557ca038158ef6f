"""What happened before a row, where states are vectors: does it tell what comes of the row, given state and action?

Whole episodes are taken (:class:`WholeEpisodes`), put in order, and dealt into three folds. With x = (s, a), y what
comes of a row and u what was known before it, regressions on x (a quadratic, or that with bends and bumps, whichever
leaves less) are fitted in one fold for y and in another for u, and judged in the third, so that their errors have
nothing to do with each other:

    ε = y − ŷ(x),   η = u − û(x),   and with b the regression of ε on η in the other folds     Σ ε · ηb   by episode

has mean zero if the state is all: the generalised covariance measure of Shah and Peters (2020). For y stand the reward,
and what a row is worth, r + γ V(s′) with V a regression of what is still to come. For u stand

    the action before      a₋₁
    how the state changed  s − s₋₁: differences, because features see no difference of two columns that are close
    the past               means of all earlier rewards and states of the episode, of the ε so far, and of ε · a times a

A regression only approximates. What is left of y may be a smooth function of x that it missed, which hangs together
along an episode; so that a gain counts only where it is a good part of what is left over, and that a good part of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, sum_by
from mixope.features import NormalisedBumps, StateEncoding
from mixope.features.quadratic import Quadratic
from mixope.logs import Schema
from mixope.requests.pasts import REWARD, SETTLES, WORTH, earlier_sums
from mixope.requests.replay import FOLDS, dealt
from mixope.requests.request import Batch, RowRequest
from mixope.requests.rows import Rows, episode_hash
from mixope.requests.sample import mixed
from mixope.requests.shifts import hinges, parts_of_transitions

BEFORE, CHANGE, PAST = "the action before", "how the state changed", "the past of the episode"
GAMMA = 0.95
MOST_FEATURES, ROWS_PER_FEATURE = 200, 12
RIDGE = 1e-4
MOST_BENDS, LEAST_BUMPS = 60, 10
LEAST_ROWS, LEAST_EPISODES = 600, 12
EPISODE_ROWS, MOST_STEPS = 10_000, 1_000
MOST_COLUMNS = 6
COLUMN = "column "
FAR_OUT, OUT = 0.98, 2.0
"""Residuals are held to so many times this quantile of their size."""
USUAL = 0.995
"""The quantiles to which values of next states are held."""


@dataclass(frozen=True)
class VectorTrace:
    """What a past tells of an outcome, by episode; its share of what the state leaves over, and what that is of all.

    ``helps`` names what is known before that helps most.
    """

    past: str
    outcome: str
    by_episode: FloatArray
    share: float
    left: float
    helps: str


@dataclass(frozen=True)
class InOrder:
    """Rows of whole episodes in order; states and actions as numbers, with their names."""

    here: FloatArray
    action: FloatArray
    there: FloatArray
    reward: FloatArray
    ended: FloatArray
    episode: IntArray
    logger: IntArray
    """Of every episode."""
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    """Which columns of the state are numbers."""
    unit: IntArray | None = None
    """Of every episode, by which they are dealt into folds and added up."""


@dataclass(frozen=True)
class ChosenEpisodes:
    """Rows of the episodes whose hashes are smallest, with their steps; ``size`` rows are wanted."""

    rows: Rows
    step: IntArray
    hashes: AnyArray
    size: int

    def merge(self, other: ChosenEpisodes) -> ChosenEpisodes:
        """The smallest of both."""
        rows = Rows.concatenate([self.rows, other.rows])
        step, hashes = (np.concatenate(pair) for pair in ((self.step, other.step), (self.hashes, other.hashes)))
        return ChosenEpisodes(rows, step, hashes, self.size).smallest()

    def smallest(self) -> ChosenEpisodes:
        """No more episodes than are wanted; all rows of the last one stay."""
        if len(self.hashes) <= self.size:
            return self
        kept = np.flatnonzero(self.hashes <= np.partition(self.hashes, self.size - 1)[self.size - 1])
        return self._take(kept)

    def in_key_order(self) -> ChosenEpisodes:
        """By episode and step, in whatever order they came."""
        return self._take(np.lexsort((self.step, self.hashes)))

    def _take(self, chosen: IntArray) -> ChosenEpisodes:
        return ChosenEpisodes(self.rows.take(chosen), self.step[chosen], self.hashes[chosen], self.size)

    def in_order(self, schema: Schema) -> InOrder | None:
        """Episode by episode; None where states are no vectors, or where none has two rows.

        Rows that hash alike, and are no episode, are left out.
        """
        parts = parts_of_transitions(self.rows)
        if parts is None or self.rows.episode is None or not len(self.step):
            return None
        turn = np.lexsort((self.step, self.rows.episode))
        episode, step = self.rows.episode[turn], self.step[turn]
        again = episode[1:][(episode[1:] == episode[:-1]) & (step[1:] != step[:-1] + 1)]
        turn = turn[~np.isin(episode, again)]
        rows, episode = self.rows.take(turn), np.unique(self.rows.episode[turn], return_inverse=True)[1].ravel()
        if len(rows) < LEAST_ROWS:
            return None
        here, action, there = (_standard(part[turn], parts[1 if k == 1 else 0][turn]) for k, part in enumerate(parts))
        first = np.unique(episode, return_index=True)[1]
        codes = [np.unique(rows.logger[first], return_inverse=True)[1].ravel()]
        if rows.draw is not None:
            codes.append(np.unique(rows.draw[first], return_inverse=True)[1].ravel())
        names, numbers = _names(self.rows, schema)
        ended = rows.terminated.astype(np.float64)
        return InOrder(here, action, there, rows.reward, ended, episode, codes[0], names, numbers, *codes[1:])


def _standard(values: FloatArray, like: FloatArray) -> FloatArray:
    spread = like.std(axis=0)
    return np.asarray((values - like.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _names(rows: Rows, schema: Schema) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """What the columns of encoded states are called, and which of them are numbers."""
    width = rows.observation.reshape(len(rows), -1).shape[1]
    plain = tuple(name.removeprefix("observation.") for name in schema.observation)
    if len(plain) != width:
        plain = tuple(map(str, range(width)))
    named = tuple(f"component {name}" if name.isdigit() else name for name in plain)
    if rows.roles is None:
        return named, tuple(range(width))
    encoding = StateEncoding.fit(rows.observation.reshape(len(rows), -1), rows.roles)
    source = encoding.source
    return tuple(named[k] for k in source), tuple(j for j, k in enumerate(source) if rows.roles[k] == "number")


@dataclass(frozen=True)
class WholeEpisodes(RowRequest):
    """The request for about ``size`` rows in whole episodes, chosen by a hash of their ids; of long ones the first."""

    size: int = EPISODE_ROWS
    seed: int = 0

    def of(self, batch: Batch) -> ChosenEpisodes:
        """The smallest hashes of some rows."""
        hashes = episode_hash(batch.table, ("episode_id",)).astype(np.uint64)
        step = np.asarray(batch.table.column("step").fill_null(-1).to_numpy()).astype(np.int64)
        mine = np.flatnonzero((step >= 0) & (step <= MOST_STEPS))
        found = mixed(hashes ^ mixed(np.uint64((self.seed + 1) & 0xFFFFFFFF)))
        return ChosenEpisodes(batch.rows.take(mine), step[mine], found[mine], self.size).smallest()


def vector_pasts(rows: InOrder, seed: int = 0) -> tuple[VectorTrace, ...]:
    """All traces; none where rows or episodes are too few."""
    unit = np.arange(len(rows.logger)) if rows.unit is None else rows.unit
    cluster = unit[rows.episode]
    follows = np.append(False, rows.episode[1:] == rows.episode[:-1])
    if len(rows.reward) < LEAST_ROWS or min(len(np.unique(unit)), int(follows.sum())) < LEAST_EPISODES:
        return ()
    fold = dealt(rows.logger[np.unique(unit, return_index=True)[1]], seed)[cluster]
    fits = _Regressions.of(np.concatenate([rows.here, rows.action], axis=1), fold, seed)
    plain = [
        (BEFORE, _shifted(rows.action) * follows[:, None], (BEFORE,) * rows.action.shape[1]),
        (
            CHANGE,
            (rows.here - _shifted(rows.here)) * follows[:, None],
            tuple(f"how {name} changed" for name in rows.columns),
        ),
    ]
    judged, found = _Judge(fold, follows, cluster), []
    stands = [fits.left_over(u, 2) for _, u, _ in plain]
    for name, y in _outcomes(rows, seed):
        first, second = (fits.left_over(y[:, None], k) for k in (1, 2))
        past, names = _past(rows, second[:, 0])
        groups = [*zip(plain, stands, strict=True), ((PAST, past, names), fits.left_over(past, 2))]
        for (what, _, helpers), eta in groups:
            trace = judged(first[:, 0], eta, y)
            if trace is not None:
                by_episode, share, left, best = trace
                found.append(VectorTrace(what, name, by_episode, share, left, helpers[best]))
    return tuple(found)


def _outcomes(rows: InOrder, seed: int) -> Iterator[tuple[str, FloatArray]]:
    """The reward, what a row is worth, and how columns change; but for those that never vary."""
    change = rows.there - rows.here
    several = [(REWARD, rows.reward), (WORTH, _worth(rows, seed))]
    several += [(f"{COLUMN}{rows.columns[j]}", change[:, j]) for j in rows.numbers[:MOST_COLUMNS]]
    for name, y in several:
        if y.std() > 1e-9 * max(float(np.abs(y).max()), 1e-300):
            yield name, y


@dataclass(frozen=True)
class _Regressions:
    """Regressions on (s, a) in every fold: on a quadratic, and on that with bends and bumps."""

    fold: IntArray
    designs: tuple[FloatArray, ...]
    inverses: tuple[tuple[FloatArray, ...], ...]

    @classmethod
    def of(cls, x: FloatArray, fold: IntArray, seed: int) -> _Regressions:
        room = min(len(x) // (ROWS_PER_FEATURE * FOLDS), MOST_FEATURES)
        plain = [np.ones((len(x), 1)), Quadratic().fit(x).transform(x)]
        room -= plain[1].shape[1]
        bends = hinges(x, min(room // 3, MOST_BENDS))
        bumps = room - bends.shape[1]
        rich = [*plain, bends, *([NormalisedBumps(bumps).fit(x, seed).transform(x)] if bumps >= LEAST_BUMPS else [])]
        designs = tuple(_scaled(np.concatenate(parts, axis=1)) for parts in (plain, rich))
        return cls(fold, designs, tuple(tuple(_inverse(z[fold == k]) for k in range(FOLDS)) for z in designs))

    def left_over(self, y: FloatArray, ahead: int) -> FloatArray:
        """y less its regression in the fold that comes so many later: column by column, the one that leaves less.

        A regression says no more than what y usually is, and a few that are far out are brought to a line, so that no
        single row decides.
        """
        found = []
        for z, inverses in zip(self.designs, self.inverses, strict=True):
            left = np.zeros_like(y)
            for k in range(FOLDS):
                mine, fit = self.fold == k, self.fold == (k + ahead) % FOLDS
                low, high = np.quantile(y[fit], (1.0 - USUAL, USUAL), axis=0)
                law = inverses[(k + ahead) % FOLDS] @ (z[fit].T @ y[fit])
                left[mine] = y[mine] - np.clip(z[mine] @ law, low, high)
            line = OUT * np.quantile(np.abs(left), FAR_OUT, axis=0)
            found.append(np.clip(left, -line, line))
        plain, rich = found
        return np.where((plain**2).sum(axis=0) <= (rich**2).sum(axis=0), plain, rich)


def _scaled(design: FloatArray) -> FloatArray:
    """Columns that vary, on one scale; the first is the constant."""
    spread = design.std(axis=0)
    kept = np.append(0, np.flatnonzero(spread > 1e-9))
    return np.asarray(design[:, kept] / np.where(spread[kept] > 0, spread[kept], 1.0))


def _inverse(design: FloatArray) -> FloatArray:
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += RIDGE * max(len(design), 1)
    return np.asarray(np.linalg.inv(gram))


def _shifted(values: FloatArray) -> FloatArray:
    return np.concatenate([values[:1], values[:-1]])


def _worth(rows: InOrder, seed: int) -> FloatArray:
    """r + γ V(s′), V by least squares of temporal differences on features of the state."""
    n, size = len(rows.reward), max(min(len(rows.reward) // 60, 150), 10)
    both = np.concatenate([rows.here, rows.there])
    parts = (Quadratic().fit(both).transform(both), NormalisedBumps(size).fit(both, seed).transform(both))
    phi = np.concatenate([np.ones((2 * n, 1)), *parts], axis=1)
    here, there = phi[:n], phi[n:] * (1.0 - rows.ended)[:, None]
    matrix = here.T @ (here - GAMMA * there)
    matrix[np.diag_indices_from(matrix)] += RIDGE * n
    law = np.linalg.solve(matrix, here.T @ rows.reward)
    low, high = np.quantile(here @ law, (1.0 - USUAL, USUAL))
    ahead = np.clip(phi[n:] @ law, low, high) * (1.0 - rows.ended)
    return np.asarray(rows.reward + GAMMA * ahead)


def _past(rows: InOrder, off: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Means of what came before: rewards, states, surprises, and surprises by action, times the action."""
    columns = [rows.reward, *rows.here.T, off, *(off * a for a in rows.action.T)]
    sums = [earlier_sums(column - column.mean(), rows.episode) for column in columns]
    means = np.stack([total / (SETTLES + before) for total, before in sums], axis=1)
    means[:, -rows.action.shape[1] :] *= rows.action
    names = ("the mean of earlier rewards", *(f"the mean of earlier {name}" for name in rows.columns))
    return means, (*names, "what was new before", *("the response to actions before",) * rows.action.shape[1])


@dataclass(frozen=True)
class _Judge:
    """What η tells of ε, by cluster."""

    fold: IntArray
    follows: BoolArray
    cluster: IntArray

    def __call__(
        self, off: FloatArray, stands: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, float, float, int] | None:
        """Σ ε ηb by cluster; the share of Σ ε² that ηb takes away; Σ ε² by that of y; the best column of η."""
        follows = self.follows
        scale = stands[follows].std(axis=0)
        kept = np.flatnonzero(scale > 1e-9 * max(float(scale.max(initial=0.0)), 1e-300))
        total = float(off[follows] @ off[follows])
        if not len(kept) or total <= 0:
            return None
        eta, told = stands[:, kept] / scale[kept], np.zeros(len(off))
        for k in range(FOLDS):
            fit, mine = follows & (self.fold != k), follows & (self.fold == k)
            gram = eta[fit].T @ eta[fit]
            gram[np.diag_indices_from(gram)] += 0.01 * max(int(fit.sum()), 1)
            told[mine] = eta[mine] @ np.linalg.solve(gram, eta[fit].T @ off[fit])
        gain = (2.0 * float(off @ told) - float(told @ told)) / total
        left = total / max(float(((y[follows] - y[follows].mean()) ** 2).sum()), 1e-300)
        best = int(kept[int(np.argmax(np.abs(eta[follows].T @ off[follows])))])
        return sum_by(self.cluster, off * told, int(self.cluster.max(initial=-1)) + 1), gain, left, best
