"""``fqe``: a discounted value learned by networks, corrected by a ratio on what they learned.

    learn      q by fitted Q evaluation on the sample (:mod:`mixope.solvers.fitted_q`): one network without each fold
    moments    x(s,a) = (1, h, inputs), h the last hidden layer; of all rows, for every network
    ratio      Σ ζ (x(s,a) − γ x(s′,π)) = k E_μ₀ x(s,π),  ζ = θ·x ≥ 0,  with a ridge, from the folds that it has seen
    scores     η = k E V(s₀) + Σ ζ (r + γ V(s′) − q) / Σ …, each row by the network and the θ that have not seen it

q is clipped to the range that values can have. How far the networks' own values lie apart widens the interval: it is
what chance in training and the choice of episodes leave open.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.feature_ratio import RatioReport
from mixope.estimators.feature_scores import score
from mixope.estimators.feature_value import PairGram, ValueSums
from mixope.estimators.solution import Solution
from mixope.features.actions import DiscreteActions
from mixope.features.encoding import StateEncoding
from mixope.features.pairs import ExecutedActions, PairInputs
from mixope.policies import Policy
from mixope.processes import progress_bar
from mixope.solvers.fitted_q import FittedQSettings, FittedRows, fit_networks, unseen
from mixope.solvers.linear import solve_ratio
from mixope.solvers.networks import Networks
from mixope.statistics.moments import Moments
from mixope.statistics.rows import Rows

RATIO_RIDGE = 1e-2


@dataclass(frozen=True)
class LearnedValue:
    """The estimator; ``settings`` say how to train."""

    settings: FittedQSettings = field(default_factory=FittedQSettings)
    name: str = "fqe"

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """Learn on the sample, then weigh and score all rows."""
        problem.check_ends()
        if problem.estimand.restarts or problem.gamma >= 1.0 or problem.estimand.kind == "horizon":
            raise UsageError(
                "'fqe' learns discounted values: without a discount nothing holds a value that is fitted to itself."
                " Ask for a discounted value, or use 'dr' or 'lstdq'"
            )
        if not problem.drawable:
            raise UsageError(
                "'fqe' needs a target that can be drawn from (a sample method), and this one gives densities only;"
                " use a GaussianPolicy, or an estimator without a value model such as 'emp'"
            )
        designs = learned_designs(problem, self.settings)
        requests = tuple(request for design in designs for request in (ValueSums(design), PairGram(design)))
        answers = yield requests
        sums = zip(answers[::2], answers[1::2], strict=True)
        parts = [_part(problem, design, k, *both) for (k, design), both in zip(enumerate(designs), sums, strict=True)]
        weigher, model = CrossedPairs(tuple(p.weigher for p in parts)), LearnedModel(problem, tuple(parts))
        worst = max((p.report for p in parts), key=lambda report: report.solved.residual)
        crossed = replace(problem, cross_fit=True)
        found = yield from score(crossed, weigher, worst, model, doubly_robust=True)
        told = replace(found.measures, approximation=model.spread, seed_median=model.value, seed_spread=model.spread)
        return replace(found, measures=told)


@dataclass(frozen=True)
class NetworkDesign:
    """x(s,a) = (1, h, inputs) of one network, and its mean under the target: what moments are made of."""

    inputs: PairInputs
    network: Networks
    target: Policy
    gamma: float

    @property
    def size(self) -> int:
        """Columns of x."""
        return 1 + self.network.width + self.inputs.size

    def taken(self, rows: Rows) -> FloatArray:
        """x(s,a)."""
        return rows.once("learned, taken", self, lambda: self._features(taken_pairs(self.inputs, rows)))

    def chosen(self, rows: Rows) -> FloatArray:
        """x(s,π)."""
        return rows.once("learned, chosen", self, lambda: self._mean(rows, following=False))

    def ahead(self, rows: Rows) -> FloatArray:
        """x(s′,π)."""
        return rows.once("learned, ahead", self, lambda: self._mean(rows, following=True))

    def starts(self, rows: Rows) -> Rows:
        """The rows that begin an episode."""
        return rows.once("starts", rows.start, lambda: rows.take(rows.start))

    def _features(self, pairs: FloatArray) -> FloatArray:
        one = np.ones((len(pairs), 1), dtype=pairs.dtype)
        return np.concatenate([one, self.network.hidden(pairs)[0], pairs], axis=1)

    def _mean(self, rows: Rows, *, following: bool) -> FloatArray:
        pairs, shares = pairs_under(self.inputs, self.target, rows, following=following)
        total = np.zeros((len(rows), self.size), dtype=pairs.dtype)
        for k in range(pairs.shape[1]):
            total += self._features(pairs[:, k]) * shares[:, k, None]
        return total

    @property
    def coefficients(self) -> FloatArray:
        """The network's own q as a combination of x."""
        *_, last, level = self.network.parameters
        rest = np.zeros(self.inputs.size, dtype=last.dtype)
        return np.concatenate([level[0, 0], last[0, :, 0], rest]).astype(np.float64)


