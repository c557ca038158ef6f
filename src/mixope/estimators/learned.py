"""``fqe``: a value learned by networks, for states of many columns, where distances say little.

    learn      q by fitted Q evaluation on the sample (:mod:`mixope.solvers.fitted_q`), one network without each fold
    value      k E_μ₀ V(s₀), V(s) = Σ_a π(a|s) q(s,a) clipped to the range of values (the average: η); the mean over
               the networks

**Interval: the jackknife over folds.** θ₍ₖ₎ is the value by the network that never saw the episodes of fold k, over the
starts of all others. With m_k of n episodes in fold k, and K folds,

    se² = 1/K Σ_k (n − m_k)/m_k (θ₍ₖ₎ − θ)²,        t with K − 1 degrees of freedom

What one network differs from the next by chance in training is in θ₍ₖ₎ too and is counted n/m_k-fold, so that it errs
on the wide side. No weight is needed, hence no behaviour. What it cannot see is what all networks miss alike: it is a
plug-in value, and asks for caution always. How often it covers is in docs/benchmarks.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.estimators.asking import Asking
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Measures, Solution
from mixope.features.encoding import StateEncoding
from mixope.features.far import far_share
from mixope.features.pairs import PairInputs
from mixope.policies import Policy
from mixope.requests.by_episode import sum_by_episode
from mixope.requests.grouping import GroupSums
from mixope.requests.request import Batch, RowRequest
from mixope.requests.rows import Rows, required
from mixope.requests.scores import ClusterScores
from mixope.solvers.devices import Device, find_gpu, unusable
from mixope.solvers.fitted_q import Fitted, FittedQSettings, FittedRows, fit_networks, with_clock
from mixope.solvers.networks import Networks

FOLDS = 8
"""Networks, each without the episodes of one fold; fewer where there are fewer episodes."""
_BEYOND = 20.0
"""Up to so many mean lengths of an episode, the total of an undiscounted one is believed."""
_BIAS = "a learned value is off by whatever all networks miss alike, which no interval shows; see 'dr' beside it"


@dataclass(frozen=True)
class LearnedValue:
    """The estimator; ``settings`` say how to train, ``jobs`` in how many processes (None: as many as are worth it).

    ``device`` is where: "auto" leaves it to the question, which takes a GPU if there is one.
    """

    settings: FittedQSettings = field(default_factory=FittedQSettings)
    name: str = "fqe"
    jobs: int | None = None
    device: Device = "auto"

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """Learn on the sample, then value the starts of all episodes."""
        problem.check_ends()
        if not problem.drawable:
            raise UsageError(
                "'fqe' needs a target that can be drawn from (a sample method), and this one gives densities only;"
                " use a GaussianPolicy, or an estimator without a value model such as 'emp'"
            )
        known = learned(problem, self)
        (sums,) = yield (StartValues(known),)
        return _jackknifed(known, sums)


@dataclass(frozen=True)
class Deal:
    """Episodes dealt into folds of equal size by the hash of their ids, the same in every batch."""

    edges: IntArray

    @classmethod
    def of(cls, sample: Rows) -> Deal:
        """As many folds as there are episodes, at most eight."""
        draws = np.unique(required(sample.draw))
        folds = min(FOLDS, len(draws))
        return cls(draws[[len(draws) * k // folds for k in range(1, folds)]])

    def __len__(self) -> int:
        return len(self.edges) + 1

    def fold(self, rows: Rows) -> IntArray:
        """The fold of every row's episode."""
        return np.searchsorted(self.edges, required(rows.draw), side="right")


@dataclass(frozen=True)
class Learned:
    """Networks, one without each fold, the target whose value it is, and the range that values can have.

    ``scale`` makes a value of what the networks give; ``averages`` are what they found for the average.
    """

    deal: Deal
    inputs: PairInputs
    networks: Networks
    target: Policy
    low: float
    high: float
    scale: float
    horizon: int | None = None
    averages: FloatArray | None = None
    measures: Measures = field(default_factory=Measures)
    trained_on: str | None = None

    def values(self, observations: FloatArray) -> FloatArray:
        """V of states by every network, (networks, n)."""
        pairs, shares = self.inputs.under(self.target, observations)
        timed = with_clock(pairs.astype(np.float64), float(self.horizon or 0), self.horizon)
        each = [self.networks.values(timed[:, k]) * shares[:, k] for k in range(pairs.shape[1])]
        return np.clip(np.sum(each, axis=0, dtype=np.float64), self.low, self.high)


@dataclass(frozen=True)
class StartValues(RowRequest):
    """By episode: its rows, its fold, its starts, and V(s₀) by every network (none where it is the average)."""

    learned: Learned

    sees_unfollowed = True

    def of(self, batch: Batch) -> GroupSums:
        """Of some rows."""
        rows, deal = batch.rows, self.learned.deal
        values = np.zeros((len(deal), len(rows)))
        if self.learned.averages is None and rows.start.any():
            values[:, rows.start] = self.learned.values(rows.observation[rows.start])
        n = rows.times
        columns = {"rows": n, "fold": n * deal.fold(rows), "starts": n * rows.start}
        return sum_by_episode(
            batch.table, columns | {f"v{k}": n * value for k, value in enumerate(values)}, "start values"
        )


