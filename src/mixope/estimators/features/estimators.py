"""The estimators on features, each as the order in which it asks: moments, ratio, scores.

    round 1   calibration of ρ (fine and coarse), moments of the value, of the state–action ratios; whole episodes
    round 2   moments of the state ratio (fine and coarse)
    round 3   scores

What each is called, and the same estimators where states are counted, is in :mod:`mixope.estimators.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.errors import DataError
from mixope.base.estimand import Estimand
from mixope.behaviours import Behaviour, DefaultMixture, FittedBehaviour, Logged, PerLogger
from mixope.behaviours.propensities import SUSPECT, misfit_of_laws, misfit_of_ratio
from mixope.estimators.asking import Asking, all_or_nothing
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.ratio import RatioReport, calibration_requests, log_target, solve_ratios
from mixope.estimators.features.scores import score
from mixope.estimators.features.value import (
    PairDesign,
    PairGram,
    SolvedValue,
    ValueDesign,
    ValueSums,
    value_design,
    value_system,
)
from mixope.estimators.solution import Measures, Solution, combine
from mixope.features import FittedMap
from mixope.features.actions import DiscreteActions
from mixope.logs import Schema
from mixope.policies import GaussianPolicy, Policy, uniform
from mixope.requests.by_episode import pieces_of_episodes, sum_by_episode
from mixope.requests.grouping import GroupSums
from mixope.requests.moments import MomentRequest, Moments
from mixope.requests.request import Batch, RowRequest
from mixope.requests.rows import Rows, required, row_columns
from mixope.requests.scores import ClusterScores
from mixope.requests.terms import ColumnSum, FeatureColumns, NumberSum, Product, Square, Term
from mixope.requests.trajectories import Trajectories, running_sums, trajectories_of
from mixope.solvers.linear import solve_ratio

NO_SCORE = "a plug-in value has no score of its own; 'dr' corrects it and has an interval"
PLUG_IN_BIAS = "a plug-in value is biased by whatever its features miss, and nothing in it measures that; see 'dr'"
LARGEST_DENSITY = 1e6
"""Densities of the target above this are capped, counted and shown."""


def state_ratio_on_features(
    problem: FeatureProblem,
    name: str,
    behaviour: Behaviour,
    logger_weights: Callable[[FeatureProblem], Mapping[str, float]],
    *,
    pooled: bool,
    doubly_robust: bool = False,
) -> Asking[Solution]:
    """A state-ratio estimator, pooled or on each logger's rows and averaged."""
    problem.refuse_horizon(name)
    weights = logger_weights(problem)
    present = [label for label in problem.labels if weights[label] > 0]
    if pooled or len(problem.labels) == 1:
        return (yield from _state_ratio(problem, behaviour, weights, doubly_robust))

    def alone(label: str) -> Callable[[], Asking[Solution]]:
        return lambda: _state_ratio(problem, behaviour, {label: 1.0}, doubly_robust)

    parts = yield from all_or_nothing([alone(label) for label in present])
    return combine(parts, [1.0 / len(parts)] * len(parts))


def _state_ratio(
    problem: FeatureProblem, behaviour: Behaviour, weights: Mapping[str, float], doubly_robust: bool
) -> Asking[Solution]:
    fitted = problem.known.fitted(behaviour.knowing(problem.loggers), weights)
    requests = calibration_requests(problem, fitted, weights)
    *calibrations, model = yield from with_value(problem, requests, needed=doubly_robust)
    ratios = yield from solve_ratios(problem, requests, tuple(calibrations))
    (fine, report), *coarse = ratios
    found = yield from score(
        problem,
        fine.fit,
        report,
        model,
        logged=not behaviour.fitted,
        doubly_robust=doubly_robust,
        coarse=(coarse[0][0].fit, coarse[0][1]) if coarse else None,
    )
    if not behaviour.fitted:
        found = replace(
            found,
            given="propensities" if isinstance(behaviour, Logged) else "policies",
            measures=replace(found.measures, recorded_misfit=_misfit_of(problem, fitted)),
        )
    return replace(found, notes=fitted.notes)


def _misfit_of(problem: FeatureProblem, given: FittedBehaviour) -> float:
    """Of what was given for the logged actions, on a few thousand rows: it does not grow with the others."""
    known, judges = problem.known, problem.known.judges
    laws = known.once(("misfit", given), lambda: misfit_of_laws(judges, given, known.seed))
    return max(laws, misfit_of_ratio(log_target(problem.target, judges) - given.log_prob(judges), judges.times))


