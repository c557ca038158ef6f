"""``fqe``: a discounted value learned by networks, for states of many columns, where distances say little.

    learn      q by fitted Q evaluation on the sample (:mod:`mixope.solvers.fitted_q`), one network without each fold
    value      k E_μ₀ V(s₀), V(s) = Σ_a π(a|s) q(s,a) clipped to the range of values; the mean over the networks

It is a plug-in value: it has no score, hence no interval, and nothing in it measures what the networks missed. Their
standard deviation is reported (``seed_spread``): what chance in training and the choice of episodes leave open. A ratio
on the last layer would correct it and give an interval; so far its weights, found from the same few episodes, have
added more error than they took away.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.feature_estimators import NO_SCORE, PLUG_IN_BIAS
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.solution import Measures, Solution
from mixope.features.encoding import StateEncoding
from mixope.features.pairs import PairInputs
from mixope.policies import Policy
from mixope.processes import reporting
from mixope.solvers.fitted_q import FittedQSettings, FittedRows, fit_networks, unseen
from mixope.solvers.networks import Networks
from mixope.statistics.moments import MomentRequest, Moments
from mixope.statistics.rows import Rows


@dataclass(frozen=True)
class LearnedValue:
    """The estimator; ``settings`` say how to train."""

    settings: FittedQSettings = field(default_factory=FittedQSettings)
    name: str = "fqe"

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """Learn on the sample, then value the starts of all episodes."""
        _check(problem)
        (sums,) = yield (StartValues(learned(problem, self.settings)),)
        scale = problem.estimand.scale / (1.0 - problem.gamma)
        values = scale * sums["value"].sum(axis=0) / max(float(sums["starts"].sum()), 1.0)
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return Solution(
            value=float(values.mean()),
            measures=Measures(seed_median=float(np.median(values)), seed_spread=spread),
            no_interval_because=NO_SCORE,
            known_bias=PLUG_IN_BIAS,
        )


def _check(problem: FeatureProblem) -> None:
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


@dataclass(frozen=True)
class LearnedNetworks:
    """Networks for (1 − γ) Σ γᵗ r of pairs, the target whose value it is, and the range that values can have."""

    inputs: PairInputs
    networks: Networks
    target: Policy
    low: float
    high: float

    def values(self, observations: FloatArray) -> FloatArray:
        """V of states by every network, (networks, n)."""
        pairs, shares = self.inputs.under(self.target, observations)
        each = [self.networks.values(pairs[:, k].astype(np.float64)) * shares[:, k] for k in range(pairs.shape[1])]
        return np.clip(np.sum(each, axis=0, dtype=np.float64), self.low, self.high)


@dataclass(frozen=True)
class StartValues(MomentRequest):
    """Σ V(s₀) over the starts of episodes, by every network, and how many there are."""

    learned: LearnedNetworks

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """One slice."""
        first = rows.take(rows.start)
        values = self.learned.values(first.observation) @ first.times if len(first) else 0.0
        total.add("value", fold, np.broadcast_to(values, (len(self.learned.networks),)))
        total.add("starts", fold, first.times.sum())


def learned(problem: FeatureProblem, settings: FittedQSettings) -> LearnedNetworks:
    """One network per fold, trained without it on the sample; once for all who ask for the same."""

    def learn() -> LearnedNetworks:
        sample, (low, high) = problem.known.sample, value_range(problem)
        inputs = PairInputs(StateEncoding.fit(sample.observation, sample.roles), problem.actions)
        rows = fitted_rows(problem, inputs)
        with reporting(None, "learning the value") as report:
            networks = fit_networks(rows, _seen(problem), settings, problem.seed, report)
        return LearnedNetworks(inputs, networks, problem.target, low, high)

    return problem.known.once(("fqe", problem.target, problem.gamma, problem.folds, settings), learn)


def value_range(problem: FeatureProblem) -> tuple[float, float]:
    """Between which (1 − γ) Σ γᵗ r lies: the rewards, and 0 where episodes end."""
    reward = problem.known.sample.reward
    low, high = float(reward.min()), float(reward.max())
    return (min(low, 0.0), max(high, 0.0)) if problem.known.any_end else (low, high)


def fitted_rows(problem: FeatureProblem, inputs: PairInputs) -> FittedRows:
    """The sample as the learner sees it, in units of (1 − γ) Σ γᵗ r."""
    sample, gamma = problem.known.sample, problem.gamma
    low, high = value_range(problem)
    return FittedRows(
        inputs.of(sample.observation, sample.action),
        *inputs.under(problem.target, sample.next_observation),
        (1.0 - gamma) * sample.reward,
        np.where(sample.terminated, 0.0, gamma),
        low,
        high,
    )


def _seen(problem: FeatureProblem) -> FloatArray:
    """How often each network sees each row of the sample; all rows where a fold holds everything."""
    sample = problem.known.sample
    weights = unseen(problem.fold_of(sample), problem.folds) * sample.times
    weights[weights.sum(axis=1) <= 0] = sample.times
    return np.asarray(weights)
