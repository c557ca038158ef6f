"""The kernel closed form of the paper (appendix A; Liu et al. 2018): an oracle for small logs, tests in an RKHS.

The worst test f in the unit ball of an RKHS has a closed form, with Δ_i the signed mass that row i puts on its points:

    paper      max_f L(ω, f)² = N⁻² Σ_ij Δ_i Δ_j k(s′_i, s′_j),      Δ_i = c_i (ω(s′_i) − ρ_i ω(s_i))
    general    max_f L(ω, f)² = N⁻² Σ_xy α_x α_y k(x, y) over all points x, y ∈ {s_i} ∪ {s′_i},
               α(s_i) = c_i ω(s_i),   α(s′_i) = −γ c_i ρ_i ω(s_i),   less (1−γ)N of start law

where an end leads to the start law for the average, to nothing otherwise. With ω = θ·φ the masses are linear in θ,
α = Dθ − b, so that  min_θ (Dθ − b)ᵀK(Dθ − b) + λ‖θ‖²  (whitened as in :mod:`mixope.solvers.linear`; b = 0 and mean one
for the average) is one solve. A kernel k(x, y) = ψ(x)·ψ(y) makes it the feature estimator with tests ψ. The work is
O(N²), hence the limit on rows; :mod:`mixope.estimators.vector.ratio` is the estimator to use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import linalg

from mixope.arrays import FloatArray
from mixope.behaviours.rows_protocol import RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.solution import Solution
from mixope.estimators.vector.defaults import default_behaviour
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.ratio import RatioFit
from mixope.estimators.vector.scores import score
from mixope.estimators.vector.value import some_rows
from mixope.features import Standardise, gaussian_kernel
from mixope.features.kernel import median_bandwidth
from mixope.solvers.linear import RIDGE, Whitening
from mixope.solvers.outcome import Outcome, Solved
from mixope.statistics.rows import Rows

MOST_ROWS = 3000
_BLOCK = 512

Kernel = Callable[[FloatArray, FloatArray], FloatArray]
"""k(x, y) for all pairs: (n, d) and (m, d) in, (n, m) out."""


@dataclass(frozen=True)
class KernelRatio:
    """EMP with tests from an RKHS; by default a Gaussian kernel at the median distance of standardised states."""

    name: str = "kernel"
    kernel: Kernel | None = None
    behaviour: RowBehaviour | None = None
    form: Literal["general", "paper"] = "general"
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        if self.form not in ("general", "paper"):
            raise UsageError(f"form must be 'general' or 'paper', got {self.form!r}")

    def solve(self, problem: VectorProblem) -> Solution:
        """One dense solve, then the shared score pass."""
        if problem.estimand.kind == "horizon":
            raise UsageError(f"{self.name!r} estimates the average and the discounted value; it has no horizon")
        return score(problem, self.fit(problem), self.name)

    def fit(self, problem: VectorProblem) -> KernelFit:
        """The ratio on all rows, once they are seen to be few enough."""
        rows = _all_rows(problem, self.name)
        if self.form == "paper" and (problem.estimand.kind != "average" or rows.terminated.any()):
            raise UsageError("the paper's form is for the average of logs that do not end; use form='general'")
        behaviour = self.behaviour or default_behaviour(problem)
        fitted = problem.fitted(behaviour, f"kernel {behaviour!r}")
        linear = RatioFit(
            problem.scan,
            problem.target,
            problem.estimand,
            fitted,
            problem.state_features,
            _one,
            problem.folds,
            some_rows(problem.scan.sample, problem.seed),
        )
        kernel = self.kernel or median_kernel(rows.observation, problem.seed)
        return KernelFit(linear, rows, kernel, self.form, self.ridge)


@dataclass(frozen=True)
class KernelFit:
    """θ from the quadratic form; ρ, its calibration and φ are those of the feature estimator."""

    linear: RatioFit
    rows: Rows
    kernel: Kernel
    form: str
    ridge: float

    @property
    def misfit(self) -> float:
        """How far the behaviour was off before calibration."""
        return self.linear.misfit

    def weight(self, rows: Rows) -> FloatArray:
        """c = 1."""
        return self.linear.weight(rows)

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """c ω ρ of every row, ω clipped at 0; there are no folds."""
        phi = self.linear.features.transform(rows.observation)
        omega = np.maximum(phi @ self.whole[0], 0.0)
        return np.asarray(self.weight(rows) * omega * self.linear.ratio(rows, phi))

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """θ, how it was solved, the condition number of φ."""
        phi, c = self.linear.features.transform(self.rows.observation), self.weight(self.rows)
        white = Whitening.of(phi.T @ (phi * c[:, None]) / c.sum())
        points, masses, source = self.masses(phi)
        d = masses @ white.root
        quadratic = quadratic_form(self.kernel, points, np.column_stack([d, source]))
        square = quadratic[:-1, :-1] + self.ridge * np.eye(d.shape[1])
        if self.linear.estimand.kind == "average":
            e = white.root.T @ (phi.T @ c) / c.sum()
            direction = linalg.solve(square, e, assume_a="pos")
            z, scale = direction / (e @ direction), 1.0
        else:
            z = linalg.solve(square, quadratic[:-1, -1], assume_a="pos")
            scale = max(float(np.sqrt(quadratic[-1, -1])), 1e-300)
        signed = np.append(z, -1.0)
        residual = float(np.sqrt(max(signed @ quadratic @ signed, 0.0))) / scale
        return white.root @ z, Solved(Outcome.DIRECT, residual), white.condition

    def masses(self, phi: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The points, D and b: the signed mass on the points is Dθ − b, in shares of all rows."""
        rows, c = self.rows, self.weight(self.rows)
        flow = c * self.linear.ratio(rows, phi) / c.sum()
        if self.form == "paper":
            ahead = self.linear.features.transform(rows.next_observation) * c[:, None] / c.sum()
            return rows.next_observation, ahead - flow[:, None] * phi, np.zeros(len(rows))
        starts = rows.start / max(float(rows.start.sum()), 1.0)
        here = phi * c[:, None] / c.sum()
        source = np.zeros(len(rows))
        if self.linear.estimand.kind == "average":
            here = here - np.outer(starts, (flow * rows.terminated) @ phi)
        else:
            source = (1.0 - self.linear.gamma) * starts
        there = -self.linear.gamma * np.where(rows.terminated, 0.0, flow)[:, None] * phi
        points = np.concatenate([rows.observation, rows.next_observation])
        return points, np.concatenate([here, there]), np.append(source, np.zeros(len(rows)))


