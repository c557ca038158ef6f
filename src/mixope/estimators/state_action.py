"""The state–action family: ratios ζ(s,a) = d_π(s)π(a|s)/d₀(s,a) that need no behaviour at all.

    Σ c ζ(s,a)[f(s,a) − γ f(s′,π)] = k E_μ₀ f(s,π),     f(s,π) = Σ_a π(a|s) f(s,a),     value = Σ c ζ r / Σ c ζ.

where k is 1 − γ for the discounted value, 1 for the total of an episode, and the average has γ = 1 and Σ c ζ = Σ c
instead. With one-hot tests on the logged pairs, x = n ζ is a law on pairs with x = k e + γ Gᵀ x, G = E Π, where E(s,a →
s′) is the counted transition law and Π(s′ → s′,a′) = π. Where the target takes an action that was not logged, mass
*leaks* (nothing renormalises the target here), so for the average no x solves the equations exactly and the three
estimators differ in what they solve instead:

    mwl        (Uehara et al. 2020) least squares: min ‖x − Gᵀx‖² with Σx = 1
    dualdice   (Nachum et al. 2019) the limit γ → 1 of its discounted solution, self-normalised: visits before leaking
    sadl       (the paper) ζ = u π: m = n u should be d(s) for every action; least squares over the logged pairs, tests
               weighted by a (uniform) reference action law, Σ π m = 1

With a discount, or ends that are final, mwl and dualdice are the same linear system. Every solve is on states, not on
pairs: (I − E Π)⁻¹ = I + E (I − Π E)⁻¹ Π.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.flow import Flow, with_restart
from mixope.estimators.counts.frontier import at_the_frontier
from mixope.estimators.counts.occupancy import Occupancy, pooled
from mixope.estimators.counts.outside import outside_mass
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.features.estimators import pair_ratio_on_features, sadl_on_features
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.estimators.state_ratio import left_out, pair_baseline
from mixope.requests.problem import Problem
from mixope.requests.transitions import BASIS, empty_scores
from mixope.solvers.chain import Resolvent, Side
from mixope.solvers.outcome import Outcome, Solved


@dataclass(frozen=True)
class PairSystem:
    """The kept pairs: E (pairs × states) with the share that ends and restarts, π on pairs, (I − γ Π E)⁻¹."""

    flow: Flow
    gamma: float
    leave: sparse.csr_matrix
    ends: FloatArray
    start: FloatArray
    target: FloatArray
    state: IntArray
    resolvent: Resolvent

    @property
    def sums(self) -> bool:
        """Whether the estimand is a sum from μ₀, so that there is a source of mass."""
        return self.flow.problem.estimand.sums

    def solve(self, b: FloatArray, trans: Side) -> FloatArray:
        """With I − γ(Π E + restarts): sparse, by one further state that stands for the restart."""
        n = len(b)
        further = np.zeros(self.resolvent.transition.shape[0] - n)
        return self.resolvent.solve(np.append(b, further), trans)[0][:n]

    def ahead(self, v: FloatArray) -> FloatArray:
        """E v: the mean of v in the next state; an end restarts from μ₀."""
        return np.asarray(self.leave @ v + self.ends * (self.start @ v))

    def inflow(self, x: FloatArray) -> FloatArray:
        """Eᵀ x: the mass that arrives in every state."""
        return np.asarray(self.leave.T @ x + self.start * (self.ends @ x))

    def by_state(self, x: FloatArray) -> FloatArray:
        """Σ over the pairs of a state."""
        return sum_by(self.state, x, len(self.start))

    def forward(self, x: FloatArray) -> FloatArray:
        """Gᵀ x: where the mass on pairs goes in one step."""
        return np.asarray(self.target * self.inflow(x)[self.state])

    def occupancy(self, source: FloatArray) -> FloatArray:
        """(I − γ Gᵀ)⁻¹ source, by the solve on states: x = source + γ Πᵀ (I − γ EᵀΠᵀ)⁻¹ Eᵀ source."""
        return np.asarray(source + self.gamma * self.target * self.solve(self.inflow(source), "T")[self.state])

    def value(self, reward: FloatArray) -> FloatArray:
        """(I − γ G)⁻¹ reward = reward + γ E (I − γ Π E)⁻¹ Π reward."""
        return np.asarray(reward + self.gamma * self.ahead(self.solve(self.by_state(self.target * reward), "N")))


def pair_system(flow: Flow) -> PairSystem:
    """Counted transition law of the kept pairs; ends restart for the average and lead nowhere otherwise."""
    rows, n = flow.rows, len(flow.states)
    gamma = flow.problem.estimand.discount
    count = sum_by(rows.pair, flow.count)
    alive = rows.next_state >= 0
    share = (flow.count / count[rows.pair])[alive]
    leave = sparse.csr_matrix((share, (rows.pair[alive], flow.number[rows.next_state[alive]])), shape=(rows.n_pairs, n))
    ends, start = np.zeros(rows.n_pairs), np.zeros(n)
    if flow.restarts:
        ends = sum_by(rows.pair[~alive], flow.count[~alive], rows.n_pairs) / count
        start = flow.start
    target, state = flow.problem.pair_target, flow.number[rows.pair_state]
    choose = sparse.csr_matrix((target, (state, np.arange(rows.n_pairs))), shape=(n, rows.n_pairs))
    step = sparse.csr_matrix(choose @ leave)
    if ends.any():
        step = with_restart(step, np.asarray(choose @ ends), start / gamma)
    return PairSystem(flow, gamma, leave, ends, start, target, state, Resolvent(step, gamma))


@dataclass(frozen=True)
class StateAction(BothKinds):
    """A state–action ratio: ``law`` gives x on the kept pairs of a leaking flow; ``ratios`` solves vectors."""

    name: str
    law: Callable[[PairSystem], FloatArray]
    ratios: Callable[[FeatureProblem], Asking[Solution]]
    ignores_loggers: ClassVar[bool] = True

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """A ratio of pairs that is linear in features."""
        return self.ratios(problem)

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """x on pairs, then value and scores."""
        if problem.estimand.kind == "horizon":
            raise UsageError(
                f"{self.name!r} is for the average and the discounted value; use 'emp' or 'dr' for a horizon"
            )
        return scored(problem, self._solve(problem))

    def _solve(self, problem: Problem) -> CountedSolution:
        flow, occupancy = pooled(problem)
        if _leaks(flow):
            system = pair_system(flow)
            x = self.law(system)
            x, solved = np.maximum(x, 0.0), _outcome(system, x)
        else:
            x, solved = _covered_law(flow, occupancy)
        return _solution(flow, occupancy, x, solved)


def _leaks(flow: Flow) -> bool:
    covered = sum_by(flow.rows.pair_state, flow.problem.pair_target, flow.rows.n_states)
    return bool(np.any(covered[flow.states] < 1.0 - 1e-12))


def _covered_law(flow: Flow, occupancy: Occupancy) -> tuple[FloatArray, Solved]:
    """Where nothing leaks all of them solve x = d(s) π(a|s), d = d P."""
    return occupancy.law[flow.rows.pair_state] * flow.problem.pair_target, occupancy.solved


def _least_squares(system: PairSystem) -> FloatArray:
    """min ‖Bx‖², 1·x = 1, B = I − Gᵀ: x ∝ B⁻¹ B⁻ᵀ 1. For sums from μ₀ the equations hold exactly."""
    if system.sums:
        return _visits(system)
    ones = np.ones(len(system.target))
    x = system.occupancy(system.value(ones))
    return np.asarray(x / x.sum())


def _visits_before_leaking(system: PairSystem) -> FloatArray:
    """(I − Gᵀ)⁻¹ e, self-normalised; e the start law times the target."""
    if system.sums:
        return _visits(system)
    x = system.occupancy(_first_pairs(system))
    return np.asarray(x / x.sum())


def _visits(system: PairSystem) -> FloatArray:
    return system.flow.problem.estimand.scale * system.occupancy(_first_pairs(system))


def _first_pairs(system: PairSystem) -> FloatArray:
    return np.asarray(system.flow.start[system.state] * system.target)


def _least_squares_by_state(system: PairSystem) -> FloatArray:
    """SADL: m = R Q m, R copying a state's inflow to its pairs, Q the inflow Σ π(a|s) E(s,a → s′) m(s,a).

    For sums from μ₀ the inflow has the source k μ₀ and the equations hold exactly; else m ∝ B⁻¹ B⁻ᵀ π, π·m = 1, with
    B = I − R Q and B⁻¹ y = y + R (I − Q R)⁻¹ Q y.
    """
    target, state = system.target, system.state
    if system.sums:
        inflow = system.solve(system.flow.problem.estimand.scale * system.flow.start, "T")
        return np.asarray(target * inflow[state])
    back = target + target * system.ahead(system.solve(system.by_state(target), "N"))
    m = back + system.solve(system.inflow(target * back), "T")[state]
    x = target * np.maximum(m, 0.0)
    return np.asarray(x / x.sum())


def _outcome(system: PairSystem, x: FloatArray) -> Solved:
    """The residual is the leak itself for the average; a negative part is named."""
    source = system.flow.problem.estimand.scale * _first_pairs(system) if system.sums else 0.0
    residual = float(np.abs(source + system.gamma * system.forward(x) - x).sum())
    return Solved(Outcome.CLIPPED if float(x.min(initial=0.0)) < -1e-9 else system.resolvent.outcome, residual)


def _solution(flow: Flow, occupancy: Occupancy, x: FloatArray, solved: Solved) -> CountedSolution:
    """Value Σ ζ r (self-normalised for the average), and the efficient score with ζ for ωρ."""
    rows = flow.rows
    count = sum_by(rows.pair, flow.count)
    zeta = x / count
    total = _accounted_mass(flow, x, count)
    value = float(np.sum(zeta[rows.pair] * rows.reward)) / total
    whole = flow.whole.transitions
    rest = occupancy.tail - pair_baseline(flow, occupancy.tail)
    scores = empty_scores(whole.n_groups)
    unit = (zeta * left_out(sum_by(rows.pair, rows.rows)))[rows.pair] / total
    scores[flow.groups, BASIS.index("rows")] = unit * rest
    scores[flow.groups, BASIS.index("reward")] = unit
    if flow.whole.start_law is None and whole.starts.sum():
        scores[:, BASIS.index("starts")] = occupancy.start_score[whole.state] / whole.starts.sum()
    weights = np.zeros(whole.n_groups)
    weights[flow.groups] = zeta[rows.pair]
    edge = at_the_frontier(flow, occupancy)
    solution = Solution(
        value=value,
        outside_mass=outside_mass(flow, occupancy.law),
        solved=solved,
        measures=Measures(
            leaked_mass=solved.residual if flow.problem.estimand.restarts else 1.0 - total,
            episode_length=float(x.sum()) / total if flow.problem.estimand.kind == "episode" else None,
            frontier_mass=edge.mass,
            frontier_span=edge.span,
        ),
        notes=flow.notes,
    )
    by_group = Weights(weights * whole.rows, weights**2 * whole.rows, float(weights.max(initial=0.0)))
    return CountedSolution(solution, scores, by_group, visits=occupancy.law)


def _accounted_mass(flow: Flow, x: FloatArray, count: FloatArray) -> float:
    """Σ x for the average; for sums from μ₀ ((1−γ) Σ x + γ Σ x at ends)/k, the test f = 1: one less what leaked."""
    estimand = flow.problem.estimand
    if estimand.restarts:
        return float(x.sum())
    ended = flow.rows.next_state < 0
    ends = sum_by(flow.rows.pair[ended], flow.count[ended], len(count)) / count
    gamma = estimand.discount
    return float((1.0 - gamma) * x.sum() + gamma * (x @ ends)) / estimand.scale


def mwl() -> StateAction:
    """Minimax weight learning, closed form."""
    return StateAction("mwl", _least_squares, partial(pair_ratio_on_features, name="mwl", whiten_tests=False))


def dualdice() -> StateAction:
    """DualDICE, closed form."""
    ratios = partial(pair_ratio_on_features, name="dualdice", whiten_tests=True)
    return StateAction("dualdice", _visits_before_leaking, ratios)


def sadl(form: Literal["paper", "occupancy"] = "paper") -> StateAction:
    """State–action distribution learning, the paper's policy-agnostic rival.

    On features ``form="occupancy"`` tests with the target's own actions instead of a reference law; on counts both are
    the same.
    """
    if form not in ("paper", "occupancy"):
        raise UsageError(f"form must be 'paper' or 'occupancy', got {form!r}")
    plain = partial(pair_ratio_on_features, name="sadl", whiten_tests=True)
    ratios = partial(sadl_on_features, name="sadl") if form == "paper" else plain
    return StateAction("sadl", _least_squares_by_state, ratios)