def taken_pairs(inputs: PairInputs, rows: Rows) -> FloatArray:
    """The encoded pairs of the rows, once for all networks."""
    return rows.once("pairs taken", inputs, lambda: inputs.of(rows.observation, rows.action))


def pairs_under(inputs: PairInputs, target: Policy, rows: Rows, *, following: bool) -> tuple[FloatArray, FloatArray]:
    """The pairs that the target makes of s or s′, once for all networks."""
    at = rows.next_observation if following else rows.observation
    return rows.once(("pairs under", following, id(target)), inputs, lambda: inputs.under(target, at))


@dataclass(frozen=True)
class NetworkFit:
    """q as a network learned it in units of (1 − γ) Σ γᵗ r, clipped to the range of values."""

    design: NetworkDesign
    low: float
    high: float

    def terms(self, rows: Rows, logged: bool) -> tuple[FloatArray, FloatArray]:
        """γV(s′) − q(s,a) of every row and V(s) where an episode starts, each twice."""
        design, unit = self.design, 1.0 - self.design.gamma
        later = np.where(rows.terminated, 0.0, self._valued(design.ahead(rows))) * design.gamma
        own = self._valued(design.chosen(rows) if logged else design.taken(rows))
        first = np.zeros(len(rows))
        if rows.start.any():
            first[rows.start] = self._valued(design.chosen(design.starts(rows)))
        return _twice((later - own) / unit), _twice(first / unit)

    def _valued(self, x: FloatArray) -> FloatArray:
        return np.clip(x @ self.design.coefficients, self.low, self.high)


def _twice(column: FloatArray) -> FloatArray:
    return np.stack([column, column], axis=1)


@dataclass(frozen=True)
class CrossedValue:
    """Each row by the value that has not seen its fold."""

    fits: tuple[NetworkFit, ...]

    def terms(self, rows: Rows, fold: int, logged: bool) -> tuple[FloatArray, FloatArray]:
        """As a value's; there is no column of all rows."""
        return self.fits[fold % len(self.fits)].terms(rows, logged)


@dataclass(frozen=True)
class LearnedPairs:
    """ζ = max(θ·x(s,a), 0)."""

    design: NetworkDesign
    theta: FloatArray

    def weights(self, rows: Rows) -> FloatArray:
        """Of every row, times how often it happened."""
        return np.asarray(np.maximum(self.design.taken(rows) @ self.theta, 0.0) * rows.times)


@dataclass(frozen=True)
class CrossedPairs:
    """Each row weighed by the ratio that has not seen its fold."""

    parts: tuple[LearnedPairs, ...]

    def weight(self, rows: Rows) -> FloatArray:
        """c = 1."""
        return rows.times

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """ζ of every row; without a fold, the mean over all of them."""
        if fold is not None:
            return self.parts[fold % len(self.parts)].weights(rows)
        return np.asarray(np.mean([part.weights(rows) for part in self.parts], axis=0))


@dataclass(frozen=True)
class LearnedPart:
    """What one network leads to, without its fold: ratio, value, and its plug-in value."""

    weigher: LearnedPairs
    report: RatioReport
    fit: NetworkFit
    plug_in: float


