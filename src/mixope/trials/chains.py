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

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from mixope.arrays import FloatArray, sum_by
from mixope.trials.counts import Counts

RETURN = 1e-6
"""Mass that goes back to the start at every step, so that chains with several closed parts have one long run."""


@dataclass(frozen=True)
class Chain:
    """One arm: P (states × states), the mean reward, the law of entry; ``seen``: how often it was seen in a state."""

    moves: csr_array
    reward: FloatArray
    start: FloatArray
    seen: FloatArray

    def path(self, days: int) -> FloatArray:
        """What each of the first days earns."""
        law, earned = self.start, np.zeros(days)
        for day in range(days):
            earned[day] = law @ self.reward
            law = law @ self.moves
        return earned

    def law_after(self, days: int) -> FloatArray:
        """Where units are at the beginning of a day."""
        law = self.start
        for _ in range(days):
            law = law @ self.moves
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


def chain_of(counts: Counts, arm: int | None, start: FloatArray | None = None) -> Chain:
    """The chain of one arm, or of all rows together; a state that was never left stays as it is."""
    mine = counts if arm is None else counts.take(counts.arm == arm)
    n = counts.n_states
    moving = mine.next_state >= 0
    left = sum_by(mine.state[moving], mine.rows[moving], n)
    share = mine.rows[moving] / left[mine.state[moving]]
    stuck = np.flatnonzero(left == 0)
    rows = np.concatenate([mine.state[moving], stuck])
    columns = np.concatenate([mine.next_state[moving], stuck])
    moves = csr_array((np.concatenate([share, np.ones(len(stuck))]), (rows, columns)), shape=(n, n))
    seen = sum_by(mine.state, mine.rows, n)
    earned = sum_by(mine.state, mine.reward, n)
    pooled = counts.reward.sum() / counts.rows.sum()
    reward = np.where(seen > 0, earned / np.maximum(seen, 1.0), pooled)
    return Chain(moves, reward, start_law(counts) if start is None else start, seen)


def start_law(counts: Counts) -> FloatArray:
    """Where units of all arms enter: they were assigned by chance."""
    found = sum_by(counts.state, counts.starts, counts.n_states)
    return np.asarray(found / found.sum())


def path_difference(counts: Counts, treatment: int, control: int, days: int) -> FloatArray:
    """Treatment less control, day by day."""
    start = start_law(counts)
    return chain_of(counts, treatment, start).path(days) - chain_of(counts, control, start).path(days)


def differences_in_q(counts: Counts, treatment: int, control: int) -> float:
    """The effect to first order around what was logged."""
    pooled = chain_of(counts, None)
    seen = sum_by(counts.state, counts.rows, counts.n_states)
    law = seen / seen.sum()
    worth = pooled.excess(pooled.long_run())
    arms = [chain_of(counts, arm) for arm in (treatment, control)]
    value = [arm.reward + arm.moves @ worth for arm in arms]
    both = np.minimum(arms[0].seen, arms[1].seen) > 0
    weight = np.where(both, law, 0.0)
    return float(weight @ (value[0] - value[1]) / weight.sum())


def surrogate_index(counts: Counts, treatment: int, control: int, tested: int, days: int) -> float:
    """Per day of ``days``: what was seen in the ``tested`` days, then the control's future from where units ended.

    The usual short cut: after the test, treatment is taken to act through the last state alone.
    """
    start = start_law(counts)
    treated, plain = (chain_of(counts, arm, start) for arm in (treatment, control))
    during = (treated.path(tested) - plain.path(tested)).sum()
    shift = treated.law_after(tested) - plain.law_after(tested)
    later = Chain(plain.moves, plain.reward, shift, plain.seen).path(max(days - tested, 0)).sum()
    return float((during + later) / max(days, tested))


def parts_by_state(counts: Counts, treatment: int, control: int) -> tuple[FloatArray, FloatArray]:
    """What each state adds to the long-run difference: at once, and carried over."""
    start = start_law(counts)
    treated, plain = (chain_of(counts, arm, start) for arm in (treatment, control))
    law_b, law_a = treated.long_run(), plain.long_run()
    at_once = law_a * (treated.reward - plain.reward)
    gain = law_b @ treated.reward
    carried = (law_b - law_a) * (treated.reward - gain)
    return at_once, carried
