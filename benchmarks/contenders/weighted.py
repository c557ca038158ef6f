"""A value that is fitted where the target goes: every row of the regression has its stationary weight w = ω(s) ρ.

    Σ w x(s,a)[r − η + x(s′,π)·β − x(s,a)·β] = λ β,      Σ w [r − η + x(s′,π)·β − x(s,a)·β] = 0

``weighted dr`` corrects it as ``dr`` does its own; ``weighted lstdq`` is the plug-in value, whose η is what a weighted
correction would give (the second equation). ``fqe`` trains networks on rows drawn in proportion to w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.behaviours import DefaultMixture
from mixope.estimators.asking import Asking
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy, pooled
from mixope.estimators.counts.solution import CountedSolution, scored
from mixope.estimators.counts.value_model import fit_value
from mixope.estimators.doubly_robust import _corrected
from mixope.estimators.features.estimators import with_value
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.ratio import RatioReport, calibration_requests, solve_ratios
from mixope.estimators.features.scores import Weigher, score
from mixope.estimators.features.value import PairGram, ValueSums, ValueSystem, value_design
from mixope.estimators.learned import fitted_rows
from mixope.estimators.solution import Solution
from mixope.estimators.state_ratio import equal_weights, state_ratio, state_ratio_solution
from mixope.features.encoding import StateEncoding
from mixope.features.pairs import PairInputs
from mixope.requests.moments import Moments
from mixope.requests.problem import Problem
from mixope.requests.rows import Rows
from mixope.solvers.fitted_q import FittedQSettings, fit_networks

NO_INTERVAL = "a plug-in value has no score of its own"
SMALL = FittedQSettings(width=64, renewals=40, steps=20)


@dataclass(frozen=True)
class WeightedValue:
    """``dr`` with a weighted value, or its plug-in value alone."""

    name: str = "weighted dr"
    plug_in: bool = False

    def solve(self, problem: Problem | FeatureProblem) -> Solution | Asking[Solution]:
        """On factors the linear value, on vectors that of bumps."""
        return problem.either(lambda counted: scored(counted, self._on_counts(counted)), self._on_features)

    def _on_counts(self, problem: Problem) -> CountedSolution:
        flow, occupancy = pooled(problem)
        fit = fit_value(weighted(flow, occupancy))
        found = _corrected(flow, occupancy, state_ratio_solution(flow, occupancy), fit)
        found = found.saying(corrects_coverage=True)
        return CountedSolution(plugged_in(found.solution, fit.value)) if self.plug_in else found

    def _on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        (ratio, report), coarse, _ = yield from ratios(problem)
        design = value_design(problem)
        moments, gram = yield WeightedSums(design, ratio), WeightedGram(design.pairs, ratio)
        system = ValueSystem(problem, design, moments, gram["gram"])
        if self.plug_in:
            return plugged_in(Solution(0.0), system.value)
        return (yield from score(problem, ratio, report, system, doubly_robust=True, coarse=coarse))


def weighted(flow: Flow, occupancy: Occupancy) -> Flow:
    """The same rows, each as often as the target would be there."""
    w = state_ratio(flow, occupancy)[flow.rows.state] * flow.ratio
    return replace(flow, weight=w / flow.rows.rows)


def plugged_in(found: Solution, value: float) -> Solution:
    """A value without an interval."""
    return replace(found, value=value, scores=None, weights=None, no_interval_because=NO_INTERVAL)


def ratios(problem: FeatureProblem) -> Asking[tuple[Any, Any, ValueSystem]]:
    """The ratio of ``dr``, the same with half the bumps, and its value."""
    weights = equal_weights(problem)
    fitted = problem.known.fitted(DefaultMixture().knowing(problem.loggers), weights)
    requests = calibration_requests(problem, fitted, weights)
    *calibrations, model = yield from with_value(problem, requests, needed=True)
    (fine, report), *others = yield from solve_ratios(problem, requests, tuple(calibrations))
    coarse: tuple[Weigher, RatioReport] | None = (others[0][0].fit, others[0][1]) if others else None
    return (fine.fit, report), coarse, model


@dataclass(frozen=True)
class WeightedSums(ValueSums):
    """The moments of the value, of weighted rows; starts are counted as they are."""

    ratio: Weigher

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """One slice."""
        counted = replace(rows, count=self.ratio.weights(rows), start=np.zeros(len(rows), dtype=bool))
        super().accumulate(total, counted, fold)
        first = self.design.starts(rows)
        if len(first):
            total.add("start", 0, first.times @ self.design.chosen(first))
            total.add("starts", 0, first.times.sum())


@dataclass(frozen=True)
class WeightedGram(PairGram):
    """Σ w x xᵀ."""

    ratio: Weigher

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """One slice."""
        super().accumulate(total, replace(rows, count=self.ratio.weights(rows)), fold)


@dataclass(frozen=True)
class Networks:
    """Networks that see rows evenly or by their weight, then the mean of r + V(s′) − q(s,a), even or weighted too.

    Two small ones, so that they are compared with each other and not with ``fqe`` as it is.
    """

    name: str
    seen_by_weight: bool = False
    corrected: bool = False

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """The mean over the networks, which are trained once for all who ask."""
        (ratio, _), _, _ = yield from ratios(problem)
        w = ratio.weights(problem.known.sample)
        even = np.ones_like(w)

        def train() -> FloatArray:
            return residuals(problem, w if self.seen_by_weight else even)

        found = problem.known.once(("contending networks", self.seen_by_weight), train)
        given = w if self.corrected else even
        return Solution(float((found @ given).mean() / given.sum()), no_interval_because=NO_INTERVAL)


def residuals(problem: FeatureProblem, seen: FloatArray) -> FloatArray:
    """r + V(s′) − q(s,a) of the rows of the sample, by each of two networks."""
    sample = problem.known.sample
    inputs = PairInputs(StateEncoding.fit(sample.observation, sample.roles), problem.actions)
    rows = fitted_rows(problem, inputs)
    networks = fit_networks(rows, np.stack([seen, seen]), SMALL, problem.seed).networks
    actions = range(rows.ahead.shape[1])
    ahead = sum(networks.values(rows.ahead[:, k].astype(np.float64)) * rows.shares[:, k] for k in actions)
    return np.asarray(rows.reward + ahead - networks.values(rows.inputs.astype(np.float64)))
