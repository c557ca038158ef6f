"""The lowest and highest value of a chain whose steps may be other than they were seen, by a bounded factor.

After state s the outcomes c = (reward, next state) were seen with shares p(c|s). What holds of the question that is
asked may be λ(c) p(c|s) instead, with any λ that averages one and stays within bounds:

    Σ_c p λ = 1,      b + (1 − b)/Γ  ≤  λ  ≤  b + (1 − b) Γ

Outcomes may also be those of a state and an action, p(c|s, a), of which a policy takes several: then λ averages one for
each of them, and the step is Σ_a π(a|s) λ p. What outcomes are seen after is called a *node*.

**Hidden confounding** (the marginal sensitivity model; Kallus and Zhou 2020, Namkoong and others 2020, Bruns-Smith and
Zhou 2023). A hidden u, drawn anew at every step, may turn the odds of the logged action by a factor g within [1/Γ, Γ]:

    b(a|s)/(1 − b(a|s))  =  g(u) · b(a|s,u)/(1 − b(a|s,u))      ⇒      b(a|s)/b(a|s,u)  =  b + (1 − b) g(u)

Rows with a show u as often as P(u|s,a) = P(u|s) b(a|s,u)/b(a|s); whoever always takes a meets it with P(u|s). So the
outcomes of always taking a are those seen, weighted by λ(c) = E[b(a|s)/b(a|s,u) | s, a, c], which lies in the bounds
above with b = b(a|s) and averages one. Conversely every such λ is the work of some u: two values are enough, of which
the one with λ = b + (1 − b) Γ is seen with a in 1/(1 + Γ) of the rows. The bounds of one value are therefore sharp.
They are so too for a policy that takes two actions, because what g does to the odds of one, 1/g does to the other; of
three actions or more that are mixed in one state, the hidden reasons of each cannot all be at their worst, and the
bounds are safe, but not always sharp. If several loggers wrote the rows, and for each of them odds move by Γ at most,
those of all rows together do so too.

**A state that leaves something out** (a violated Markov property). Let u be any hidden part of the state, one that
stays included. The flow of visits d(s′) = Σ_s d(s) P̃(s′|s) holds with P̃ averaged over u as it is found in s under the
question asked, instead of in the log. If that law of u differs from the logged one by a factor within [1/Γ, Γ], the
same bounds hold with b = 0.

What is *not* identified: u itself, and Γ. No log tells how large it is. A hidden part that *stays* with a unit is not
covered by the first model, in which u is new at every step, but by the second.

Solved by policy iteration, as a game against nature: with h the relative value of states, the worst λ of every s puts
the upper bound on the outcomes with the lowest y = r + γ h(s′), up to a share of 1/(1 + Γ), and the lower bound on the
others. As λ > 0 everywhere, the chain keeps its classes whatever nature does. How a chain is solved once λ is given is
said by a :class:`Sum` (the average as the limit of γ → 1), an :class:`Average` or a :class:`Total`; for a given number
of steps see :mod:`mixope.solvers.reweighted_path`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.solvers.bounds import Side
from mixope.solvers.chain import Chain, Resolvent

ROUNDS = 200
CLOSE = 1e-12


@dataclass(frozen=True)
class NodeOutcomes:
    """What was seen after each node: outcomes with their shares, which add up to one in every node.

    A node is a state; or, where ``home`` and ``taken`` are given, a state and an action, with that state and the
    probability of the action there. A ``next_state`` of −1 is an end. ``start`` is the law of the first state.
    """

    node: IntArray
    next_state: IntArray
    share: FloatArray
    reward: FloatArray
    start: FloatArray
    home: IntArray | None = None
    taken: FloatArray | None = None

    @property
    def n_states(self) -> int:
        """States, each of which has a node."""
        return len(self.start)

    @property
    def n_nodes(self) -> int:
        """Nodes, each of which has an outcome."""
        return self.n_states if self.home is None else len(self.home)

    @cached_property
    def first(self) -> IntArray:
        """Where the outcomes of every node begin, once they are sorted by node."""
        return np.searchsorted(np.sort(self.node), np.arange(self.n_nodes))

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """The structure of P: row and column of every entry, and the entry of every outcome that goes on."""
        alive = np.flatnonzero(self.next_state >= 0)
        source = self.node if self.home is None else self.home[self.node]
        codes, entry = np.unique(source[alive] * self.n_states + self.next_state[alive], return_inverse=True)
        return codes // self.n_states, codes % self.n_states, entry.ravel(), alive

    def moves(self, weight: FloatArray) -> sparse.csr_matrix:
        """P under λ; what ends is missing from its rows."""
        rows, columns, entry, alive = self._entries
        data = sum_by(entry, (self.spread(self.share) * weight)[alive], len(rows))
        return sparse.csr_matrix((data, (rows, columns)), shape=(self.n_states, self.n_states))

    def mean(self, values: FloatArray) -> FloatArray:
        """Σ_c p(c) x(c), by node."""
        return sum_by(self.node, self.share * values, self.n_nodes)

    def by_state(self, values: FloatArray) -> FloatArray:
        """Σ_c π p(c) x(c), by state."""
        means = self.mean(values)
        return means if self.home is None else sum_by(self.home, self._taking * means, self.n_states)

    def at_nodes(self, law: FloatArray) -> FloatArray:
        """How often every node is visited, from how often states are."""
        return law if self.home is None else np.asarray(law[self.home] * self._taking)

    def spread(self, share: FloatArray) -> FloatArray:
        """Of every outcome its share among those of its state."""
        return share if self.home is None else share * self._taking[self.node]

    @property
    def _taking(self) -> FloatArray:
        return np.ones(self.n_nodes) if self.taken is None else self.taken


@dataclass(frozen=True)
class Room:
    """How far λ may go: Γ, and b by node."""

    known: FloatArray
    factor: float

    @cached_property
    def low(self) -> FloatArray:
        """The least λ, by node."""
        return self.known + (1.0 - self.known) / self.factor

    @cached_property
    def span(self) -> FloatArray:
        """From the least λ to the most."""
        return (1.0 - self.known) * (self.factor - 1.0 / self.factor)

    @property
    def filled(self) -> float:
        """The share of the outcomes of a node that can have the most."""
        return 1.0 / (1.0 + self.factor)


@dataclass(frozen=True)
class Filling:
    """Nature's answer to y: what part of each outcome is among the lowest of its node, and λ.

    ``last`` is the outcome of every node at which the lowest end.
    """

    part: FloatArray
    weight: FloatArray
    last: IntArray

    def answers(self, steps: NodeOutcomes, y: FloatArray) -> bool:
        """Whether it is right for this y too: what is filled lies below the last outcome, and what is not above."""
        above = y - y[self.last][steps.node]
        return not np.any(((self.part >= 1.0) & (above > 0)) | ((self.part <= 0.0) & (above < 0)))


def fill(steps: NodeOutcomes, room: Room, y: FloatArray) -> Filling:
    """The λ with the lowest Σ p λ y in every node."""
    order = _sorted(steps.node, y)
    share, node = steps.share[order], steps.node[order]
    before = np.cumsum(share) - share
    left = room.filled - (before - before[steps.first][node])
    part = np.empty(len(y))
    part[order] = np.clip(left / share, 0.0, 1.0)
    weight = room.low[steps.node] + room.span[steps.node] * part
    reached = np.maximum(np.bincount(node[left > CLOSE], minlength=steps.n_nodes), 1)
    return Filling(part, weight, order[steps.first + reached - 1])


def _sorted(node: IntArray, y: FloatArray) -> IntArray:
    """By node, then by y; as one number, whose sorting takes a third of the time that two keys take."""
    least = y.min()
    width = 1.01 * (y.max() - least) or 1.0
    return np.argsort(node + (y - least) / width, kind="stable")


def slopes(steps: NodeOutcomes, room: Room, y: FloatArray, filling: Filling) -> tuple[FloatArray, FloatArray]:
    """How min Σ p λ y moves with p(c|s), apart from a constant in every node, and with b.

    It is low Σ p y + (high − low) max_q [q/(1 + Γ) − Σ p (q − y)₊], and nature's own answer does not matter.
    """
    below = np.maximum(y[filling.last][steps.node] - y, 0.0)
    by_share = room.low[steps.node] * y - room.span[steps.node] * below
    twist = room.factor - 1.0 / room.factor
    by_known = (1.0 - 1.0 / room.factor) * steps.mean(y) - twist * steps.mean(filling.part * y)
    return by_share - steps.mean(by_share)[steps.node], by_known


@dataclass(frozen=True)
class Extreme:
    """The extreme value, and how it follows from what was seen. To first order it moves by

    Σ_c [dp(c) by_share(c) + p(c) dr(c) by_reward(c)]  +  Σ_nodes db by_known  +  Σ_s dμ(s) by_start(s)
    """

    value: float
    by_share: FloatArray
    by_reward: FloatArray
    by_known: FloatArray
    by_start: FloatArray


@dataclass(frozen=True)
class ReweightedChain:
    """A chain under one λ: visits by state, the value, h by state and after an end (last), and dμ's part."""

    law: FloatArray
    value: float
    h: FloatArray
    by_start: FloatArray


