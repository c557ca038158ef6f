"""The lowest and highest value of a chain whose steps may be other than they were seen, by a bounded factor.

After state s the outcomes c = (reward, next state) were seen with shares p(c|s). What holds of the question that is
asked may be λ(c) p(c|s) instead, with any λ that averages one and stays within bounds:

    Σ_c p λ = 1,      b + (1 − b)/Γ  ≤  λ  ≤  b + (1 − b) Γ

**Hidden confounding** (the marginal sensitivity model; Kallus and Zhou 2020, Namkoong and others 2020, Bruns-Smith and
Zhou 2023). A hidden u, drawn anew at every step, may turn the odds of the logged action by a factor g within [1/Γ, Γ]:

    b(a|s)/(1 − b(a|s))  =  g(u) · b(a|s,u)/(1 − b(a|s,u))      ⇒      b(a|s)/b(a|s,u)  =  b + (1 − b) g(u)

Rows with a show u as often as P(u|s,a) = P(u|s) b(a|s,u)/b(a|s); whoever always takes a meets it with P(u|s). So the
outcomes of always taking a are those seen, weighted by λ(c) = E[b(a|s)/b(a|s,u) | s, a, c], which lies in the bounds
above with b = b(a|s) and averages one. Conversely every such λ is the work of some u: two values are enough, of which
the one with λ = b + (1 − b) Γ is seen with a in 1/(1 + Γ) of the rows. The bounds of one value are therefore sharp.

**A state that leaves something out** (a violated Markov property). Let u be any hidden part of the state, one that
stays included. The flow of visits d(s′) = Σ_s d(s) P̃(s′|s) holds with P̃ averaged over u as it is found in s under the
question asked, instead of in the log. If that law of u differs from the logged one by a factor within [1/Γ, Γ], the
same bounds hold with b = 0.

What is *not* identified: u itself, and Γ. No log tells how large it is. A hidden part that *stays* with a unit is not
covered by the first model, in which u is new at every step, but by the second.

Solved by policy iteration, as a game against nature: with h the relative value of states, the worst λ of every s puts
the upper bound on the outcomes with the lowest y = r + γ h(s′), up to a share of 1/(1 + Γ), and the lower bound on the
others. As λ > 0 everywhere, the chain keeps its classes whatever nature does. The average is the limit of γ → 1; for a
given number of steps see :mod:`mixope.solvers.reweighted_path`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.solvers.bounds import Side
from mixope.solvers.chain import Resolvent

ROUNDS = 200
CLOSE = 1e-12


@dataclass(frozen=True)
class Steps:
    """What was seen after each state: outcomes with their shares, which add up to one in every state.

    ``start`` is the law of the first state.
    """

    state: IntArray
    next_state: IntArray
    share: FloatArray
    reward: FloatArray
    start: FloatArray

    @property
    def n_states(self) -> int:
        """States, each of which has an outcome."""
        return len(self.start)

    @cached_property
    def first(self) -> IntArray:
        """Where the outcomes of every state begin, once they are sorted by state."""
        return np.searchsorted(np.sort(self.state), np.arange(self.n_states))

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """The structure of P: row and column of every entry, and the entry of every outcome."""
        codes, entry = np.unique(self.state * self.n_states + self.next_state, return_inverse=True)
        return codes // self.n_states, codes % self.n_states, entry.ravel()

    def moves(self, weight: FloatArray) -> sparse.csr_matrix:
        """P under λ."""
        rows, columns, entry = self._entries
        data = sum_by(entry, self.share * weight, len(rows))
        return sparse.csr_matrix((data, (rows, columns)), shape=(self.n_states, self.n_states))

    def mean(self, values: FloatArray) -> FloatArray:
        """Σ_c p(c|s) x(c), by state."""
        return sum_by(self.state, self.share * values, self.n_states)


@dataclass(frozen=True)
class Room:
    """How far λ may go: Γ, and b by state."""

    known: FloatArray
    factor: float

    @cached_property
    def low(self) -> FloatArray:
        """The least λ, by state."""
        return self.known + (1.0 - self.known) / self.factor

    @cached_property
    def span(self) -> FloatArray:
        """From the least λ to the most."""
        return (1.0 - self.known) * (self.factor - 1.0 / self.factor)

    @property
    def filled(self) -> float:
        """The share of the outcomes of a state that can have the most."""
        return 1.0 / (1.0 + self.factor)


@dataclass(frozen=True)
class Filling:
    """Nature's answer to y: what part of each outcome is among the lowest of its state, and λ.

    ``last`` is the outcome of every state at which the lowest end.
    """

    part: FloatArray
    weight: FloatArray
    last: IntArray

    def answers(self, steps: Steps, y: FloatArray) -> bool:
        """Whether it is right for this y too: what is filled lies below the last outcome, and what is not above."""
        above = y - y[self.last][steps.state]
        return not np.any(((self.part >= 1.0) & (above > 0)) | ((self.part <= 0.0) & (above < 0)))


def fill(steps: Steps, room: Room, y: FloatArray) -> Filling:
    """The λ with the lowest Σ p λ y in every state."""
    order = _sorted(steps.state, y)
    share, state = steps.share[order], steps.state[order]
    before = np.cumsum(share) - share
    left = room.filled - (before - before[steps.first][state])
    part = np.empty(len(y))
    part[order] = np.clip(left / share, 0.0, 1.0)
    weight = room.low[steps.state] + room.span[steps.state] * part
    reached = np.maximum(np.bincount(state[left > CLOSE], minlength=steps.n_states), 1)
    return Filling(part, weight, order[steps.first + reached - 1])


def _sorted(state: IntArray, y: FloatArray) -> IntArray:
    """By state, then by y; as one number, whose sorting takes a third of the time that two keys take."""
    least = y.min()
    width = 1.01 * (y.max() - least) or 1.0
    return np.argsort(state + (y - least) / width, kind="stable")


def slopes(steps: Steps, room: Room, y: FloatArray, filling: Filling) -> tuple[FloatArray, FloatArray]:
    """How min Σ p λ y moves with p(c|s), apart from a constant in every state, and with b(s).

    It is low Σ p y + (high − low) max_q [q/(1 + Γ) − Σ p (q − y)₊], and nature's own answer does not matter.
    """
    below = np.maximum(y[filling.last][steps.state] - y, 0.0)
    by_share = room.low[steps.state] * y - room.span[steps.state] * below
    twist = room.factor - 1.0 / room.factor
    by_known = (1.0 - 1.0 / room.factor) * steps.mean(y) - twist * steps.mean(filling.part * y)
    return by_share - steps.mean(by_share)[steps.state], by_known


@dataclass(frozen=True)
class Extreme:
    """The extreme value, and how it follows from what was seen. To first order it moves by

    Σ_c [dp(c|s) by_share(c) + p(c|s) dr(c) by_reward(c)]  +  Σ_s [db(s) by_known(s) + dμ(s) by_start(s)]
    """

    value: float
    by_share: FloatArray
    by_reward: FloatArray
    by_known: FloatArray
    by_start: FloatArray


def extreme(steps: Steps, room: Room, gamma: float, side: Side) -> Extreme:
    """The lowest or highest (1 − γ) Σ γᵗ r_t."""
    sign = 1.0 if side == "low" else -1.0
    reward = sign * steps.reward
    h, value, scale = np.zeros(steps.n_states), np.inf, 1.0 + float(np.abs(reward).max())
    for _ in range(ROUNDS):
        weight = fill(steps, room, reward + gamma * h[steps.next_state]).weight
        law, found, h = _solved(steps, weight, reward, gamma)
        settled, value = value - found <= CLOSE * scale, found
        if settled:
            break
    y = reward + gamma * h[steps.next_state]
    answer = fill(steps, room, y)
    by_share, by_known = slopes(steps, room, y, answer)
    visits = law[steps.state]
    return Extreme(
        sign * value, sign * visits * by_share, visits * answer.weight, sign * law * by_known, sign * (1.0 - gamma) * h
    )


def _solved(steps: Steps, weight: FloatArray, reward: FloatArray, gamma: float) -> tuple[FloatArray, float, FloatArray]:
    """The law of visits (1 − γ) μ (I − γP)⁻¹, the value, and h with h = r − value + γ P h."""
    known = Resolvent(steps.moves(weight), gamma)
    law = np.maximum(known.solve((1.0 - gamma) * steps.start, "T")[0], 0.0)
    law /= law.sum()
    earned = steps.mean(weight * reward)
    value = float(law @ earned)
    h = known.solve(earned - value)[0]
    return law, value, np.asarray(h - law @ h)
