"""The paper's form of the stationarity equations, with Liu's quadratic program: for reproduction.

    Σ c [ω(s′) − ρ ω(s)] f(s′) = 0
    M[s,s′] = Σ_rows ρ;   n, n′ the visits as s and as s′;   F = (n + n′)/2 normalised to one
    G = (M − diag n′)/F(row)/50:   min ‖Gᵀx‖² + 0.001‖x‖²,  Σx = 1,  x ≥ 0;   ω = x/F on visited states.

It assumes that s and s′ have the same law. Logs that start from a reset do not, and then it has a bias
(E ωV(s₀) − E ωV(s_H))/H that no amount of data removes; the general form does not. Average reward only.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, Setting, UsageError
from mixope.behaviours import CountedMixture
from mixope.behaviours.calibration import misfit, state_factors
from mixope.behaviours.protocol import Behaviour
from mixope.estimators.counts.outside import leaving
from mixope.estimators.counts.solution import CountedSolution
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.requests.problem import Problem
from mixope.solvers.outcome import Solved
from mixope.solvers.quadratic import minimise_on_simplex

_REGULARISER = 0.001
_SCALE = 50.0
_MOST_STATES = 6000


def solve_paper_form(problem: Problem, behaviour: Behaviour, weight: FloatArray, calibrate: bool) -> CountedSolution:
    """ω by the quadratic program on all rows; value Σ c ω ρ r / Σ c ω ρ."""
    found = _solve(problem, behaviour, weight, calibrate)
    return found.saying(otherwise=lambda: _solve(problem, CountedMixture(), weight, calibrate).value)


def _solve(problem: Problem, behaviour: Behaviour, weight: FloatArray, calibrate: bool) -> CountedSolution:
    if problem.estimand.kind != "average":
        said = "the paper's form is for the average reward only; use "
        raise UsageError(Advice(said, Setting("form", "general")))
    groups = np.flatnonzero((weight > 0) & (problem.transitions.next_state >= 0))
    part, c = problem.on_groups(groups), weight[groups]
    rows, counted_rows = part.transitions, part.transitions.as_rows()
    found = behaviour.knowing(problem.loggers).fit(counted_rows, c, problem.seed)
    inverse = found.invert(counted_rows)
    target = part.pair_target[rows.pair]
    raw = target * inverse.inverse
    scale = c.copy()
    if calibrate:
        scale *= state_factors(rows.state, rows.rows * c, raw * c, rows.n_states)[rows.state]
    omega, solved = _ratio(rows.state, rows.next_state, rows.rows * c, scale * raw, rows.n_states)
    at = omega[rows.state]
    total, squared = np.zeros(problem.transitions.n_groups), np.zeros(problem.transitions.n_groups)
    total[groups], squared[groups] = at * scale * raw, (at * scale * target) ** 2 * inverse.squared
    single = squared[groups] / (1.0 if inverse.by_row else rows.rows)
    earned = float(np.sum(at * scale * target * inverse.reward))
    visits = sum_by(problem.transitions.state, total, rows.n_states)
    solution = Solution(
        value=earned / float(total.sum()),
        outside_mass=leaving(problem, weight, groups, visits),
        solved=solved,
        measures=Measures(
            mean_weight=float(total.sum()) / float(rows.rows @ c),
            behaviour_misfit=None
            if found.counted
            else misfit(rows.state, rows.rows, raw, target**2 * inverse.squared, rows.n_states)[0],
        ),
        known_bias=_start_up(problem),
        no_interval_because="the paper's quadratic program is regularised and has no score; use the general form",
    )
    weights = Weights(total, squared, float(np.sqrt(single.max(initial=0.0))))
    return CountedSolution(solution, weights=weights, visits=visits)


def _start_up(problem: Problem) -> str | None:
    """The form is biased wherever episodes start from a reset, unless the first and last states have the same law."""
    if problem.transitions.starts.sum() == 0:
        return None
    return "the paper's form is biased on episodes that start from a reset, however many; use the general form"


def _ratio(
    state: IntArray, next_state: IntArray, count: FloatArray, ratio: FloatArray, n_states: int
) -> tuple[FloatArray, Solved]:
    leaving = sum_by(state, count, n_states)
    arriving = sum_by(next_state, count, n_states)
    visited = np.flatnonzero(leaving + arriving)
    if len(visited) > _MOST_STATES:
        raise UsageError(
            Advice(
                f"the quadratic program takes at most {_MOST_STATES} states, these logs have {len(visited)};",
                " use ",
                Setting("form", "general"),
            )
        )
    number = np.full(n_states, -1)
    number[visited] = np.arange(len(visited))
    frequency = (leaving + arriving)[visited] / 2
    frequency = frequency / frequency.sum()
    size = len(visited)
    flow = sparse.coo_array((ratio, (number[state], number[next_state])), (size, size))
    g = sparse.diags_array(1 / (frequency * _SCALE)) @ (flow - sparse.diags_array(arriving[visited]))
    x, solved = minimise_on_simplex((g @ g.T + _REGULARISER * sparse.eye_array(size)).tocsc())
    omega = np.zeros(n_states)
    omega[visited] = x / frequency
    return omega, solved
