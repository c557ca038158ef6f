"""The part of the logs on which a completed chain lives, and what its logged pairs lead to.

Where unlogged actions are predicted (:mod:`mixope.estimators.completion`) there are no dead ends, so all rows are kept,
unless the long run depends on where it begins. For the average, worlds that no logged row connects are kept apart
(:mod:`mixope.estimators.worlds` weighs them by starts; where no start is known, the one with the most rows is taken),
and of several closed classes within one the class with the most rows is taken. What the others hold of the rows is
told: another long run could live there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.estimators.flow import no_ends
from mixope.estimators.kriging import number_factors
from mixope.estimators.worlds import world_of_states
from mixope.problem import Problem
from mixope.solvers.components import closed_classes, reached_from, states_that_go_on
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Part:
    """The rows a completed chain is made of: those of ``states``; ``number`` is the place of every state among them."""

    whole: Problem
    problem: Problem = field(repr=False)
    groups: IntArray
    states: IntArray
    number: IntArray
    elsewhere: float = 0.0
    """The share of the rows on which another long run could live."""

    @property
    def rows(self) -> Transitions:
        """The kept groups."""
        return self.problem.transitions

    @cached_property
    def pair_state(self) -> IntArray:
        """The place of every logged pair's state among the kept ones."""
        return np.asarray(self.number[self.rows.pair_state])

    @cached_property
    def pair_rows(self) -> FloatArray:
        """Rows of every logged pair."""
        return sum_by(self.rows.pair, self.rows.rows)

    @cached_property
    def target(self) -> FloatArray:
        """π over the logged actions, on the kept states: shape (states, actions); it must fit in memory."""
        target = self.whole.state_target[self.states]
        total = target.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(target, total, out=np.zeros_like(target), where=total > 0))

    @cached_property
    def logged(self) -> BoolArray:
        """Which actions were logged in which kept state."""
        seen = np.zeros(self.target.shape, dtype=bool)
        seen[self.pair_state, self.rows.pair_action] = True
        return seen

    @cached_property
    def factors(self) -> IntArray:
        """The factors of the kept states, their values numbered."""
        return number_factors(np.asarray(self.rows.observations)[self.states])

    def unseen(self, action: int) -> IntArray:
        """The kept states in which the target takes an action that was not logged there."""
        return np.flatnonzero(~self.logged[:, action] & (self.target[:, action] > 0))

    @cached_property
    def n_unseen(self) -> int:
        """How often the target does something, in a kept state, that was not logged there but somewhere."""
        return int(np.count_nonzero(~self.logged & (self.target > 0)))

    @cached_property
    def uncovered(self) -> FloatArray:
        """Target probability of what was not logged in every kept state."""
        chances = self.whole.state_target[self.states]
        return np.asarray(np.clip(1.0 - np.where(self.logged, chances, 0.0).sum(axis=1), 0.0, 1.0))

    @cached_property
    def following(self) -> sparse.csr_matrix:
        """Σ over the rows of a pair, over its rows, of: next state (one column each), an end, the reward."""
        rows, n = self.rows, len(self.states)
        column = np.where(rows.next_state >= 0, self.number[rows.next_state], n)
        pair = np.concatenate([rows.pair, rows.pair])
        entry = np.concatenate([column, np.full(rows.n_groups, n + 1)])
        value = np.concatenate([rows.rows, rows.reward]) / self.pair_rows[pair]
        return sparse.csr_matrix((value, (pair, entry)), shape=(rows.n_pairs, n + 2))

    @cached_property
    def start(self) -> FloatArray:
        """μ₀ on the kept states; zeros where it is neither known nor needed."""
        if self.problem.estimand.restarts and not (self.rows.next_state < 0).any():
            return np.zeros(len(self.states))
        law = self.whole.starts[self.states]
        return np.asarray(law / law.sum())


