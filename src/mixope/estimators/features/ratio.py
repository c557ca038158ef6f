"""The state ratio on features: ω(s) = max(θ·φ(s), 0), from two rounds of moments.

    behaviour     b fitted on a sample, ρ = π/b
    calibration   ρ ← ρ(1 + η·φ),   Σ c ρ(1 + η·φ)φ = Σ c φ
    moments       A = Σ c (φ(s) − γ ρ φ(s′)) φ(s)ᵀ,   e = Σ c φ,   b = E_μ₀ φ,   Σ = Σ c φφᵀ
    solve         average     min ‖Aθ‖² + λ‖θ‖² whitened,  e·θ = Σ c   (kept by fold of episodes, for cross-fitting)
                  otherwise   min ‖Aθ − k b‖² + λ‖θ − const‖²,  k = 1 − γ, or 1 for the total of an episode

φ are normalised bumps, 24 ∛n of them; with one-hot φ every step is its counted counterpart. A ratio cannot be negative,
so the ridge of the calibration is the smallest that makes 1 + η·φ negative in at most 1 % of rows, and λ = 1e-6 is
raised only if more than a tenth of the mass of ω would be negative. Over-fitted calibration spoilt ratios most.

Importance ratios above e¹⁵ (about three million) are truncated, and calibrations below zero are raised to zero; both
are counted and shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import linalg

from mixope.base.arrays import BoolArray, FloatArray, sum_by
from mixope.base.errors import DataError
from mixope.behaviours import FittedBehaviour
from mixope.behaviours.calibration import (
    CalibrationMoments,
    apply_calibration,
    solve_calibration,
    z_scores,
)
from mixope.estimators.asking import Asking
from mixope.estimators.features.problem import FeatureProblem, by_label, logger_weight
from mixope.features import FittedMap
from mixope.policies import Policy
from mixope.policies.own_code import asking
from mixope.requests.moments import MomentRequest, Moments
from mixope.requests.processor import phi_of
from mixope.requests.rows import Rows
from mixope.requests.terms import ColumnSum, Cut, FeatureColumns, Hinge, NumberSum, Product, Square, Term
from mixope.solvers.linear import LEAST_RIDGE, solve_ratio
from mixope.solvers.outcome import Outcome, Solved

LARGEST_LOG_RATIO = 15.0
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_CALIBRATION_RIDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
#: the share of rows with a negative calibration, and of negative mass of ω, that is put up with
_NEGATIVE_ROWS = 0.01
_NEGATIVE_MASS = 0.1
_HELD_OUT_RIDGE = 1e-5
_LEAST_EPISODES = 5
"""Episodes that a fold must have to be judged."""


def log_target(target: Policy, rows: Rows) -> FloatArray:
    """log π(a|s) of every row, asked once per batch."""

    def ask() -> FloatArray:
        with asking(target):
            found = np.asarray(target.log_prob(rows.observation, rows.action), dtype=np.float64)
            if found.shape != (len(rows),) or np.isnan(found).any():
                strange = ", with values that are not numbers" if np.isnan(found).any() else ""
                raise DataError(
                    "the target did not give one log-probability per row",
                    expected=f"shape ({len(rows)},), finite or −inf",
                    got=f"shape {found.shape}{strange}",
                )
        return found

    return rows.once("log target", target, ask)


@dataclass(frozen=True)
class RawRatio:
    """ρ = π/b of rows, and their weights c by logger."""

    target: Policy
    behaviour: FittedBehaviour
    logger_weights: tuple[tuple[str, float], ...]

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        return rows.once("weight", self.logger_weights, lambda: logger_weight(rows, dict(self.logger_weights)))

    def of(self, rows: Rows) -> tuple[FloatArray, int]:
        """ρ of every row, and how many were truncated."""
        ratio, truncated = self.of_rows(rows)
        return ratio, int(truncated.sum())

    def of_rows(self, rows: Rows) -> tuple[FloatArray, BoolArray]:
        """ρ of every row, and which were truncated."""

        def divide() -> tuple[FloatArray, BoolArray]:
            log_behaviour = rows.once("log behaviour", self.behaviour, lambda: self.behaviour.log_prob(rows))
            log_ratio = log_target(self.target, rows) - log_behaviour
            truncated = (log_ratio > LARGEST_LOG_RATIO) & (self.weight(rows) > 0)
            return np.exp(np.minimum(log_ratio, LARGEST_LOG_RATIO)), truncated

        return rows.once("ratio", self, divide)


@dataclass(frozen=True)
class CalibrationSums(MomentRequest):
    """K = Σ c ρ φφᵀ, m = Σ c φ, k = Σ c ρ φ, Σ c²(ρ − 1)²φ², and how many ratios were truncated."""

    raw: RawRatio
    features: FittedMap

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ."""
        return (self.features,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same, in terms."""
        (ratio, truncated), c, n = self.raw.of_rows(rows), by_label(rows, dict(self.raw.logger_weights)), rows.times
        sums = {"plain": c * n, "weighted": c * n * ratio, "spread": n * (c * (ratio - 1)) ** 2}
        return (
            Square("gram", FeatureColumns(self.features), c * n * ratio, by_fold=False),
            *(
                ColumnSum(k, (FeatureColumns(self.features, w),), by_fold=False, squared=k == "spread")
                for k, w in sums.items()
            ),
            NumberSum("cut", truncated, by_fold=False),
        )


@dataclass(frozen=True)
class CalibratedRatio:
    """ρ(1 + η·φ)."""

    raw: RawRatio
    features: FittedMap
    eta: FloatArray

    def of(self, rows: Rows) -> tuple[FloatArray, int]:
        """Of every row, and how many were raised to zero."""
        return rows.once(
            "calibrated", self, lambda: apply_calibration(self.raw.of(rows)[0], phi_of(self.features, rows), self.eta)
        )


@dataclass(frozen=True)
class RatioSums(MomentRequest):
    """A, Σ c φφᵀ, Σ c φ, Σ c ρ φ over ended rows and Σ c, by fold; start features; rows whose calibration was cut."""

    ratio: CalibratedRatio
    gamma: float

    @property
    def maps(self) -> tuple[FittedMap, ...]:
        """φ."""
        return (self.ratio.features,)

    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """The same in terms; ρ is calibrated by whoever reads them."""
        features, c, ratio = self.ratio.features, self.ratio.raw.weight(rows), self.ratio.raw.of(rows)[0]
        gate, flow, begun = Hinge(features, self.ratio.eta), c * ratio, rows.start * rows.times
        weighted = FeatureColumns(features, c)
        going = FeatureColumns(features, -self.gamma * flow * ~rows.terminated, following=True, gate=gate)
        return (
            Product("a", (weighted, going), (FeatureColumns(features),)),
            Square("gram", FeatureColumns(features), c),
            ColumnSum("e", (weighted,)),
            ColumnSum("ended", (FeatureColumns(features, flow * rows.terminated, gate=gate),)),
            ColumnSum("start", (FeatureColumns(features, begun),)),
            NumberSum("n", c),
            NumberSum("starts", begun),
            Cut("clipped", gate, ratio > 0),
        )


@dataclass(frozen=True)
class RatioFit:
    """A solved state ratio, as a record small enough to be sent along: weighs rows, on all folds or cross-fitted."""

    ratio: CalibratedRatio
    theta: FloatArray
    crossed: FloatArray

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        return self.ratio.raw.weight(rows)

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """c ω ρ of every row, ω clipped at 0 (before self-normalisation); with a fold, ω from the other folds."""
        theta = self.theta if fold is None else self.crossed[fold % len(self.crossed)]
        omega = np.maximum(phi_of(self.ratio.features, rows) @ theta, 0.0)
        return np.asarray(self.weight(rows) * omega * self.ratio.of(rows)[0])


@dataclass(frozen=True)
class RatioReport:
    """How the ratio was had: solver, condition number, misfit of the behaviour, and what was cut."""

    solved: Solved
    condition: float | None = None
    misfit: float | None = None
    truncated: int = 0
    clipped: int = 0
    capped: int = 0
    held_out: float | None = None


@dataclass(frozen=True)
class RatioSystem:
    """The moments of a ratio with what is needed to solve them on any of the folds."""

    problem: FeatureProblem
    ratio: CalibratedRatio
    sums: Moments
    ridges: tuple[float, ...] = RIDGES

    @cached_property
    def start(self) -> FloatArray:
        """E_μ₀ φ."""
        return np.asarray(self.sums["start"].sum(axis=0) / max(float(self.sums["starts"].sum()), 1.0))

    @cached_property
    def _judged(self) -> tuple[FloatArray, FloatArray]:
        judges = self.problem.known.judges
        return phi_of(self.ratio.features, judges), self.ratio.raw.weight(judges)

    def solve(self, use: FloatArray) -> tuple[FloatArray, Solved, float]:
        """θ from the folds in ``use``, how it was solved, the condition number."""
        n = float(use @ self.sums["n"])
        a, gram, e = (np.tensordot(use, self.sums[k], axes=1) / n for k in ("a", "gram", "e"))
        average = self.problem.estimand.restarts
        if average and self.sums["ended"].any():
            a = a - np.outer(self.start, use @ self.sums["ended"]) / n
        right = None if average else self.problem.estimand.scale * self.start
        phi, c = self._judged
        for ridge in self.ridges:
            solution = solve_ratio(a, right, e, gram, ridge)
            omega = phi @ solution[0]
            if float(c @ np.maximum(-omega, 0.0)) <= _NEGATIVE_MASS * float(c @ np.maximum(omega, 0.0)):
                break
        return solution

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """On all rows."""
        return self.solve(np.ones(len(self.sums["n"])))

    @cached_property
    def crossed(self) -> FloatArray:
        """θ for every fold, from the others: shape (folds, features)."""
        folds, n = self.problem.folds, self.sums["n"]
        if folds == 1:
            return self.whole[0][None, :]
        thetas = []
        for k in range(folds):
            others = (np.arange(len(n)) % folds != k).astype(np.float64)
            thetas.append(self.solve(others)[0] if float(others @ n) > 0 else self.whole[0])
        return np.stack(thetas)

    @cached_property
    def fit(self) -> RatioFit:
        """Ready to weigh rows."""
        return RatioFit(self.ratio, self.whole[0], self.crossed if self.problem.cross_fit else self.whole[0][None, :])

    def held_out(self) -> float | None:
        """Does the ratio of some episodes balance the flow of the others? In standard deviations; None if too few.

        A ratio that is right leaves, on rows it has not seen, for every f,

            Σ c ω(s) [ f(s) − γ ρ f(s′) ] − k E_μ₀ f · Σ c = 0        up to chance.

        What matters to the value is f = V, fitted by least squares on the features of the ratio; the residual is then
        how far the value is off. A few thousand rows of the sample are looked at. Each of K folds is judged by the ω of
        the K − 1 others, whose own error counts too: the sum, clustered by episode, is divided by √(K/(K−1)) standard
        deviations. The worst fold is told.
        """
        folds, rows = self.problem.folds, self.problem.known.judges
        if folds < 2 or rows.episode is None:
            return None
        average, scale = self.problem.estimand.restarts, self.problem.estimand.scale
        phi, c = self._judged
        ahead = np.array(phi_of(self.ratio.features, rows, following=True))
        rho = self.ratio.of(rows)[0]
        ahead[rows.terminated] = self.start if average else 0.0
        gamma = self.problem.gamma
        v = _judging_value(phi, c[:, None] * phi - gamma * (c * rho)[:, None] * ahead, c * rho, rows.reward, average)
        here, later = phi @ v, ahead @ v
        # V is known up to a constant, and (1 − ρ) times a large one would drown the rest
        level = float(c @ here) / float(c.sum())
        ends = rows.terminated & (not average)
        flow = here - level - gamma * rho * np.where(ends, 0.0, later - level)
        due = 0.0 if average else scale * (float(self.start @ v) - level)
        fold, off, own = self.problem.fold_of(rows), [], np.sqrt(folds / (folds - 1))
        for k in range(folds):
            mine = fold == k
            omega = np.maximum(phi[mine] @ self.crossed[k], 0.0)
            episode = np.unique(rows.episode[mine], return_inverse=True)[1]
            residual = sum_by(episode, c[mine] * (omega * flow[mine] - due))
            spread = float(np.sqrt(residual @ residual))
            if len(residual) >= _LEAST_EPISODES and spread > 0:
                off.append(abs(float(residual.sum())) / (own * spread))
        return float(max(off)) if off else None


def _judging_value(
    phi: FloatArray, flow: FloatArray, weight: FloatArray, reward: FloatArray, average: bool
) -> FloatArray:
    """The coefficients of V; for the average, less the mean of the weighted rewards."""
    level = float(weight @ reward) / max(float(weight.sum()), 1e-300) if average else 0.0
    n, right = len(phi), phi.T @ (weight * (reward - level))
    matrix = phi.T @ flow / n
    matrix[np.diag_indices(len(matrix))] += max(_HELD_OUT_RIDGE, LEAST_RIDGE * float(np.linalg.norm(matrix)))
    return np.asarray(linalg.solve(matrix, right / n))


def calibration_requests(
    problem: FeatureProblem, fitted: FittedBehaviour, weights: Mapping[str, float], *, coarse: bool = True
) -> tuple[CalibrationSums, ...]:
    """For the features, and for half as many where their number chose itself."""
    raw = RawRatio(problem.target, fitted, tuple(sorted(weights.items())))
    maps = [problem.known.state_features, problem.known.coarse_features if coarse else None]
    return tuple(CalibrationSums(raw, features) for features in maps if features is not None)


def calibrate(problem: FeatureProblem, request: CalibrationSums, sums: Moments) -> tuple[CalibratedRatio, RatioReport]:
    """η, and the misfit of the behaviour before calibration: (Σz² − M)/√2M over features."""
    moments = CalibrationMoments(*(sums[name].sum(axis=0) for name in ("gram", "plain", "weighted", "spread")))
    z = z_scores(moments)
    phi = phi_of(request.features, problem.known.judges)
    for ridge in _CALIBRATION_RIDGES:
        solved = solve_calibration(moments, ridge)
        if float(np.mean(phi @ solved.eta < -1.0)) <= _NEGATIVE_ROWS:
            break
    report = RatioReport(
        Solved(Outcome.DIRECT, 0.0),
        misfit=float((z @ z - len(z)) / np.sqrt(2 * len(z))),
        truncated=int(sums["cut"].sum()),
    )
    return CalibratedRatio(request.raw, request.features, solved.eta), report


def solve_ratios(
    problem: FeatureProblem, requests: tuple[CalibrationSums, ...], calibrations: tuple[Moments, ...]
) -> Asking[list[tuple[RatioSystem, RatioReport]]]:
    """The second round: from calibrations to solved ratios, fine and coarse."""
    ready = [
        problem.once("calibration", sums, partial(calibrate, problem, request, sums))
        for request, sums in zip(requests, calibrations, strict=True)
    ]
    moments = yield tuple(RatioSums(ratio, problem.gamma) for ratio, _ in ready)
    return [
        problem.once("ratio", sums, partial(_solved, problem, ratio, report, sums, judge=number == 0))
        for number, ((ratio, report), sums) in enumerate(zip(ready, moments, strict=True))
    ]


def _solved(
    problem: FeatureProblem, ratio: CalibratedRatio, report: RatioReport, sums: Moments, *, judge: bool
) -> tuple[RatioSystem, RatioReport]:
    """One ratio and how it was had; the fine one is held against rows that it has not seen."""
    system = RatioSystem(problem, ratio, sums)
    _, solved, condition = system.whole
    held_out, clipped = system.held_out() if judge else None, int(sums["clipped"].sum())
    return system, replace(report, solved=solved, condition=condition, clipped=clipped, held_out=held_out)