def with_value(
    problem: FeatureProblem, requests: tuple[MomentRequest, ...], *, needed: bool = False
) -> Asking[tuple[Any, ...]]:
    """The first round: some requests, and the value model last (None for a target that gives densities only)."""
    if not (needed or problem.drawable):
        return (*(yield requests), None)
    design = value_design(problem)
    *found, moments, gram = yield (*requests, ValueSums(design), PairGram(design.pairs))
    return (*found, value_system(problem, design, moments, gram).solved)


def lstdq_on_features(problem: FeatureProblem) -> Asking[Solution]:
    """The plug-in value of LSTD-Q: no ratio, hence no score; the interval of ``dr`` is the one to use."""
    problem.check_ends()
    design = value_design(problem)
    moments, gram = yield ValueSums(design), PairGram(design.pairs)
    system, horizon = value_system(problem, design, moments, gram), problem.estimand.horizon
    value = system.value if horizon is None else system.horizon_value(horizon)
    return Solution(value=value, no_interval_because=NO_SCORE, known_bias=PLUG_IN_BIAS)


@dataclass(frozen=True)
class PairWeigher:
    """ζ = θ·x(s,a), or u π(a|s) with u = θ·x(s,a) where a target is given."""

    pairs: PairDesign
    theta: FloatArray
    target: Policy | None = None
    log_unit: float = 0.0
    """Of densities."""

    def weight(self, rows: Rows) -> FloatArray:
        """c = 1."""
        return rows.times

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """ζ of every row; there are no folds."""
        zeta = np.maximum(self.pairs.taken(rows) @ self.theta, 0.0) * rows.times
        return zeta if self.target is None else zeta * _density(self.target, rows, self.log_unit)[0]


def _density(target: Policy, rows: Rows, log_unit: float) -> tuple[FloatArray, BoolArray]:
    """π(a|s) of every row in this unit, capped, and which were."""
    with np.errstate(over="ignore"):
        density = np.exp(log_target(target, rows) - log_unit)
    return np.minimum(density, LARGEST_DENSITY), density > LARGEST_DENSITY


def pair_ratio_on_features(problem: FeatureProblem, name: str, *, whiten_tests: bool) -> Asking[Solution]:
    """mwl (tests scaled to mean square one) and dualdice (whitened tests), from the moments of LSTD-Q:

    Σ ζ (x(s,a) − γ x(s′,π)) = k E_μ₀ x(s,π),     k = 1 − γ, or 1 for the total of an episode.
    """
    problem.refuse_horizon(name)
    design = value_design(problem)
    theta, report, model = _pair_ratio(
        problem, design, whiten_tests, *(yield ValueSums(design), PairGram(design.pairs))
    )
    return (yield from score(problem, PairWeigher(design.pairs, theta), report, model))


def _pair_ratio(
    problem: FeatureProblem, design: ValueDesign, whiten_tests: bool, sums: Moments, gram: Moments
) -> tuple[FloatArray, RatioReport, SolvedValue]:
    """θ and the value; the moments are not held while scores are summed."""
    value = value_system(problem, design, sums, gram)
    n, average = float(sums["n"].sum()), problem.estimand.restarts
    system = sums["a"].sum(axis=0).T / n
    if average and sums["ended"].any():
        system = system - np.outer(value.start, sums["ended"].sum(axis=0) / n)
    right = None if average else problem.estimand.scale * value.start
    mean, square = sums["e"].sum(axis=0) / n, gram["gram"].sum(axis=0) / n
    theta, solved, condition = solve_ratio(system, right, mean, square, whiten_tests=whiten_tests)
    return theta, RatioReport(solved, condition), value.solved


@dataclass(frozen=True)
class ConstantMean:
    """A mean action that does not depend on the state."""

    value: FloatArray

    def __call__(self, observations: FloatArray) -> FloatArray:
        """The mean in every state."""
        return np.tile(self.value, (len(observations), 1))


def reference_law(problem: FeatureProblem) -> Policy:
    """m: uniform over discrete actions, else a Gaussian like the logged actions."""
    sample = problem.known.sample
    if isinstance(problem.actions, DiscreteActions):
        return uniform(problem.actions.actions)
    spread = sample.action.std(axis=0)
    return GaussianPolicy(ConstantMean(sample.action.mean(axis=0)), np.where(spread > 0, spread, 1.0))