def part_to_complete(problem: Problem) -> Part:
    """All rows; for the average those of the heaviest closed class where the completed chain has several.

    For the undiscounted total of an episode, those from which the completed chain reaches an end.
    """
    rows = problem.transitions
    inside, elsewhere = np.ones(rows.n_states, dtype=bool), np.zeros(rows.n_states, dtype=bool)
    if problem.estimand.restarts:
        connected = _connected(problem)
        inside, others = _one_closed_class(problem, connected)
        elsewhere = ~connected | others
    elif problem.estimand.needs_ends:
        inside = _reaching_an_end(problem)
    stays = (rows.next_state < 0) | inside[rows.next_state]
    groups = np.flatnonzero(inside[rows.state] & stays)
    states = np.flatnonzero(inside)
    number = np.full(rows.n_states, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    share = float(rows.rows[elsewhere[rows.state]].sum() / rows.rows.sum())
    return Part(problem, problem.on_groups(groups), groups, states, number, share)


def _connected(problem: Problem) -> BoolArray:
    """The states of the world where most rows are."""
    world = world_of_states(problem)
    mass = sum_by(world[problem.transitions.state], problem.transitions.rows)
    return np.asarray(world == int(np.argmax(mass)), dtype=np.bool_)


def _one_closed_class(problem: Problem, inside: BoolArray) -> tuple[BoolArray, BoolArray]:
    """States from which the long run is the same, and those of other long runs that starts or these states lead to."""
    rows, n = problem.transitions, problem.transitions.n_states
    source, destination, size = _completed_edges(problem, inside)
    if (destination == size - 1).any():
        begin = np.flatnonzero(problem.starts)
        source = np.concatenate([source, np.full(len(begin), size - 1)])
        destination = np.concatenate([destination, begin])
    number = closed_classes(source, destination, size)
    here = inside[rows.state] & (number[rows.state] >= 0)
    mass = sum_by(number[rows.state[here]], rows.rows[here])
    if np.count_nonzero(mass) <= 1:
        return inside, np.zeros(n, dtype=np.bool_)
    best = number == int(np.argmax(mass))
    starts = rows.start_law > 0
    begin = np.flatnonzero(np.append(starts, np.zeros(size - n, dtype=bool)) | best)
    there = reached_from(begin, source, destination, size) if starts.any() else np.ones(size, dtype=np.bool_)
    return best[:n] & inside, ((number >= 0) & ~best & there)[:n] & inside


def _reaching_an_end(problem: Problem) -> BoolArray:
    """States from which the target, completed, can come to an end."""
    n = problem.transitions.n_states
    source, destination, size = _completed_edges(problem, np.ones(n, dtype=bool))
    ended = destination == size - 1
    if not ended.any():
        raise no_ends()
    leaves = np.zeros(size, dtype=bool)
    leaves[source[ended]] = True
    return states_that_go_on(source[~ended], destination[~ended], leaves, size, loops=False)[:n]


def _completed_edges(problem: Problem, inside: BoolArray) -> tuple[IntArray, IntArray, int]:
    """Where the target can go, from, to, and how many nodes there are.

    The nodes are the states, one for each action, and the end. What a target does that was not logged in a state leads
    to the node of the action, and from there to wherever that action led elsewhere.
    """
    rows, n, k = problem.transitions, problem.transitions.n_states, len(problem.transitions.actions)
    following = np.where(rows.next_state >= 0, rows.next_state, n + k)
    flows = (problem.pair_target[rows.pair] > 0) & inside[rows.state]
    seen = np.zeros((n, k), dtype=bool)
    seen[rows.pair_state, rows.pair_action] = True
    lacks = np.argwhere(~seen & (problem.state_target > 0) & inside[:, None])
    led = inside[rows.state]
    source = np.concatenate([rows.state[flows], lacks[:, 0], n + rows.action[led]])
    destination = np.concatenate([following[flows], n + lacks[:, 1], following[led]])
    return source, destination, n + k + 1