@dataclass(frozen=True)
class LearnedModel:
    """The networks together, as the score pass reads a value model."""

    problem: FeatureProblem
    parts: tuple[LearnedPart, ...]
    ridge: float = RATIO_RIDGE

    @property
    def fit(self) -> CrossedValue:
        """Cross-fitted."""
        return CrossedValue(tuple(part.fit for part in self.parts))

    @property
    def value(self) -> float:
        """The mean of the plug-in values."""
        return float(np.mean([part.plug_in for part in self.parts]))

    @property
    def spread(self) -> float:
        """Their standard deviation."""
        return float(np.std([part.plug_in for part in self.parts], ddof=1)) if len(self.parts) > 1 else 0.0


def _part(problem: FeatureProblem, design: NetworkDesign, k: int, sums: Moments, gram: Moments) -> LearnedPart:
    """Ratio and value of network k, from the folds that it has seen."""
    n, scale = sums["n"], problem.estimand.scale
    use = (np.arange(len(n)) % problem.folds != k).astype(np.float64)
    if float(use @ n) <= 0:
        use = np.ones(len(n))
    rows = float(use @ n)
    start = sums["start"].sum(axis=0) / max(float(sums["starts"].sum()), 1.0)
    matrix = np.tensordot(use, sums["a"], axes=1).T / rows
    mean, square = use @ sums["e"] / rows, np.tensordot(use, gram["gram"], axes=1) / rows
    theta, solved, condition = solve_ratio(matrix, scale * start, mean, square, RATIO_RIDGE)
    low, high = value_range(problem)
    worth = float(np.clip(start @ design.coefficients, low, high)) / (1.0 - design.gamma)
    return LearnedPart(
        LearnedPairs(design, theta), RatioReport(solved, condition), NetworkFit(design, low, high), scale * worth
    )


def value_range(problem: FeatureProblem) -> tuple[float, float]:
    """Between which (1 − γ) Σ γᵗ r lies: the rewards, and 0 where episodes end."""
    reward = problem.known.sample.reward
    low, high = float(reward.min()), float(reward.max())
    return (min(low, 0.0), max(high, 0.0)) if problem.known.any_end else (low, high)


def pair_inputs(problem: FeatureProblem) -> PairInputs:
    """The encoding of states and actions, from the sample."""
    sample = problem.known.sample
    states = StateEncoding.fit(sample.observation, sample.roles)
    if sample.action.ndim == 1:
        logged = problem.known.logged_actions
        return PairInputs(states, DiscreteActions(np.unique(sample.action) if logged is None else logged))
    low, high = getattr(problem.target, "low", None), getattr(problem.target, "high", None)
    executed = sample.action if low is None else np.clip(sample.action, low, high)
    n = sample.times
    mean = n @ executed / n.sum()
    spread = np.sqrt(n @ (executed - mean) ** 2 / n.sum())
    return PairInputs(states, ExecutedActions(mean, np.where(spread > 1e-12, spread, 1.0), low, high, problem.seed))


def learned_designs(problem: FeatureProblem, settings: FittedQSettings) -> tuple[NetworkDesign, ...]:
    """One network per fold, trained without it on the sample; once for all estimators and questions that share it."""

    def learn() -> tuple[NetworkDesign, ...]:
        inputs = pair_inputs(problem)
        rows, seen = fitted_rows(problem, inputs), _seen(problem)
        with progress_bar("learning the value", transient=True) as report:
            networks = fit_networks(rows, seen, settings, problem.seed, report)
        return tuple(
            NetworkDesign(inputs, networks.one(k), problem.target, problem.gamma) for k in range(len(networks))
        )

    return problem.known.once(("fqe", problem.target, problem.gamma, problem.folds, settings), learn)


def fitted_rows(problem: FeatureProblem, inputs: PairInputs) -> FittedRows:
    """The sample as the learner sees it, in units of (1 − γ) Σ γᵗ r."""
    sample, gamma = problem.known.sample, problem.gamma
    ahead, shares = pairs_under(inputs, problem.target, sample, following=True)
    low, high = value_range(problem)
    going = np.where(sample.terminated, 0.0, gamma)
    return FittedRows(taken_pairs(inputs, sample), ahead, shares, (1.0 - gamma) * sample.reward, going, low, high)


def _seen(problem: FeatureProblem) -> FloatArray:
    """How often each network sees each row of the sample; all rows where a fold holds everything."""
    sample = problem.known.sample
    weights = unseen(problem.fold_of(sample), problem.folds) * sample.times
    empty = weights.sum(axis=1) <= 0
    weights[empty] = sample.times
    return np.asarray(weights)
