"""The part of the logs on which a completed chain lives, and what its logged pairs lead to.

Where unlogged actions are predicted (:mod:`mixope.estimators.completion`) there are no dead ends, so all rows are kept,
unless the long run depends on where it begins. For the average, parts of the world that no logged row connects are
kept apart (a country, say, that nobody ever changes) and the one with the most rows is taken; of several closed classes
within it likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.estimators.kriging import number_factors
from mixope.problem import Problem
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Part:
    """The rows a completed chain is made of: those of ``states``; ``number`` is the place of every state among them."""

    whole: Problem
    problem: Problem = field(repr=False)
    groups: IntArray
    states: IntArray
    number: IntArray

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
        if self.problem.estimand.kind == "average" and not (self.rows.next_state < 0).any():
            return np.zeros(len(self.states))
        law = self.whole.starts[self.states]
        return np.asarray(law / law.sum())


def part_to_complete(problem: Problem) -> Part:
    """All rows, or for the average those of the heaviest closed class where the completed chain has several."""
    rows = problem.transitions
    inside = np.ones(rows.n_states, dtype=bool)
    if problem.estimand.kind == "average":
        inside = _connected(problem)
        inside &= _one_closed_class(problem, inside)
    stays = (rows.next_state < 0) | inside[rows.next_state]
    groups = np.flatnonzero(inside[rows.state] & stays)
    states = np.flatnonzero(inside)
    number = np.full(rows.n_states, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    return Part(problem, problem.on_groups(groups), groups, states, number)


def _connected(problem: Problem) -> BoolArray:
    """The states that rows connect, in either direction, where most rows are; an end leads to every start."""
    rows, n = problem.transitions, problem.transitions.n_states
    alive, ended = rows.next_state >= 0, rows.next_state < 0
    source, destination = rows.state[alive], rows.next_state[alive]
    if ended.any():
        begin = np.flatnonzero(problem.starts)
        source = np.concatenate([source, rows.state[ended], begin])
        destination = np.concatenate([destination, np.full(int(ended.sum()) + len(begin), n)])
    graph = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n + 1, n + 1))
    count, label = csgraph.connected_components(graph, directed=False)
    mass = sum_by(label[rows.state].astype(np.int64), rows.rows, count)
    return np.asarray(label[:n] == int(np.argmax(mass)), dtype=np.bool_)


def _one_closed_class(problem: Problem, inside: BoolArray) -> BoolArray:
    """States from which the long run is the same; an unlogged action can lead where that action led elsewhere."""
    rows, n, k = problem.transitions, problem.transitions.n_states, len(problem.transitions.actions)
    flows = (problem.pair_target[rows.pair] > 0) & inside[rows.state]
    alive, ended = flows & (rows.next_state >= 0), flows & (rows.next_state < 0)
    seen = np.zeros((n, k), dtype=bool)
    seen[rows.pair_state, rows.pair_action] = True
    lacks = np.argwhere(~seen & (problem.state_target > 0) & inside[:, None])
    led = (rows.next_state >= 0) & inside[rows.state]
    edges = [
        (rows.state[alive], rows.next_state[alive]),
        (lacks[:, 0], n + lacks[:, 1]),
        (n + rows.action[led], rows.next_state[led]),
    ]
    if ended.any():
        begin = np.flatnonzero(problem.starts)
        edges += [(rows.state[ended], np.full(int(ended.sum()), n + k)), (np.full(len(begin), n + k), begin)]
    source, destination = (np.concatenate(side) for side in zip(*edges, strict=True))
    size = n + k + 1
    graph = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(size, size))
    count, label = csgraph.connected_components(graph, directed=True, connection="strong")
    closed = np.ones(count, dtype=bool)
    closed[label[source[label[source] != label[destination]]]] = False
    mass = sum_by(label[rows.state].astype(np.int64), rows.rows * inside[rows.state], count)
    classes = np.flatnonzero(closed & (mass > 0))
    if len(classes) <= 1:
        return np.ones(n, dtype=np.bool_)
    best = classes[int(np.argmax(mass[classes]))]
    return np.asarray(label[:n] == best, dtype=np.bool_)
