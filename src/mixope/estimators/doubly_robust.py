"""Value-based estimators: LSTD-Q alone, and doubly robust EMP, which corrects it by weighted temporal differences.

    average      η = Σ c ωρ (r + V(s′) − q(s,a)) / Σ c ωρ
    discounted   η = (1−γ) E_μ₀ V + Σ c ωρ (r + γ V(s′) − q(s,a)) / Σ c        (a horizon likewise, with V_t, q_t)
    episode      η = E_μ₀ V + Σ c ωρ (r + γ V(s′) − q(s,a)) / Σ c

Right if the ratio is right or the value is; its summand is the efficient influence function. Where states have factors
there are two ways to say something of actions that were never logged, and so to correct coverage bias:

    kriged   the counted model, completed (:mod:`mixope.estimators.counts.completion`): ratio and value come from one
             chain in which every action of the target counts. The default.
    linear   ω from counts, q by LSTD-Q on interactions of the factors (:mod:`mixope.estimators.counts.value_model`)

Of the kriged value, what was not logged is itself uncertain, and a pair logged once says nothing of its own noise;
``approximation`` is the standard deviation of both, and widens the interval.
States that are opaque ids have no such model: ``dr`` equals ``emp`` then, ``lstdq`` equals ``model``. So does ``dr``
where all that the target does was logged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import DataError, UsageError
from mixope.behaviours import Behaviour, CountedMixture, DefaultMixture, as_behaviour
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.completed_part import CompletedPart, part_to_complete
from mixope.estimators.counts.completion import Completion, complete
from mixope.estimators.counts.flow import Flow, follow
from mixope.estimators.counts.frontier import Frontier, at_the_frontier
from mixope.estimators.counts.occupancy import Occupancy, occupy, pooled
from mixope.estimators.counts.outside import leaving, with_lost_starts
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.counts.value_model import PLUG_IN_RIDGE, RIDGES, FlowValue, fit_value
from mixope.estimators.counts.worlds import over_worlds
from mixope.estimators.features.estimators import NO_SCORE, PLUG_IN_BIAS, lstdq_on_features, state_ratio_on_features
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.model import by_model
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.estimators.state_ratio import (
    equal_weights,
    left_out,
    score_table,
    solve_on_counts,
    state_ratio,
    state_ratio_solution,
)
from mixope.requests.problem import Problem
from mixope.requests.transitions import BASIS, empty_scores


@dataclass(frozen=True)
class DoublyRobust(BothKinds):
    """EMP's ratio with a value model on the factors of the state; a behaviour of one's own needs the linear one.

    ``behaviour`` is one of :mod:`mixope.behaviours`, or its name; None is the mixture that is fitted to the actions,
    also where propensities were recorded (benchmarks/recorded.py says why).
    """

    name: str = "dr"
    behaviour: Behaviour | str | None = None
    value: Literal["kriged", "linear"] | None = None
    orders: tuple[int, ...] = (1, 2)
    ridges: tuple[float, ...] = RIDGES

    def __post_init__(self) -> None:
        if self.behaviour is not None:
            object.__setattr__(self, "behaviour", as_behaviour(self.behaviour))
        if self.value not in (None, "kriged", "linear"):
            raise UsageError(f"value must be 'kriged', 'linear' or None (whichever fits), got {self.value!r}")
        if self.value == "kriged" and self.behaviour is not None:
            raise UsageError("the kriged value counts the behaviour itself. Leave behaviour out, or use value='linear'")

    @property
    def ignores_loggers(self) -> bool:
        """Whether counts of (s, a, s′) are all it looks at; a regression weighs what is counted apart."""
        return self.behaviour is None and self.value != "linear"

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """The completed model, or a ratio from the flow and a value from factors."""
        return scored(problem, self.counted(problem))

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """A ratio and a value, both from features."""
        behaviour = self._behaviour or DefaultMixture()
        return state_ratio_on_features(problem, self.name, behaviour, equal_weights, pooled=True, doubly_robust=True)

    def counted(self, problem: Problem) -> CountedSolution:
        """On counts, without scores by cluster."""
        if not problem.transitions.factors:
            return solve_on_counts(problem, self._behaviour or CountedMixture())
        if self._krige(problem):
            return _completed(problem)
        return _regressed(problem, self._behaviour, self.orders, self.ridges).saying(corrects_coverage=True)

    @property
    def _behaviour(self) -> Behaviour | None:
        return None if self.behaviour is None else as_behaviour(self.behaviour)

    def _krige(self, problem: Problem) -> bool:
        if self.value is not None:
            return self.value == "kriged"
        return self.behaviour is None


def _completed(problem: Problem) -> CountedSolution:
    """The completed model's value, world by world; where nothing was left to predict, EMP's."""
    if _leaves_nothing_to_predict(problem):
        return solve_on_counts(problem, CountedMixture())
    found, edge = over_worlds(problem, _completed_world), _edge(problem)
    measures = replace(found.solution.measures, frontier_mass=edge.mass, frontier_span=edge.span)
    return found.saying(measures=measures)


def _edge(problem: Problem) -> Frontier:
    """What hangs on states that nobody left, as of EMP: a prediction leads back to states that were logged at once."""
    try:
        return at_the_frontier(*pooled(problem))
    except DataError:  # where it is followed by predictions alone
        return Frontier()


def _leaves_nothing_to_predict(problem: Problem) -> bool:
    """Whether all that the target does, of what was logged anywhere, was logged in every state."""
    rows = problem.transitions
    lacking = problem.state_target > 0
    lacking[rows.pair_state, rows.pair_action] = False
    return not bool(lacking.any())


def _completed_world(problem: Problem) -> CountedSolution:
    part = part_to_complete(problem)
    if not part.n_unseen:
        return solve_on_counts(problem, CountedMixture())
    found = complete(part)
    unit, visits = found.pair_weight / part.pair_rows, np.zeros(problem.transitions.n_states)
    visits[part.states] = found.law
    likeness = found.map.likeness
    measures = Measures(
        approximation=found.unseen_error(),
        sill=likeness.sill,
        noise=likeness.noise,
        episode_length=float(found.law.sum()) if problem.estimand.kind == "episode" else None,
        likeness=dict(zip(part.rows.factors, likeness.decays, strict=True)),
    )
    solution = Solution(
        value=found.value,
        outside_mass=_outside(found, visits),
        solved=found.solved,
        measures=measures,
        corrects_coverage=True,
    )
    return CountedSolution(solution, _scores(found, unit), _weights(part, unit), visits=visits)


def _outside(found: Completion, visits: FloatArray) -> float:
    """As of a flow (:mod:`mixope.estimators.counts.outside`)."""
    part = found.part
    away = leaving(part.whole, np.ones(part.whole.transitions.n_groups), part.groups[~part.astray], visits)
    if not part.whole.estimand.restarts:
        away = with_lost_starts(away, part.whole, part.states)
    return min(max(away + part.elsewhere + part.doubt, 0.0), 1.0)


def _weights(part: CompletedPart, unit: FloatArray) -> Weights:
    """w of every row, scaled to a mean of one."""
    at = unit[part.rows.pair] * float(part.rows.rows.sum())
    total, squared = np.zeros((2, part.whole.transitions.n_groups))
    total[part.groups], squared[part.groups] = at * part.rows.rows, at**2 * part.rows.rows
    return Weights(total, squared, float(np.abs(at).max(initial=0.0)))


def _scores(found: Completion, unit: FloatArray) -> FloatArray:
    """Coefficients of w (x − ȳ) n/(n−1), x = r + t of the row, ȳ its mean over the n rows of the pair."""
    part, rows = found.part, found.part.rows
    n = part.pair_rows
    own = left_out(n)
    centre = own * found.pair_worth
    whole = part.whole.transitions
    scores = empty_scores(whole.n_groups)
    rest = own[rows.pair] * (found.tail - found.zero) - centre[rows.pair]
    scores[part.groups, BASIS.index("reward")] = (unit * own)[rows.pair]
    scores[part.groups, BASIS.index("rows")] = unit[rows.pair] * rest
    n_starts = float(whole.starts.sum())
    if n_starts and part.whole.start_law is None:
        inside = part.number[whole.state]
        start = np.where(inside >= 0, found.start_score[inside], 0.0)
        scores[:, BASIS.index("starts")] = start / n_starts
    return scores


def _regressed(
    problem: Problem, behaviour: Behaviour | None, orders: tuple[int, ...], ridges: tuple[float, ...]
) -> CountedSolution:
    """The ratio from the flow, the value from a regression on the factors, the correction from both."""
    if behaviour is None:
        flow, occupancy = pooled(problem)
    else:
        flow = follow(problem, behaviour, np.ones(problem.transitions.n_groups))
        occupancy = occupy(flow)
    plain = state_ratio_solution(flow, occupancy)
    return _corrected(flow, occupancy, plain, fit_value(flow, orders, ridges))


def _corrected(flow: Flow, occupancy: Occupancy, plain: CountedSolution, fit: FlowValue) -> CountedSolution:
    """Add the weighted temporal differences to the plug-in value; scores as in the module."""
    omega = state_ratio(flow, occupancy)
    weighted = omega[flow.rows.state]
    total = float(flow.count.sum())
    correction = float(np.sum(weighted * (flow.ratio_reward + flow.ratio * fit.rest))) / total
    if flow.problem.estimand.restarts:
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
    measures = replace(
        plain.solution.measures, ridge=fit.ridge, order=float(fit.order), plug_in=fit.value, approximation=None
    )
    return replace(plain, scores=scores).saying(value=value, measures=measures)


@dataclass(frozen=True)
class LstdQ(BothKinds):
    """The plug-in value of LSTD-Q: all pairs of factors, a small ridge: nothing corrects what a smooth fit misses."""

    name: str = "lstdq"
    orders: tuple[int, ...] = (2,)
    ridges: tuple[float, ...] = (PLUG_IN_RIDGE,)

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """On factors the linear model; on opaque ids one-hot pairs, which is the counted model."""
        return scored(problem, self._solve(problem))

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """The linear model."""
        return lstdq_on_features(problem)

    def _solve(self, problem: Problem) -> CountedSolution:
        if not problem.transitions.factors:
            return by_model(problem)
        corrected = _regressed(problem, None, self.orders, self.ridges)
        value = corrected.solution.measures.plug_in or 0.0
        plain = corrected.saying(value=value, no_interval_because=NO_SCORE, known_bias=PLUG_IN_BIAS)
        return replace(plain, scores=None, weights=None)
