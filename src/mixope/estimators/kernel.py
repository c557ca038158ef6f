"""The kernel closed form of the paper (appendix A; Liu et al. 2018): an oracle for small logs, tests in an RKHS.

The worst test f in the unit ball of an RKHS has a closed form, with Δ_i the signed mass that row i puts on its points:

    paper      max_f L(ω, f)² = N⁻² Σ_ij Δ_i Δ_j k(s′_i, s′_j),      Δ_i = c_i (ω(s′_i) − ρ_i ω(s_i))
    general    max_f L(ω, f)² = N⁻² Σ_xy α_x α_y k(x, y) over all points x, y ∈ {s_i} ∪ {s′_i},
               α(s_i) = c_i ω(s_i),   α(s′_i) = −γ c_i ρ_i ω(s_i),   less (1−γ)N of start law

where an end leads to the start law for the average, to nothing otherwise. With ω = θ·φ the masses are linear in θ,
α = Dθ − b, so that  min_θ (Dθ − b)ᵀK(Dθ − b) + λ‖θ‖²  (whitened as in :mod:`mixope.solvers.linear`; b = 0 and mean one
for the average) is one solve. A kernel k(x, y) = ψ(x)·ψ(y) makes it the feature estimator with tests ψ. The work is
O(N²), hence the limit on rows; :mod:`mixope.estimators.features.ratio` is the estimator to use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy import linalg

from mixope.base.arrays import FloatArray
from mixope.base.errors import Advice, Setting, UsageError
from mixope.behaviours import Behaviour, DefaultMixture, as_behaviour
from mixope.estimators.asking import Asking
from mixope.estimators.features.estimators import with_value
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.ratio import CalibratedRatio, RatioFit, calibrate, calibration_requests
from mixope.estimators.features.scores import score
from mixope.estimators.solution import Solution
from mixope.features import gaussian_kernel, standardised
from mixope.features.kernel import median_bandwidth
from mixope.logs import Role
from mixope.requests.processor import phi_of
from mixope.requests.rows import Rows
from mixope.solvers.linear import LEAST_RIDGE, RIDGE, Whitening
from mixope.solvers.outcome import Outcome, Solved

MOST_ROWS = 3000
_BLOCK = 512

Kernel = Callable[[FloatArray, FloatArray], FloatArray]
"""k(x, y) for all pairs: (n, d) and (m, d) in, (n, m) out."""


@dataclass(frozen=True)
class KernelRatio:
    """EMP with tests from an RKHS; by default a Gaussian kernel at the median distance of standardised states."""

    name: str = "kernel"
    kernel: Kernel | None = None
    behaviour: Behaviour | str = field(default_factory=DefaultMixture)
    form: Literal["general", "paper"] = "general"
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        if self.form not in ("general", "paper"):
            raise UsageError(f"form must be 'general' or 'paper', got {self.form!r}")

    def solve(self, problem: FeatureProblem) -> Asking[Solution]:
        """One dense solve, then the shared scores."""
        problem.refuse_horizon(self.name)
        rows = _all_rows(problem, self.name)
        if self.form == "paper" and (not problem.estimand.restarts or rows.terminated.any()):
            said = "the paper's form is for the average of logs that do not end; use "
            raise UsageError(Advice(said, Setting("form", "general")))
        weights = dict.fromkeys(problem.labels, 1.0)
        fitted = problem.known.fitted(as_behaviour(self.behaviour).knowing(problem.loggers), weights)
        (request,) = calibration_requests(problem, fitted, weights, coarse=False)
        moments, model = yield from with_value(problem, (request,))
        ratio, report = calibrate(problem, request, moments)
        theta, solved, condition = self._theta(problem, rows, ratio)
        fit = RatioFit(ratio, theta, theta[None, :])
        return (yield from score(problem, fit, replace(report, solved=solved, condition=condition), model))

    def _theta(self, problem: FeatureProblem, rows: Rows, ratio: CalibratedRatio) -> tuple[FloatArray, Solved, float]:
        """θ from the quadratic form, how it was solved, the condition number of φ."""
        kernel = self.kernel or median_kernel(rows.observation, problem.seed, rows.roles)
        phi, c = phi_of(ratio.features, rows), ratio.raw.weight(rows)
        white = Whitening.of(phi.T @ (phi * c[:, None]) / c.sum())
        points, masses, source = self.masses(problem, rows, ratio)
        d = masses @ white.root
        quadratic = quadratic_form(kernel, points, np.column_stack([d, source]))
        square = quadratic[:-1, :-1].copy()
        square[np.diag_indices(len(square))] += max(self.ridge, LEAST_RIDGE * float(np.trace(square)))
        e = white.root.T @ (phi.T @ c) / c.sum()
        if problem.estimand.restarts:
            direction = linalg.solve(square, e, assume_a="pos")
            z, scale = direction / (e @ direction), 1.0
        else:  # towards the best constant, as in mixope.solvers.linear
            even = quadratic[:-1, :-1] @ e
            level = float(e @ quadratic[:-1, -1]) / max(float(e @ even), 1e-300)
            z = level * e + linalg.solve(square, quadratic[:-1, -1] - level * even, assume_a="pos")
            scale = max(float(np.sqrt(quadratic[-1, -1])), 1e-300)
        signed = np.append(z, -1.0)
        residual = float(np.sqrt(max(signed @ quadratic @ signed, 0.0))) / scale
        return white.root @ z, Solved(Outcome.DIRECT, residual), white.condition

    def masses(
        self, problem: FeatureProblem, rows: Rows, ratio: CalibratedRatio
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The points, D and b: the signed mass on the points is Dθ − b, in shares of all rows."""
        phi, c = phi_of(ratio.features, rows), ratio.raw.weight(rows)
        flow = c * ratio.of(rows)[0] / c.sum()
        if self.form == "paper":
            ahead = phi_of(ratio.features, rows, following=True) * c[:, None] / c.sum()
            return rows.next_observation, ahead - flow[:, None] * phi, np.zeros(len(rows))
        starts = rows.begun / max(float(rows.begun.sum()), 1.0)
        here = phi * c[:, None] / c.sum()
        source = np.zeros(len(rows))
        if problem.estimand.restarts:
            here = here - np.outer(starts, (flow * rows.terminated) @ phi)
        else:
            source = problem.estimand.scale * starts
        there = -problem.gamma * np.where(rows.terminated, 0.0, flow)[:, None] * phi
        points = np.concatenate([rows.observation, rows.next_observation])
        return points, np.concatenate([here, there]), np.append(source, np.zeros(len(rows)))


