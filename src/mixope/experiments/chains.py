"""What the counts of an arm say of the days to come: the arm as a Markov chain of its own.

    μ₀: the states in which units enter      P, r: of the arm's own rows       d_t = μ₀ Pᵗ      day t earns d_t · r

The *path* is what day t would earn if everybody had the arm from day 0 on; far out it is the long-run average. The
difference between two arms far out has two parts,

    ρ_B − ρ_A  =  Σ_s d_A(s) (r_B(s) − r_A(s))   +   Σ_s (d_B(s) − d_A(s)) r_B(s)
                  at once, in the same states         carried over, by moving units to other states

and each state its share of both. *Differences in Q* (Farias and others) stay with the mixture of arms that was logged:
Σ_s d(s) (Q(s, B) − Q(s, A)) with d and Q of all rows together. It is the effect to first order: less noise than the
long run of each arm, and biased where arms move units far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from mixope.base.arrays import BoolArray, FloatArray, sum_by
from mixope.experiments.counts import Counts
from mixope.solvers.components import long_runs, reached_from
from mixope.solvers.frontier import like_before

RETURN = 1e-6
"""Mass that goes back to the start at every step, so that chains with several closed parts have one long run."""


@dataclass(frozen=True)
class ArmChain:
    """One arm: P (states × states), the mean reward, the law of entry; ``seen``: how often it was seen in a state."""

    moves: csr_array
    reward: FloatArray
    start: FloatArray
    seen: FloatArray

    def path(self, days: int) -> FloatArray:
        """What each of the first days earns."""
        law, earned, back = self.start, np.zeros(days), self.moves.transpose()
        for day in range(days):
            earned[day] = law @ self.reward
            law = back @ law
        return earned

    def law_after(self, days: int) -> FloatArray:
        """Where units are at the beginning of a day."""
        law, back = self.start, self.moves.transpose()
        for _ in range(days):
            law = back @ law
        return np.asarray(law)

    def long_run(self) -> FloatArray:
        """The stationary law that units reach from where they enter."""
        n = len(self.start)
        matrix = np.eye(n) - (1.0 - RETURN) * self.moves.toarray().T
        law = np.maximum(np.linalg.solve(matrix, RETURN * self.start), 0.0)
        return np.asarray(law / law.sum(), dtype=np.float64)

    def excess(self, law: FloatArray) -> FloatArray:
        """h with h = r − ρ + P h: what it is worth to be in a state rather than in another, for ever."""
        n = len(self.start)
        gain = law @ self.reward
        found = np.linalg.solve(np.eye(n) - (1.0 - RETURN) * self.moves.toarray(), self.reward - gain)
        return np.asarray(found - law @ found, dtype=np.float64)


def chain_of(counts: Counts, arm: int | None, start: FloatArray | None = None) -> ArmChain:
    """The chain of one arm, or of all rows together.

    A state that the arm was never seen to leave, as on the last day of a test, is left as all arms leave it; one that
    nobody was seen to leave, as the newest value of a counter, is left as the state is that it was reached from
    (:mod:`mixope.solvers.frontier`). To stay in it for ever would make it the long run: that must be borne out by the
    rows (:func:`stuck`). Where nothing leads to it, it leads to where units enter.
    """
    mine = counts if arm is None else counts.take(counts.arm == arm)
    n = counts.n_states
    begin = start_law(counts) if start is None else start
    moves = _moves(mine)
    if arm is not None:
        moves = _filled(moves, lambda: _moves(counts))
    moves = _as_before(moves, counts)
    moves = _filled(moves, lambda: csr_array(np.ones((n, 1))) @ csr_array(begin[None, :]))
    seen = sum_by(mine.state, mine.rows, n)
    earned = sum_by(mine.state, mine.reward, n)
    pooled = counts.reward.sum() / counts.rows.sum()
    reward = np.where(seen > 0, earned / np.maximum(seen, 1.0), pooled)
    return ArmChain(moves, reward, begin, seen)


def stuck(counts: Counts) -> BoolArray:
    """States from which no unit was seen to come to a long run that its rows bear out.

    A few units that were in a rare state to the end of the test do not show that nobody leaves it
    (:mod:`mixope.solvers.components`).
    """
    n, moving = counts.n_states, counts.next_state >= 0
    state, later, rows = counts.state[moving], counts.next_state[moving], counts.rows[moving]
    run, _ = long_runs(state, later, rows, sum_by(state, rows, n), n)
    return ~reached_from(np.flatnonzero(run >= 0), later, state, n)


def _moves(counts: Counts) -> csr_array:
    """Shares of the next states; a state that was never left, or only to be stuck, has an empty row."""
    n, moving = counts.n_states, (counts.next_state >= 0) & ~stuck(counts)[counts.state]
    state, rows = counts.state[moving], counts.rows[moving]
    left = sum_by(state, rows, n)
    return csr_array((rows / left[state], (state, counts.next_state[moving])), shape=(n, n))


def _filled(moves: csr_array, instead: Callable[[], csr_array]) -> csr_array:
    """With other rows in place of the empty ones."""
    empty = np.flatnonzero(np.diff(moves.indptr) == 0)
    if not len(empty):
        return moves
    put = csr_array((np.ones(len(empty)), (empty, empty)), shape=moves.shape)
    return csr_array(moves + put @ instead())


def _as_before(moves: csr_array, counts: Counts) -> csr_array:
    """With the row of the state that it was reached from in place of every empty one."""
    empty = np.diff(moves.indptr) == 0
    if not empty.any():
        return moves
    moving = counts.next_state >= 0
    edges = counts.state[moving], counts.next_state[moving], counts.rows[moving]
    place = like_before(*edges, empty, counts.n_states)
    found = np.flatnonzero(place >= 0)
    put = csr_array((np.ones(len(found)), (found, place[found])), shape=moves.shape)
    return csr_array(moves + put @ moves)


def start_law(counts: Counts) -> FloatArray:
    """Where units of all arms enter: they were assigned by chance."""
    found = sum_by(counts.state, counts.starts, counts.n_states)
    return np.asarray(found / found.sum())


@dataclass(frozen=True)
class Pair:
    """A treatment and the control, from where units of all arms enter: all that is said of the two by counts alone."""

    counts: Counts
    treatment: int
    control: int

    @cached_property
    def treated(self) -> ArmChain:
        """The chain of the treatment."""
        return chain_of(self.counts, self.treatment)

    @cached_property
    def plain(self) -> ArmChain:
        """The chain of the control."""
        return chain_of(self.counts, self.control)

    @cached_property
    def laws(self) -> tuple[FloatArray, FloatArray]:
        """Where units are in the long run, under treatment and under control."""
        return self.treated.long_run(), self.plain.long_run()

    def path(self, days: int) -> FloatArray:
        """Treatment less control, day by day."""
        return self.treated.path(days) - self.plain.path(days)

    def differences_in_q(self) -> float:
        """The effect to first order around what was logged."""
        pooled = chain_of(self.counts, None)
        worth = pooled.excess(pooled.long_run())
        value = [arm.reward + arm.moves @ worth for arm in (self.treated, self.plain)]
        weight = self._seen_under_both
        return float(weight @ (value[0] - value[1]) / weight.sum())

    @property
    def shared(self) -> float:
        """The share of rows in states that were seen under both arms: differences in Q say nothing of the others."""
        return float(self._seen_under_both.sum())

    @property
    def _seen_under_both(self) -> FloatArray:
        seen = sum_by(self.counts.state, self.counts.rows, self.counts.n_states)
        return np.where(np.minimum(self.treated.seen, self.plain.seen) > 0, seen / seen.sum(), 0.0)

    def surrogate_index(self, tested: int, days: int) -> float:
        """Per day of ``days``: what was seen in the ``tested`` days, then the control's future from where units ended.

        The usual short cut: after the test, treatment is taken to act through the last state alone.
        """
        shift = self.treated.law_after(tested) - self.plain.law_after(tested)
        later = ArmChain(self.plain.moves, self.plain.reward, shift, self.plain.seen).path(max(days - tested, 0)).sum()
        return float((self.path(tested).sum() + later) / max(days, tested))

    def parts_by_state(self) -> tuple[FloatArray, FloatArray]:
        """What each state adds to the long-run difference: at once, and carried over."""
        law_b, law_a = self.laws
        at_once = law_a * (self.treated.reward - self.plain.reward)
        gain = law_b @ self.treated.reward
        return at_once, (law_b - law_a) * (self.treated.reward - gain)
