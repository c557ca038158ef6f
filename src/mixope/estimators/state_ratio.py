"""The state-ratio family: EMP and its six relatives, one mechanism with three switches.

    behaviour   what stands in the denominator of ρ: the counted or fitted mixture, logged propensities …
    pooling     solve on all rows at once, or on each logger's rows and average
    weights     rows as they are, or re-weighted by logger (KL)

General form: ω = d/d₀ solves Σ c ω(s)[f(s) − γ ρ f(s′)] = (1−γ) E_μ₀ f · Σ c for every f; in the tabular case d = d P
on the flow, and the value is Σ c ω ρ r / Σ c ω ρ. The paper's own form is in :mod:`mixope.estimators.paper_form`.

Scores (their sums by episode give the interval), with t the tail of :mod:`mixope.estimators.counts.occupancy`:
for a fitted behaviour the efficient influence function ωρ(r + t − q(s,a)), q the mean of r + t over the rows of (s, a);
for logged propensities ωρ(r + t − v(s)), v the ρ-weighted mean of r + t over the rows of s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.errors import Advice, Setting, UsageError
from mixope.behaviours import (
    Behaviour,
    CountedMixture,
    DefaultMixture,
    KnownMixture,
    Logged,
    as_behaviour,
    kl_weights,
    nearest_logger_weights,
    sample_weights,
)
from mixope.estimators.asking import Asking
from mixope.estimators.both_kinds import BothKinds
from mixope.estimators.counts.flow import Flow, follow
from mixope.estimators.counts.frontier import at_the_frontier
from mixope.estimators.counts.occupancy import Occupancy, occupy, pooled
from mixope.estimators.counts.outside import outside_mass
from mixope.estimators.counts.solution import CountedSolution, combine_counted, scored
from mixope.estimators.features.estimators import state_ratio_on_features
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.paper_form import solve_paper_form
from mixope.estimators.solution import Given, Measures, Solution, Weights
from mixope.requests.problem import Problem
from mixope.requests.transitions import BASIS, empty_scores, noise_by_action

Form = Literal["general", "paper"]


@dataclass(frozen=True)
class StateRatio(BothKinds):
    """A state-ratio estimator; see the module for the switches.

    ``behaviour`` is one of :mod:`mixope.behaviours`, or its name. ``nearest`` re-weights loggers by their nearness to
    the target.
    """

    name: str
    behaviour: Behaviour | str = field(default_factory=DefaultMixture)
    pooled: bool = True
    nearest: bool = False
    form: Form = "general"
    calibrate: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "behaviour", as_behaviour(self.behaviour))
        if self.form not in ("general", "paper"):
            raise UsageError(f"form must be 'general' or 'paper', got {self.form!r}")
        if self.form == "general" and self.calibrate is False:
            raise UsageError(
                "the general form needs calibrated ratios: without them the flow is not stochastic and its solution can"
                " sit on one self-loop. Use calibrate=None, or form='paper'"
            )

    @property
    def ignores_loggers(self) -> bool:
        """Whether counts of (s, a, s′) are all it looks at: all rows are pooled as they are, under their own counts."""
        return self.pooled and not self.nearest and self.form == "general" and _is_counted(as_behaviour(self.behaviour))

    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """The exact chain of all rows, or of each logger's, averaged."""
        return scored(problem, self._solve(problem))

    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """A ratio that is linear in features, of all rows, or of each logger's, averaged."""
        if self.form == "paper":
            refusal = "the paper's form is solved on counts; on features use "
            raise UsageError(Advice(refusal, Setting("form", "general"), ", or 'kernel'"))
        weights = nearest_on_features if self.nearest else equal_weights
        return state_ratio_on_features(problem, self.name, as_behaviour(self.behaviour), weights, pooled=self.pooled)

    def _solve(self, problem: Problem) -> CountedSolution:
        behaviour, rows = as_behaviour(self.behaviour), problem.transitions
        weight = (kl_weights if self.nearest else sample_weights)(problem)
        if self.pooled:
            return self._solve_part(problem, behaviour, weight[rows.logger])
        present = [j for j in range(len(rows.loggers)) if weight[j] > 0]
        parts = [self._solve_part(problem, behaviour, np.where(rows.logger == j, 1.0, 0.0)) for j in present]
        return combine_counted(parts, [1.0 / len(present)] * len(present))

    def _solve_part(self, problem: Problem, behaviour: Behaviour, weight: FloatArray) -> CountedSolution:
        if self.form == "paper":
            return solve_paper_form(problem, behaviour, weight, calibrate=bool(self.calibrate))
        return solve_on_counts(problem, behaviour, weight)