def quadratic_form(kernel: Kernel, points: FloatArray, masses: FloatArray) -> FloatArray:
    """Σ_xy m_x m_yᵀ k(x, y): masses (n, p) at n points give (p, p); K is made a block of rows at a time."""
    total = np.zeros((masses.shape[1], masses.shape[1]))
    for first in range(0, len(points), _BLOCK):
        block = slice(first, first + _BLOCK)
        total += masses[block].T @ (kernel(points[block], points) @ masses)
    return np.asarray(0.5 * (total + total.T))


def median_kernel(observations: FloatArray, seed: int = 0, roles: Sequence[Role] | None = None) -> Kernel:
    """exp(−|z − y|²/2h²) of standardised states, h the median distance."""
    scale = standardised(observations, roles)
    bandwidth = median_bandwidth(scale.transform(observations), seed)
    return lambda left, right: gaussian_kernel(scale.transform(left), scale.transform(right), bandwidth)


def _all_rows(problem: FeatureProblem, name: str) -> Rows:
    total, sample = problem.known.n_rows, problem.known.sample
    if total > MOST_ROWS:
        raise UsageError(
            f"{name!r} compares every row with every other and takes at most {MOST_ROWS} rows; these logs have {total}."
            " Use 'emp', which needs no more than sums"
        )
    if sample.times.sum() < total:
        raise UsageError(f"{name!r} needs all {total} rows, and the sample has {len(sample)}")
    return sample
