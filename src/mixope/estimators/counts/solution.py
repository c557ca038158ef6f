"""The way to a solution on counts: the value is there, scores and weights are still by group of rows.

An estimator on counts solves its equations at once and ends by asking for its scores:

    return scored(problem, CountedSolution(Solution(value, …), scores=coefficients, weights=Weights(…), visits=d))

How much of the target was never logged is summed here, the same for all of them, from d(s), how often each has the
target in every state:

    uncovered mass    Σ_s d(s) (1 − Σ_{a logged in s} π(a|s)) / Σ_s d(s)

While the rows are read, nothing of the flow is held: what checks look at is read off before
(:attr:`mixope.requests.problem.Problem.reader`), and weights are summed by logger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.estimators.asking import Answer, Asking, answered
from mixope.estimators.solution import Solution, Weights, average, combine, combine_weights
from mixope.requests.followed import Followed
from mixope.requests.problem import Problem
from mixope.requests.request import Request
from mixope.requests.scores import ScoreTable
from mixope.requests.transitions import Transitions, start_error
from mixope.requests.weights import weight_bins


@dataclass(frozen=True)
class CountedSolution:
    """A solution without scores and weights, a score table (groups × basis) for the one, and weights by group.

    The groups are the transitions of the problem, or those that were logged (``of_logged``). ``visits`` are how often
    the target is in every state of the problem.
    """

    solution: Solution
    scores: FloatArray | None = None
    weights: Weights | None = None
    of_logged: bool = False
    visits: FloatArray | None = None

    @property
    def value(self) -> float:
        """The estimate."""
        return self.solution.value

    def saying(self, **changes: Any) -> CountedSolution:
        """The same with other words on the solution."""
        return replace(self, solution=replace(self.solution, **changes))

    def on_logged(self, followed: Followed | None) -> CountedSolution:
        """With table and weights of the groups as they were logged."""
        if followed is None or self.of_logged:
            return self
        scores, weights = self.scores, self.weights
        if weights is not None:
            sums = followed.sums_of_logged
            weights = replace(weights, total=sums(weights.total), squared=sums(weights.squared))
        scores = None if scores is None else followed.scores_of_logged(scores)
        return replace(self, weights=weights, scores=scores, of_logged=True)


def combine_counted(parts: Sequence[CountedSolution], shares: Sequence[float]) -> CountedSolution:
    """The weighted average of several solutions, each on its own rows."""
    return CountedSolution(
        combine([part.solution for part in parts], shares),
        average([part.scores for part in parts], shares),
        combine_weights([part.weights for part in parts], shares),
        visits=average([None if d is None else d / np.abs(d).sum() for d in (part.visits for part in parts)], shares),
    )


def uncovered(rows: Transitions, pair_target: FloatArray) -> FloatArray:
    """By state, the target's probability of actions that were never logged there; 0 in states that nobody left."""
    left = np.bincount(rows.pair_state, minlength=rows.n_states) > 0
    covered = sum_by(rows.pair_state, pair_target, rows.n_states)
    return np.where(left, np.clip(1.0 - covered, 0.0, 1.0), 0.0)


def uncovered_mass(rows: Transitions, pair_target: FloatArray, visits: FloatArray) -> float:
    """The share of these visits in which the target does what was never logged."""
    mass = np.abs(visits)
    return float(mass @ uncovered(rows, pair_target)) / float(mass.sum())


def scored(problem: Problem, found: CountedSolution) -> Asking[Solution]:
    """The last round of an estimator on counts: its scores by cluster."""
    found = found.on_logged(problem.followed)
    solution, table, error = dressed(problem, found), found.scores, None
    if table is None:
        return solution
    if problem.piece_steps:
        logged = problem.logged
        error = 0.0 if problem.estimand.restarts else start_error(table, logged.rows, logged.starts)
    request = ScoreTable(table, problem.numbers, by_step=bool(problem.piece_steps))
    del found, table
    (scores,) = yield (request,)
    return replace(solution, scores=scores and replace(scores, start_error=error))


def dressed(problem: Problem, found: CountedSolution) -> Solution:
    """With weights by logger, how they are spread over the rows, and what is read off the flow."""
    if found.visits is not None:
        mass = uncovered_mass(problem.transitions, problem.pair_target, found.visits)
        found = found.saying(uncovered_mass=mass)
    solution, weights, logged = found.solution, found.weights, problem.logged
    readings = None if problem.reader is None else problem.reader(problem, found)
    if weights is None:
        return replace(solution, readings=readings)
    bins = weight_bins(weights.total / logged.rows, logged.rows)
    by_logger = weights.by(logged.logger, len(logged.loggers))
    return replace(solution, weights=by_logger, weight_bins=bins, readings=readings)


def without_scores(start: Callable[[], Any], answer: Answer | None = None) -> Solution:
    """The solution of one estimator on counts alone: nobody sums its scores; other requests go to ``answer``."""

    def answers(requests: Sequence[Request]) -> tuple[Any, ...]:
        others = [request for request in requests if not isinstance(request, ScoreTable)]
        found = iter(answer(others) if answer is not None and others else ())
        return tuple(None if isinstance(request, ScoreTable) else next(found) for request in requests)

    solution: Solution = answered(start, answers)
    return solution
