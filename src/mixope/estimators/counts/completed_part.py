"""The part of the logs on which a completed chain lives, and what its logged pairs lead to.

Where unlogged actions are predicted (:mod:`mixope.estimators.counts.completion`) the only dead ends are states in which
the target does nothing that was logged anywhere, so nearly all rows are kept, unless the long run depends on where it
begins. For the average, worlds that no logged row connects are kept apart
(:mod:`mixope.estimators.counts.worlds` weighs them by starts; where no start is known, the one with the most rows is
taken), and within one a class that is never left must be borne out by its rows, as in :mod:`mixope.solvers.components`;
of several that are, the one with the most rows is taken. What the others hold of the rows is told: another long run
could live there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.estimators.counts.flow import no_ends, starts_inside
from mixope.estimators.counts.kriging import number_factors
from mixope.estimators.counts.worlds import world_of_states
from mixope.requests.problem import Problem
from mixope.requests.transitions import Transitions
from mixope.solvers.components import long_runs, reached_from, states_that_go_on


@dataclass(frozen=True)
class CompletedPart:
    """The rows a completed chain is made of: those of ``states``; ``number`` is the place of every state among them."""

    whole: Problem
    problem: Problem = field(repr=False)
    groups: IntArray
    states: IntArray
    number: IntArray
    astray: BoolArray
    """Which of the groups lead where the target is not followed."""
    elsewhere: float = 0.0
    """The share of the rows on which another long run could live."""
    doubt: float = 0.0
    """How often the target would be elsewhere if one row more had left the long run."""

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
        """π over the actions that were logged in kept states: shape (states, actions); it must fit in memory."""
        target = self.whole.state_target[self.states] * self.logged.any(axis=0)
        total = target.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(target, total, out=np.zeros_like(target), where=total > 0))

    @cached_property
    def logged(self) -> BoolArray:
        """Which actions were logged in which kept state."""
        seen = np.zeros((len(self.states), len(self.rows.actions)), dtype=bool)
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
        return starts_inside(self.whole.starts[self.states])


def part_to_complete(problem: Problem) -> CompletedPart:
    """The rows in states from which the completed chain goes on; for the undiscounted total of an episode, to an end.

    For the average those that lead to its long run, or of the heaviest one where there are several.
    """
    rows = problem.transitions
    elsewhere, doubt = np.zeros(rows.n_states, dtype=bool), 0.0
    if problem.estimand.restarts:
        connected = _connected(problem)
        inside, others, doubt = _one_long_run(problem, connected)
        elsewhere = ~connected | others
    else:
        inside = _going_on(problem)
    groups = np.flatnonzero(inside[rows.state])
    following = rows.next_state[groups]
    astray = (following >= 0) & ~inside[following]
    states = np.flatnonzero(inside)
    number = np.full(rows.n_states, -1, dtype=np.int64)
    number[states] = np.arange(len(states))
    share = float(rows.rows[elsewhere[rows.state]].sum() / rows.rows.sum())
    part = problem.on_groups(groups)
    if astray.any():  # they go on from where they came: no row is dropped for what came of it
        onward = np.where(astray, rows.state[groups], following)
        part = replace(part, transitions=replace(part.transitions, next_state=onward))
    return CompletedPart(problem, part, groups, states, number, astray, share, doubt)


def _connected(problem: Problem) -> BoolArray:
    """The states of the world where most rows are."""
    world = world_of_states(problem)
    mass = sum_by(world[problem.transitions.state], problem.transitions.rows)
    return np.asarray(world == int(np.argmax(mass)), dtype=np.bool_)


def _one_long_run(problem: Problem, inside: BoolArray) -> tuple[BoolArray, BoolArray, float]:
    """States from which the long run is the same, those of others that starts or these states lead to, and the doubt.

    Of one long run, all states that lead to it are kept: what was logged there tells of what was not.
    """
    rows, n = problem.transitions, problem.transitions.n_states
    source, destination, size, behind = _completed_edges(problem, inside)
    ended = destination == size - 1
    if ended.any():
        begin = np.flatnonzero(problem.starts)
        behind = np.concatenate([behind, behind[ended].sum() * problem.starts[begin]])
        source = np.concatenate([source, np.full(len(begin), size - 1)])
        destination = np.concatenate([destination, begin])
    mass = sum_by(rows.state, rows.rows * inside[rows.state], size)
    run, doubts = long_runs(source, destination, behind, mass, size)
    by_run = sum_by(run[run >= 0], mass[run >= 0], size)
    if not by_run.any():
        return inside, np.zeros(n, dtype=np.bool_), 0.0
    best = run == int(np.argmax(by_run))
    doubt = float(doubts[best].max())
    leads = reached_from(np.flatnonzero(best), destination, source, size)
    if np.count_nonzero(by_run) == 1:
        return leads[:n] & inside, ~leads[:n] & inside, doubt
    starts = rows.start_law > 0
    begin = np.flatnonzero(np.append(starts, np.zeros(size - n, dtype=bool)) | best)
    there = reached_from(begin, source, destination, size) if starts.any() else np.ones(size, dtype=np.bool_)
    others = (((run >= 0) & ~best) | ~leads) & there
    return best[:n] & inside, others[:n] & inside, doubt


def _going_on(problem: Problem) -> BoolArray:
    """States in which the target, completed, has a way on; to an end, where the total of an episode is asked for."""
    n = problem.transitions.n_states
    source, destination, size, _ = _completed_edges(problem, np.ones(n, dtype=bool))
    ended, to_an_end = destination == size - 1, problem.estimand.needs_ends
    if to_an_end and not ended.any():
        raise no_ends()
    leaves = np.zeros(size, dtype=bool)
    leaves[source[ended]] = True
    return states_that_go_on(source[~ended], destination[~ended], leaves, size, loops=not to_an_end)[:n]


def _completed_edges(problem: Problem, inside: BoolArray) -> tuple[IntArray, IntArray, int, FloatArray]:
    """Where the target can go, from, to, how many nodes there are, and the rows behind every edge.

    The nodes are the states, one for each action, and the end. What a target does that was not logged in a state leads
    to the node of the action, and from there to wherever that action led elsewhere; as many rows as the target would
    have had of it.
    """
    rows, n, k = problem.transitions, problem.transitions.n_states, len(problem.transitions.actions)
    following = np.where(rows.next_state >= 0, rows.next_state, n + k)
    flows = (problem.pair_target[rows.pair] > 0) & inside[rows.state]
    seen = np.zeros((n, k), dtype=bool)
    seen[rows.pair_state, rows.pair_action] = True
    lacks = np.argwhere(~seen & (problem.state_target > 0) & inside[:, None])
    led = inside[rows.state]
    in_state = sum_by(rows.state, rows.rows, n)
    wanted = in_state[lacks[:, 0]] * problem.state_target[lacks[:, 0], lacks[:, 1]]
    share = sum_by(lacks[:, 1], wanted, k) / np.maximum(sum_by(rows.action[led], rows.rows[led], k), 1.0)
    source = np.concatenate([rows.state[flows], lacks[:, 0], n + rows.action[led]])
    destination = np.concatenate([following[flows], n + lacks[:, 1], following[led]])
    behind = np.concatenate([rows.rows[flows], wanted, (share[rows.action] * rows.rows)[led]])
    return source, destination, n + k + 1, behind