def _log_peak(reference: Policy) -> float:
    """The logarithm of the largest density of m; probabilities have no unit."""
    if not isinstance(reference, GaussianPolicy):
        return 0.0
    scale = reference.scale(np.zeros((1, 1)))
    return -float(np.log(scale).sum()) - 0.5 * scale.size * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class ReferenceSums(MomentRequest):
    """The paper's SADL: ζ = u π, u = θ·x, and a reference action law m for the tests,

    Σ u [m(a) x(s,a) − γ π(a|s) x(s′,m)] = k E_μ₀ x(s,m).
    """

    design: ValueDesign
    reference: Policy
    log_unit: float = 0.0
    """Of densities, π and m alike: a density has the unit of actions, and nothing else here has any."""

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ of the states."""
        return (self.design.states,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same, in terms."""
        design, n, states = self.design, rows.times[:, None], self.design.states
        x, pairs = design.taken_factor(rows), design.pairs.columns(rows)
        ahead = design.actions.under(self.reference, rows.next_observation)
        density, capped = _density(design.target, rows, self.log_unit)
        probability, over = density[:, None], rows.terminated[:, None]
        reference = self._reference(rows)[:, None]
        going = FeatureColumns(states, -design.gamma * probability * n * ~over * ahead, following=True)
        begun = np.zeros_like(x)
        if rows.start.any():
            first = design.starts(rows)
            begun[rows.start] = first.times[:, None] * design.actions.under(self.reference, first.observation)
        totals = {"e": probability * n * x, "ended": probability * over * n * x, "start": begun}
        return (
            Product("a", (FeatureColumns(states, reference * n * x), going), (pairs,), by_fold=False),
            Square("gram", pairs, rows.times, design.actions.centre, by_fold=False),
            *(ColumnSum(name, (FeatureColumns(states, factor),), by_fold=False) for name, factor in totals.items()),
            NumberSum("starts", rows.start * rows.times, by_fold=False),
            NumberSum("n", rows.times, by_fold=False),
            NumberSum("capped", capped, by_fold=False),
        )

    def _reference(self, rows: Rows) -> FloatArray:
        return np.asarray(np.exp(self.reference.log_prob(rows.observation, rows.action) - self.log_unit))


def sadl_on_features(problem: FeatureProblem, name: str) -> Asking[Solution]:
    """SADL as the paper writes it."""
    problem.refuse_horizon(name)
    design = value_design(problem)
    reference = reference_law(problem)
    request = ReferenceSums(design, reference, _log_peak(reference))
    moments, model = yield from with_value(problem, (request,), needed=True)
    sums = {key: array.sum(axis=0) for key, array in moments.arrays.items()}
    n, start = float(sums["n"]), sums["start"] / max(float(sums["starts"]), 1.0)
    average = problem.estimand.restarts
    system = sums["a"] - np.outer(start, sums["ended"]) if average else sums["a"]
    right = None if average else problem.estimand.scale * start
    theta, solved, condition = solve_ratio(system / n, right, sums["e"] / n, sums["gram"] / n)
    report = RatioReport(solved, condition, capped=int(sums["capped"]))
    del moments, sums, system
    return (
        yield from score(problem, PairWeigher(design.pairs, theta, problem.target, request.log_unit), report, model)
    )