def solve_on_counts(problem: Problem, behaviour: Behaviour, weight: FloatArray | None = None) -> CountedSolution:
    """The general form on counts: the exact chain of the flow; ``weight`` is c for every group, 1 unless given."""
    if _is_counted(behaviour) and (weight is None or bool(np.all(weight == 1.0))):
        return state_ratio_solution(*pooled(problem))
    flow = follow(problem, behaviour, np.ones(problem.transitions.n_groups) if weight is None else weight)
    found = state_ratio_solution(flow, occupy(flow))
    return found.saying(given=given_by(behaviour), otherwise=lambda: solve_counted(problem, weight).value)


def solve_counted(problem: Problem, weight: FloatArray | None = None) -> CountedSolution:
    """The same with the actions as they are counted in the rows of positive weight."""
    return solve_on_counts(problem, CountedMixture(), weight)


def given_by(behaviour: Behaviour) -> Given | None:
    """What a behaviour that is not estimated is read from."""
    return None if behaviour.fitted else "propensities" if isinstance(behaviour, Logged) else "policies"


def _is_counted(behaviour: Behaviour) -> bool:
    """Whether it is, on counts, how often the pooled rows have each action."""
    return isinstance(behaviour, DefaultMixture) or behaviour == CountedMixture()


def equal_weights(problem: FeatureProblem) -> dict[str, float]:
    """c = 1 for every logger."""
    return dict.fromkeys(problem.labels, 1.0)


def nearest_on_features(problem: FeatureProblem) -> dict[str, float]:
    """c = w^KL / w by label, on the sample."""
    known = problem.known
    shares = {label: rows / known.n_rows for label, rows in known.logger_rows.items()}
    return nearest_logger_weights(known.sample, problem.target, problem.loggers, shares, problem.seed)


def state_ratio_solution(flow: Flow, occupancy: Occupancy) -> CountedSolution:
    """Value, weights and scores from a flow and its occupancy."""
    omega = state_ratio(flow, occupancy)
    baseline = pair_baseline(flow, occupancy.tail) if flow.fitted else state_baseline(flow, occupancy.tail)
    own = left_out(sum_by(flow.rows.pair, flow.rows.rows))[flow.rows.pair] if flow.fitted else None
    once = lone_error(flow, omega, occupancy.tail) if flow.fitted else 0.0
    total, edge = float(occupancy.law.sum()), at_the_frontier(flow, occupancy)
    length = total if flow.problem.estimand.kind == "episode" else None
    solution = Solution(
        value=occupancy.value,
        outside_mass=outside_mass(flow, occupancy.law),
        solved=occupancy.solved,
        measures=Measures(
            behaviour_misfit=flow.misfit,
            episode_length=length,
            approximation=once or None,
            frontier_mass=edge.mass,
            frontier_span=edge.span,
        ),
        notes=flow.notes,
    )
    scores = score_table(flow, omega, occupancy.tail - baseline, occupancy.start_score, own)
    return CountedSolution(solution, scores, row_weights(flow, omega), visits=occupancy.law)


def state_ratio(flow: Flow, occupancy: Occupancy) -> FloatArray:
    """ω(s) = d(s)/d₀(s), d₀ the share of (re-weighted) kept rows."""
    count = flow.state_count
    return np.asarray(np.divide(occupancy.law * count.sum(), count, out=np.zeros_like(count), where=count > 0))


def row_weights(flow: Flow, omega: FloatArray) -> Weights:
    """Σ c ω ρ and its squares over the groups of the whole problem."""
    at = omega[flow.rows.state]
    n = flow.whole.transitions.n_groups
    total, squared = np.zeros(n), np.zeros(n)
    total[flow.groups], squared[flow.groups] = at * flow.ratio, at**2 * flow.ratio_squared
    single = squared[flow.groups] if flow.by_row else squared[flow.groups] / flow.rows.rows
    return Weights(total, squared, float(np.sqrt(single.max(initial=0.0))))