def _jackknifed(known: Learned, sums: GroupSums) -> Solution:
    """The value, and its spread over the folds as scores of episodes; those of one episode are 0."""
    rows = sums.column("rows")
    fold = np.rint(sums.column("fold") / np.maximum(rows, 1e-300)).astype(np.int64)
    members = sum_by(fold, (rows > 0).astype(np.float64), len(known.deal))
    values = _without_each(known, sums, fold)
    value, n, folds = float(values.mean()), float(members.sum()), int((members > 0).sum())
    by_fold = (value - values) * np.sqrt((n - members) / np.maximum(members, 1.0) / folds)
    scores = (by_fold / np.sqrt(np.maximum(members, 1.0)))[fold] * np.sqrt((n - 1.0) / n)  # m/(m−1) Σ s² is se²
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Solution(
        value=value,
        scores=ClusterScores(np.where(rows > 0, scores, 0.0)),
        degrees=max(folds - 1.0, 1.0),
        measures=replace(known.measures, seed_median=float(np.median(values)), seed_spread=spread),
        known_bias=_BIAS,
        trained_on=known.trained_on,
    )


def _without_each(known: Learned, sums: GroupSums, fold: IntArray) -> FloatArray:
    """θ₍ₖ₎: by the network without fold k, over the starts of the others."""
    if known.averages is not None:
        return known.averages
    starts = sums.column("starts")
    found = []
    for k in range(len(known.deal)):
        others = fold != k if len(known.deal) > 1 and bool(starts[fold != k].any()) else np.ones(len(fold), dtype=bool)
        found.append(float(sums.column(f"v{k}")[others].sum()) / max(float(starts[others].sum()), 1.0))
    return known.scale * np.array(found)


def learned(problem: FeatureProblem, how: LearnedValue) -> Learned:
    """One network per fold, trained without it on the sample; once for all who ask for the same."""
    gpu = find_gpu(problem.device if how.device == "auto" else how.device)

    def learn() -> Learned:
        sample = problem.known.sample
        deal = Deal.of(sample)
        inputs = PairInputs(StateEncoding.fit(sample.observation, sample.roles), problem.actions)
        rows = fitted_rows(problem, inputs)
        fold = deal.fold(sample)
        fitted = _trained(gpu, rows, _seen(fold, len(deal), sample.times), how, problem.seed)
        missing = 1.0 - float(np.mean(rows.shares.sum(axis=1)))
        apart = sample.episode if sample.episode is not None else fold
        measures = Measures(
            leaked_mass=missing if missing > 1e-6 else None,
            far_pairs=far_share(rows.inputs, rows.ahead, rows.shares, apart, ~sample.terminated, problem.seed),
        )
        return Learned(
            deal,
            inputs,
            fitted.networks,
            problem.target,
            rows.low,
            rows.high,
            _scale(problem),
            rows.horizon,
            fitted.averages,
            measures,
            fitted.device,
        )

    key = ("fqe", problem.target, problem.estimand, how.settings, gpu is None)
    return problem.known.once(key, learn)


def _trained(gpu: Any | None, rows: FittedRows, weights: FloatArray, how: LearnedValue, seed: int) -> Fitted:
    """On the GPU that was found, else on the processor."""
    if gpu is None:
        return fit_networks(rows, weights, how.settings, seed, how.jobs, None)
    from mixope.solvers.fitted_q_device import DeviceFailure, fit_networks_on

    try:
        return fit_networks_on(gpu, rows, weights, how.settings, seed, None)
    except DeviceFailure as error:
        raise unusable(error, gpu) from error


def _seen(fold: IntArray, folds: int, times: FloatArray) -> FloatArray:
    """How often each network sees each row of the sample; all rows where a fold holds everything."""
    weights = (fold[None, :] != np.arange(folds)[:, None]) * times
    weights[weights.sum(axis=1) <= 0] = times
    return np.asarray(weights)


def _scale(problem: FeatureProblem) -> float:
    """What the value is in units of what the networks learn."""
    estimand = problem.estimand
    if estimand.kind != "episode":
        return 1.0
    return 1.0 / (1.0 - problem.gamma) if problem.gamma < 1.0 else _mean_length(problem)


def _mean_length(problem: FeatureProblem) -> float:
    """Rows over starts of the logs."""
    return problem.known.n_rows / max(sum(problem.known.logger_starts.values()), 1.0)


def fitted_rows(problem: FeatureProblem, inputs: PairInputs) -> FittedRows:
    """The sample as the learner sees it, in the units of :mod:`mixope.solvers.fitted_q`."""
    sample, estimand, gamma = problem.known.sample, problem.estimand, problem.gamma
    low, high = float(sample.reward.min()), float(sample.reward.max())
    if problem.known.any_end:
        low, high = min(low, 0.0), max(high, 0.0)
    reward = sample.reward
    if gamma < 1.0:
        reward = (1.0 - gamma) * reward
    elif estimand.kind == "episode":
        reward, low, high = reward / _mean_length(problem), _BEYOND * low, _BEYOND * high
    rows = FittedRows(
        inputs.of(sample.observation, sample.action),
        *inputs.under(problem.target, sample.next_observation),
        reward,
        np.where(sample.terminated, 0.0, gamma),
        low,
        high,
        estimand.horizon,
    )
    if not estimand.restarts:
        return rows
    at = sample.start if bool(sample.start.any()) else np.arange(len(sample)) == 0
    starts, shares = inputs.under(problem.target, sample.observation[at])
    return replace(rows, starts=starts, start_shares=shares, low=-np.inf, high=np.inf)