@dataclass(frozen=True)
class LogRatios:
    """log π − log b of every row, cumulated along whole episodes.

    ``laws`` are the log-probabilities behind b, one for the row's own logger, or one per logger with its share of the
    episodes for the balance heuristic: log Σ_k β_k Π π_k.
    """

    target: Policy
    laws: tuple[Policy | FittedBehaviour, ...]
    shares: tuple[float, ...] = ()

    whole_episodes = True
    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Everything that a row holds, and its step."""
        return (*row_columns(schema), "step")

    def of(self, batch: Batch) -> Trajectories:
        """The episodes of a batch."""
        rows = batch.rows
        found = trajectories_of(batch.table, self._log_ratio(rows) if len(rows) else np.zeros(0))
        return found if rows.count is None else found.take(np.repeat(np.arange(found.n_episodes), _times(found, rows)))

    def _log_ratio(self, rows: Rows) -> FloatArray:
        target = log_target(self.target, rows)
        each = [self._law(law, rows) for law in self.laws]
        if not self.shares:
            return target - each[0]
        episode = required(rows.episode)
        cumulated = np.stack([running_sums(law, episode) for law in each])
        mixed = logsumexp(cumulated + np.log(np.asarray(self.shares))[:, None], axis=0)
        first = np.append(True, episode[1:] != episode[:-1])
        step = mixed - np.where(first, 0.0, np.append(0.0, mixed[:-1]))
        return np.asarray(target - step)

    @staticmethod
    def _law(law: Policy | FittedBehaviour, rows: Rows) -> FloatArray:
        if isinstance(law, FittedBehaviour):
            return rows.once("log behaviour", law, lambda: law.log_prob(rows))
        return rows.once("log policy", law, lambda: law.log_prob(rows.observation, rows.action))


def _times(found: Trajectories, rows: Rows) -> IntArray:
    """How often every episode happened."""
    return rows.times[found.first].astype(np.int64)


def trajectory_on_features(
    problem: FeatureProblem, weigh: Callable[[Estimand, Trajectories], Solution], *, balance: bool
) -> Asking[Solution]:
    """Importance sampling by episodes.

    b are recorded propensities where all rows have them, else the loggers' known policies, else a density fitted to
    each logger.
    """
    known, labels = problem.known, problem.labels
    everyone = dict.fromkeys(labels, 1.0)
    if balance:
        laws = tuple(_law_of(problem, label) for label in labels)
        begun = np.array([known.logger_starts[label] for label in labels], dtype=np.float64)
        shares = begun / begun.sum() if begun.all() else np.full(len(begun), 1.0 / len(begun))
        request = LogRatios(problem.target, laws, tuple(shares.tolist()))
    else:
        if known.has_propensities or set(labels) <= set(problem.loggers):
            return (yield from _by_what_was_given(problem, weigh))
        request = LogRatios(problem.target, (known.fitted(PerLogger(DefaultMixture()), everyone),))
    (data,) = yield (request,)
    return weigh(problem.estimand, data.in_key_order())


def _by_what_was_given(
    problem: FeatureProblem, weigh: Callable[[Estimand, Trajectories], Solution]
) -> Asking[Solution]:
    """Divided by recorded propensities or known policies; where these look wrong, by fitted densities besides."""
    known, everyone = problem.known, dict.fromkeys(problem.labels, 1.0)
    given = known.fitted(Logged(problem.loggers), everyone)
    request = LogRatios(problem.target, (given,))
    misfit = _misfit_of(problem, given)
    densities = _densities(problem) if misfit > SUSPECT else None
    if densities is None:
        (data,), otherwise = (yield (request,)), None
    else:
        data, other = yield (request, LogRatios(problem.target, (densities,)))
        beside = weigh(problem.estimand, other.in_key_order()).value
        otherwise = lambda: beside  # noqa: E731
    found = weigh(problem.estimand, data.in_key_order())
    return replace(
        found,
        given="propensities" if known.has_propensities else "policies",
        otherwise=otherwise,
        measures=replace(found.measures, recorded_misfit=misfit),
    )


def _densities(problem: FeatureProblem) -> FittedBehaviour | None:
    """Fitted to each logger; None for rows that have none, such as numbers done in states that are ids."""
    try:
        return problem.known.fitted(PerLogger(DefaultMixture()), dict.fromkeys(problem.labels, 1.0))
    except DataError:
        return None


def _law_of(problem: FeatureProblem, label: str) -> Policy | FittedBehaviour:
    """π_k: known, or fitted on that logger's rows."""
    if label in problem.loggers:
        return problem.loggers[label]
    return problem.known.fitted(DefaultMixture(), {label: 1.0})


@dataclass(frozen=True)
class RewardSums(RowRequest):
    """Rows and rewards by episode, or by pieces of it."""

    piece_steps: int | None = None

    sees_unfollowed = True

    def of(self, batch: Batch) -> GroupSums:
        """Of some rows."""
        n = batch.rows.times
        return sum_by_episode(batch.table, {"n": n, "r": n * batch.rows.reward}, "rewards", self.piece_steps)


def logged_mean_on_features(problem: FeatureProblem) -> Asking[Solution]:
    """Every row counts one."""
    (sums,) = yield (RewardSums(problem.piece_steps),)
    n, r = sums.column("n"), sums.column("r")
    value = float(r.sum() / n.sum())
    lengths = pieces_of_episodes(sums) if problem.piece_steps else None
    return Solution(
        value=value,
        scores=ClusterScores.of_pieces((r - value * n) / n.sum(), lengths),
        measures=Measures(effective_sample_size=float(n.sum())),
        is_reference=True,
    )