def pair_baseline(flow: Flow, tail: FloatArray) -> FloatArray:
    """q(s,a): the mean of r + t over the rows of the pair, for every group."""
    rows, c = flow.rows, flow.weight
    worth = sum_by(rows.pair, c * (rows.reward + rows.rows * tail))
    count = sum_by(rows.pair, flow.count)
    return np.asarray((worth / count)[rows.pair])


def state_baseline(flow: Flow, tail: FloatArray) -> FloatArray:
    """v(s): the ρ-weighted mean of r + t over the rows of the state, for every group."""
    rows = flow.rows
    worth = sum_by(rows.state, flow.ratio_reward + flow.ratio * tail, rows.n_states)
    mass = sum_by(rows.state, flow.ratio, rows.n_states)
    return np.divide(worth, mass, out=np.zeros_like(worth), where=mass > 0)[rows.state]


def left_out(count: FloatArray) -> FloatArray:
    """n/(n−1): what is about the mean of n rows becomes about the mean of the others, as in a jackknife; 0 for n = 1.

    The mean has seen the row, so that intervals are too narrow without it where pairs are logged a few times each:
    Taxi, four loggers, 200 episodes, by a tenth.
    """
    return np.divide(count, count - 1.0, out=np.zeros_like(count), where=count >= 2.0)


def lone_error(flow: Flow, omega: FloatArray, tail: FloatArray) -> float:
    """The standard deviation of what no score tells: of pairs that were logged once, by the noise of their action."""
    rows = flow.rows
    lone = (sum_by(rows.pair, rows.rows) < 2.0)[rows.pair]
    if not lone.any():
        return 0.0
    noise = noise_by_action(rows, rows.reward / rows.rows + tail)
    weight = (omega[rows.state] * flow.ratio)[lone] / flow.count.sum()
    return float(np.sqrt(np.sum(weight**2 * noise[rows.action[lone]])))


def score_table(
    flow: Flow, omega: FloatArray, rest: FloatArray, start_score: FloatArray, own: FloatArray | None = None
) -> FloatArray:
    """Coefficients of the row basis: ωρ(r + rest)/Σc on rows, times ``own``; the start part on first rows."""
    whole = flow.whole.transitions
    scores = empty_scores(whole.n_groups)
    rows = flow.rows
    scale = omega[rows.state] / flow.count.sum()
    if flow.by_row:
        unit = scale * flow.weight * flow.factor[rows.state] * flow.problem.pair_target[rows.pair]
        first, second = BASIS.index("inverse"), BASIS.index("inverse_reward")
    else:
        unit = scale * flow.ratio / rows.rows
        first, second = BASIS.index("rows"), BASIS.index("reward")
    times = 1.0 if own is None else own
    scores[flow.groups, first] = unit * rest * times
    scores[flow.groups, second] = unit * times
    n_starts = float(whole.starts.sum())
    if n_starts and flow.whole.start_law is None:
        scores[:, BASIS.index("starts")] = start_score[whole.state] / n_starts
    return scores


def emp(**options: object) -> StateRatio:
    """EMP: the counted mixture, pooled."""
    return StateRatio("emp", **options)  # type: ignore[arg-type]


def emp_single(**options: object) -> StateRatio:
    """EMP on each logger's rows, averaged."""
    return StateRatio("emp-single", pooled=False, **options)  # type: ignore[arg-type]


def kl_emp(**options: object) -> StateRatio:
    """EMP with loggers re-weighted by nearness to the target."""
    return StateRatio("kl-emp", nearest=True, **options)  # type: ignore[arg-type]


def bch(**options: object) -> StateRatio:
    """Liu et al. (2018): logged propensities, each logger alone, averaged."""
    return StateRatio("bch", **{"behaviour": Logged(), "pooled": False, **options})  # type: ignore[arg-type]


def bch_pooled(**options: object) -> StateRatio:
    """Logged propensities, all rows at once."""
    return StateRatio("bch-pooled", **{"behaviour": Logged(), **options})  # type: ignore[arg-type]


def bch_kl_pooled(**options: object) -> StateRatio:
    """Logged propensities, pooled, loggers re-weighted by nearness to the target."""
    return StateRatio("bch-kl-pooled", **{"behaviour": Logged(), "nearest": True, **options})  # type: ignore[arg-type]


def known_mixture(**options: object) -> StateRatio:
    """The mixture of the loggers' known policies, pooled."""
    return StateRatio("known-mixture", **{"behaviour": KnownMixture(), **options})  # type: ignore[arg-type]