class Way(Protocol):
    """How a chain is solved once λ is known."""

    @property
    def gamma(self) -> float:
        """The discount of what comes after a step."""

    def solve(self, steps: NodeOutcomes, moves: sparse.csr_matrix, earned: FloatArray) -> ReweightedChain:
        """From P and r under λ."""


@dataclass(frozen=True)
class Sum:
    """(1 − γ) Σ γᵗ r_t of a chain that never ends; γ may be close to one: h is relative to the value."""

    gamma: float

    def solve(self, steps: NodeOutcomes, moves: sparse.csr_matrix, earned: FloatArray) -> ReweightedChain:
        """The law of visits (1 − γ) μ (I − γP)⁻¹, the value, and h with h = r − value + γ P h."""
        known = Resolvent(moves, self.gamma)
        law = np.maximum(known.solve((1.0 - self.gamma) * steps.start, "T")[0], 0.0)
        law /= law.sum()
        value = float(law @ earned)
        h = known.solve(earned - value)[0]
        h = np.asarray(h - law @ h)
        return ReweightedChain(law, value, np.append(h, 0.0), (1.0 - self.gamma) * h)


@dataclass(frozen=True)
class Total:
    """scale Σ γᵗ r_t until an end, which earns nothing from there on; γ may be one where all episodes end."""

    gamma: float
    scale: float

    def solve(self, steps: NodeOutcomes, moves: sparse.csr_matrix, earned: FloatArray) -> ReweightedChain:
        """d = scale μ + γ d P, and V = r + γ P V."""
        known = Resolvent(moves, self.gamma)
        law = np.maximum(known.solve(self.scale * steps.start, "T")[0], 0.0)
        h = known.solve(earned)[0]
        return ReweightedChain(law, float(law @ earned), np.append(h, 0.0), self.scale * h)