def quadratic_form(kernel: Kernel, points: FloatArray, masses: FloatArray) -> FloatArray:
    """Σ_xy m_x m_yᵀ k(x, y): masses (n, p) at n points give (p, p); K is made a block of rows at a time."""
    total = np.zeros((masses.shape[1], masses.shape[1]))
    for first in range(0, len(points), _BLOCK):
        block = slice(first, first + _BLOCK)
        total += masses[block].T @ (kernel(points[block], points) @ masses)
    return np.asarray(0.5 * (total + total.T))


def median_kernel(observations: FloatArray, seed: int = 0) -> Kernel:
    """exp(−|z − y|²/2h²) of standardised states, h the median distance."""
    scale = Standardise().fit(observations, seed)
    bandwidth = median_bandwidth(scale.transform(observations), seed)
    return lambda left, right: gaussian_kernel(scale.transform(left), scale.transform(right), bandwidth)


def _one(rows: Rows) -> FloatArray:
    return np.ones(len(rows))


def _all_rows(problem: VectorProblem, name: str) -> Rows:
    total = problem.scan.logs.total_rows()
    if total > MOST_ROWS:
        raise UsageError(
            f"{name!r} compares every row with every other and takes at most {MOST_ROWS} rows; these logs have {total}."
            " Use 'emp', which needs one pass"
        )
    if problem.scan.sample_rows < total:
        raise UsageError(f"{name!r} needs all {total} rows, and this scan samples {problem.scan.sample_rows}")
    return problem.scan.sample
