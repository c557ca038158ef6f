"""Value-based estimators: LSTD-Q alone, and doubly robust EMP, which corrects it by weighted temporal differences.

    average      η = Σ c ωρ (r + V(s′) − q(s,a)) / Σ c ωρ
    discounted   η = (1−γ) E_μ₀ V + Σ c ωρ (r + γ V(s′) − q(s,a)) / Σ c        (a horizon likewise, with V_t, q_t)

Right if the ratio is right or the value is; its summand is the efficient influence function. With ω from counts and q
from factors of the state (V sums over all actions, logged or not) coverage bias is corrected as far as the factors
tell. States that are opaque ids have no such model: q is then the counted one, and ``dr`` equals ``emp``, ``lstdq``
equals ``model``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixope.behaviours import Behaviour, CountedMixture
from mixope.estimators.flow import Flow, follow
from mixope.estimators.model import Model
from mixope.estimators.occupancy import Occupancy, occupy
from mixope.estimators.solution import Solution
from mixope.estimators.state_ratio import score_table, state_ratio, state_ratio_solution
from mixope.estimators.value_model import PLUG_IN_RIDGE, RIDGES, ValueFit, fit_value
from mixope.problem import Problem
from mixope.statistics.transitions import BASIS

NO_SCORE = "a plug-in value has no score of its own; 'dr' corrects it and has an interval"
PLUG_IN_BIAS = "a plug-in value is biased by whatever its features miss, and nothing in it measures that; see 'dr'"


@dataclass(frozen=True)
class DoublyRobust:
    """EMP's ratio with a value model on the factors of the state."""

    name: str = "dr"
    behaviour: Behaviour = field(default_factory=CountedMixture)
    orders: tuple[int, ...] = (1, 2)
    ridges: tuple[float, ...] = RIDGES

    def solve(self, problem: Problem) -> Solution:
        """The ratio from the flow, the value from the factors, the correction from both."""
        flow = follow(problem, self.behaviour, np.ones(problem.transitions.n_groups))
        occupancy = occupy(flow)
        plain = state_ratio_solution(flow, occupancy)
        if not problem.transitions.factors:
            return plain
        fit = fit_value(flow, self.orders, self.ridges)
        return _corrected(flow, occupancy, plain, fit)


def _corrected(flow: Flow, occupancy: Occupancy, plain: Solution, fit: ValueFit) -> Solution:
    """Add the weighted temporal differences to the plug-in value; scores as in the module."""
    omega = state_ratio(flow, occupancy)
    weighted = omega[flow.rows.state]
    total = float(flow.count.sum())
    correction = float(np.sum(weighted * (flow.ratio_reward + flow.ratio * fit.rest))) / total
    if flow.problem.estimand.kind == "average":
        value = correction
        start = np.zeros_like(fit.start)
        if flow.restarts:
            ends = float(np.sum((weighted * flow.ratio)[flow.rows.next_state < 0])) / total
            start = ends * fit.start
        scores = score_table(flow, omega, fit.rest - value, start)
    else:
        value = fit.value + correction
        scores = score_table(flow, omega, fit.rest, fit.start - fit.value)
        scores[flow.groups, BASIS.index("rows")] -= correction * flow.weight / total
    return replace(
        plain,
        value=value,
        scores=scores,
        measures={**plain.measures, "ridge": fit.ridge, "order": float(fit.order), "plug_in": fit.value},
    )


@dataclass(frozen=True)
class LstdQ:
    """The plug-in value of LSTD-Q: all pairs of factors, a small ridge: nothing corrects what a smooth fit misses."""

    name: str = "lstdq"
    orders: tuple[int, ...] = (2,)
    ridges: tuple[float, ...] = (PLUG_IN_RIDGE,)

    def solve(self, problem: Problem) -> Solution:
        """On factors the linear model; on opaque ids one-hot pairs, which is the counted model."""
        if not problem.transitions.factors:
            return Model().solve(problem)
        flow = follow(problem, CountedMixture(), np.ones(problem.transitions.n_groups))
        occupancy = occupy(flow)
        plain = state_ratio_solution(flow, occupancy)
        fit = fit_value(flow, self.orders, self.ridges)
        corrected = _corrected(flow, occupancy, plain, fit)
        return replace(
            corrected,
            value=fit.value,
            scores=None,
            weights=None,
            no_interval_because=NO_SCORE,
            known_bias=PLUG_IN_BIAS,
        )
