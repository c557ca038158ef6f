"""The certainty-equivalent model: count P̂(s′|s,a) and r̂(s,a), then evaluate the target in that model.

The value comes from the target's *value function* (Poisson or Bellman equation), not from an occupancy, so it is an
independent route to what tabular EMP computes; where every action is covered they agree to rounding.
The target is renormalised over the actions logged in a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, sum_by
from mixope.estimators.asking import Asking
from mixope.estimators.counts.flow import Flow, with_restart
from mixope.estimators.counts.occupancy import pooled
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.solution import Solution
from mixope.estimators.state_ratio import state_ratio_solution
from mixope.requests.problem import Problem
from mixope.solvers.chain import Chain


@dataclass(frozen=True)
class CertaintyEquivalence:
    """Certainty equivalence."""

    name: str = "model"
    ignores_loggers: ClassVar[bool] = True

    def solve(self, problem: Problem) -> Asking[Solution]:
        """The value by the counted model; weights and scores are those of EMP, to which it is equal in law."""
        return scored(problem, by_model(problem))


def by_model(problem: Problem) -> CountedSolution:
    """Of a question."""
    flow, occupancy = pooled(problem)
    return state_ratio_solution(flow, occupancy).saying(value=_value(flow))


def counted_model(flow: Flow) -> tuple[sparse.csr_matrix, FloatArray]:
    """P̂_π and r̂_π on the kept states from pair means; where ends restart, one further state leads to μ₀ in no time."""
    rows, n = flow.rows, len(flow.states)
    count = sum_by(rows.pair, rows.rows)
    reward = sum_by(rows.pair, rows.reward) / count
    covered = sum_by(rows.pair_state, flow.problem.pair_target, rows.n_states)
    policy = flow.problem.pair_target / covered[rows.pair_state]
    alive = rows.next_state >= 0
    share = policy[rows.pair] * rows.rows / count[rows.pair]
    source = flow.number[rows.state]
    matrix = sparse.csr_matrix((share[alive], (source[alive], flow.number[rows.next_state[alive]])), shape=(n, n))
    if flow.restarts:
        ends = sum_by(source[~alive], share[~alive], n)
        matrix = with_restart(matrix, ends, flow.start)
    return matrix, sum_by(flow.number[rows.pair_state], policy * reward, n)


def _value(flow: Flow) -> float:
    matrix, reward = counted_model(flow)
    estimand, chain = flow.problem.estimand, Chain(matrix)
    if estimand.restarts:
        instant = np.zeros(matrix.shape[0] - len(reward))
        return chain.gain(np.append(reward, instant), np.append(np.ones(len(reward)), instant))
    if estimand.sums:
        return float(estimand.scale * flow.start @ chain.discounted_value(reward, estimand.discount))
    assert estimand.horizon is not None
    value = np.zeros(len(reward))
    for _ in range(estimand.horizon):
        value = reward + matrix @ value
    return float(flow.start @ value) / estimand.horizon