@dataclass(frozen=True)
class Average:
    """The long-run average of a chain on which all states are met again; an end leads back to μ in no time."""

    restarts: bool
    gamma: float = 1.0

    def solve(self, steps: NodeOutcomes, moves: sparse.csr_matrix, earned: FloatArray) -> ReweightedChain:
        """d = d P with one more state for ends, and V = r − value + P V."""
        n = steps.n_states
        if self.restarts:
            ends = np.maximum(1.0 - np.asarray(moves.sum(axis=1)).ravel(), 0.0)
            below = sparse.csr_matrix(np.append(steps.start, 0.0)[None, :])
            moves = sparse.csr_matrix(sparse.vstack([sparse.hstack([moves, sparse.csr_matrix(ends[:, None])]), below]))
        chain = Chain(moves)
        law, _ = chain.stationary
        time = float(law[:n].sum())
        d = law[:n] / time
        value = float(d @ earned)
        h = chain.potential(np.append(earned - value, np.zeros(chain.n_states - n)))
        after = float(h[-1]) if self.restarts else 0.0
        often = float(law[-1]) / time if self.restarts else 0.0
        return ReweightedChain(d, value, np.append(h[:n], after), often * (h[:n] - after))


def extreme(steps: NodeOutcomes, room: Room, way: Way, side: Side) -> Extreme:
    """The lowest or highest value."""
    sign = 1.0 if side == "low" else -1.0
    reward = sign * steps.reward
    h, value, scale = np.zeros(steps.n_states + 1), np.inf, 1.0 + float(np.abs(reward).max())
    for _ in range(ROUNDS):
        weight = fill(steps, room, reward + way.gamma * h[steps.next_state]).weight
        found = way.solve(steps, steps.moves(weight), steps.by_state(weight * reward))
        settled, value, h = value - found.value <= CLOSE * (scale + abs(found.value)), found.value, found.h
        if settled:
            break
    y = reward + way.gamma * h[steps.next_state]
    answer = fill(steps, room, y)
    by_share, by_known = slopes(steps, room, y, answer)
    visits = steps.at_nodes(found.law)
    return Extreme(
        sign * value,
        sign * visits[steps.node] * by_share,
        visits[steps.node] * answer.weight,
        sign * visits * by_known,
        sign * found.by_start,
    )
