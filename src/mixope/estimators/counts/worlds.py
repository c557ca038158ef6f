"""Worlds that no logged row connects: a plan, a country, a sex that nobody ever changes.

A model that predicts unlogged actions from others must not lead from one world to another, so that each is solved by
itself. In the long run a target stays in the world in which it starts, and its average is

    η = Σ_w p_w η_w,     p_w = the share of the episodes that start in w,

with the scores p_w · score_w, and (η_w − η) / starts for every start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.base.errors import DataError
from mixope.estimators.counts.flow import by_starts
from mixope.estimators.counts.solution import CountedSolution, combine_counted
from mixope.estimators.solution import Weights
from mixope.requests.problem import Problem
from mixope.requests.transitions import BASIS

MOST_WORLDS = 100
"""Of more, those in which the most episodes start are solved; the other starts are mass outside."""


def world_of_states(problem: Problem) -> IntArray:
    """The number of every state's world: states that rows connect, in either direction; an end leads to every start."""
    rows, n = problem.transitions, problem.transitions.n_states
    alive, ended = rows.next_state >= 0, rows.next_state < 0
    source, destination = rows.state[alive], rows.next_state[alive]
    if ended.any():
        begin = np.flatnonzero(problem.starts)
        source = np.concatenate([source, rows.state[ended], begin])
        destination = np.concatenate([destination, np.full(int(ended.sum()) + len(begin), n)])
    graph = sparse.csr_matrix((np.ones(len(source)), (source, destination)), shape=(n + 1, n + 1))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1][:n], dtype=np.int64)


def over_worlds(problem: Problem, solve: Callable[[Problem], CountedSolution]) -> CountedSolution:
    """The average by the worlds in which episodes start; other estimands, and logs of one world, are solved as one."""
    rows = problem.transitions
    world = world_of_states(problem)
    if not (problem.estimand.restarts and problem.knows_starts) or len(np.unique(world[rows.state])) == 1:
        return solve(problem)
    begun = sum_by(world, problem.starts)
    chosen = np.argsort(-begun, kind="stable")[: min(MOST_WORLDS, np.count_nonzero(begun))]
    found: dict[int, CountedSolution] = {}
    refusal: DataError | None = None
    for w in chosen.tolist():
        try:
            found[w] = _inside(problem, world == w, solve)
        except DataError as error:  # nothing can be followed there: its starts are mass outside
            refusal = error
    if not found and refusal is not None:
        raise refusal
    return _together(problem, world, begun, found)


def _inside(problem: Problem, states: BoolArray, solve: Callable[[Problem], CountedSolution]) -> CountedSolution:
    """Solved on the rows of one world; scores and weights are over the groups of all."""
    groups, n = np.flatnonzero(states[problem.transitions.state]), problem.transitions.n_groups
    part, law = problem.on_groups(groups), problem.start_law
    if law is not None:
        part = replace(part, start_law=law * states / (law * states).sum())
    solution = solve(part)
    scores, weights = solution.scores, solution.weights
    return replace(
        solution,
        scores=None if scores is None else _among(scores, groups, n),
        weights=None
        if weights is None
        else Weights(_among(weights.total, groups, n), _among(weights.squared, groups, n), weights.largest),
    )


def _among(values: FloatArray, groups: IntArray, n: int) -> FloatArray:
    everywhere = np.zeros((n, *values.shape[1:]))
    everywhere[groups] = values
    return everywhere


def _together(
    problem: Problem, world: IntArray, begun: FloatArray, found: dict[int, CountedSolution]
) -> CountedSolution:
    """p_w · solution_w, and the part of the starts."""
    rows, solved = problem.transitions, list(found)
    known = float(begun[solved].sum())
    one = combine_counted(list(found.values()), (begun[solved] / known).tolist())
    scores = one.scores
    if scores is not None and problem.start_law is None:
        gain = np.full(len(begun), one.value)
        gain[solved] = [solution.value for solution in found.values()]
        scores = scores.copy()
        of_starts = float(rows.starts.sum()) * known
        scores[:, BASIS.index("starts")] += (gain[world[rows.state]] - one.value) / of_starts
    off = [solution.solution.measures.approximation or 0.0 for solution in found.values()]
    approximation = float(np.linalg.norm(begun[solved] / known * off)) or None  # other rows predict in every world
    return replace(one, scores=scores).saying(
        outside_mass=(1.0 - known) + known * one.solution.outside_mass,
        measures=replace(one.solution.measures, approximation=approximation),
        corrects_coverage=any(solution.solution.corrects_coverage for solution in found.values()),
        notes=(*one.solution.notes, *by_starts(len(solved))),
    )
