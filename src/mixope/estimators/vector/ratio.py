"""The state ratio on features: ω(s) = max(θ·φ(s), 0), from two passes, and the score pass that all estimators share.

    behaviour     b fitted on a sample, ρ = π/b
    calibration   ρ ← ρ(1 + η·φ),   Σ c ρ(1 + η·φ)φ = Σ c φ
    moments       A = Σ c (φ(s) − γ ρ φ(s′)) φ(s)ᵀ,   e = Σ c φ,   b = E_μ₀ φ,   Σ = Σ c φφᵀ
    solve         min ‖Aθ − (1−γ)b‖² + λ‖θ‖² whitened,  e·θ = Σ c      (kept by fold of episodes, for cross-fitting)

φ are normalised bumps, 24 ∛n of them; with one-hot φ every step is its tabular counterpart. A ratio cannot be negative,
so the ridge of the calibration is the smallest that makes 1 + η·φ negative in at most 1 % of rows, and λ = 1e-6 is
raised only if more than a tenth of the mass of ω would be negative. Over-fitted calibration spoilt ratios most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.row_calibration import (
    Calibration,
    CalibrationMoments,
    apply_calibration,
    calibration_moments,
    solve_calibration,
    z_scores,
)
from mixope.behaviours.rows_protocol import FittedBehaviour
from mixope.errors import DataError
from mixope.estimand import Estimand
from mixope.estimators.vector.scan import Scan
from mixope.estimators.vector.value import fold_of
from mixope.features import FittedMap
from mixope.policies import Policy
from mixope.solvers.linear import solve_ratio
from mixope.solvers.outcome import Solved
from mixope.statistics.rows import Rows

#: log ρ beyond this is cut: a single row of weight e¹⁵ would decide everything and is reported as such
_LARGEST_LOG_RATIO = 15.0
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_CALIBRATION_RIDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
#: the share of rows with a negative calibration, and of negative mass of ω, that is put up with
_NEGATIVE_ROWS = 0.01
_NEGATIVE_MASS = 0.1


@dataclass(frozen=True)
class RatioFit:
    """A solved state ratio: everything needed to weigh rows."""

    scan: Scan
    target: Policy
    estimand: Estimand
    behaviour: FittedBehaviour
    features: FittedMap
    weight: Callable[[Rows], FloatArray]
    folds: int
    judges: Rows
    ridges: tuple[float, ...] = RIDGES

    @property
    def gamma(self) -> float:
        """The discount, 1 for the average."""
        return self.estimand.gamma if self.estimand.gamma is not None else 1.0

    def raw_ratio(self, rows: Rows) -> FloatArray:
        """π(a|s)/b(a|s)."""
        log_ratio = self.target.log_prob(rows.observation, rows.action) - self.behaviour.log_prob(rows)
        if np.isnan(log_ratio).any():
            raise DataError("the target gave a log-probability that is not a number", expected="finite or −inf")
        return np.exp(np.minimum(log_ratio, _LARGEST_LOG_RATIO))

    @cached_property
    def _calibration(self) -> tuple[Calibration, float]:
        """η, and the misfit of the behaviour before calibration: (Σz² − M)/√2M over features."""

        def batch(rows: Rows) -> dict[str, FloatArray]:
            phi = self.features.transform(rows.observation)
            return vars(calibration_moments(phi, self.raw_ratio(rows), self.weight(rows)))

        sums = CalibrationMoments(**self.scan.total("calibration", batch).arrays)
        z = z_scores(sums)
        phi = self.features.transform(self.judges.observation)
        for ridge in _CALIBRATION_RIDGES:
            solved = solve_calibration(sums, ridge)
            if float(np.mean(phi @ solved.eta < -1.0)) <= _NEGATIVE_ROWS:
                break
        return solved, float((z @ z - len(z)) / np.sqrt(2 * len(z)))

    @property
    def misfit(self) -> float:
        """How far the behaviour was off before calibration."""
        return self._calibration[1]

    def ratio(self, rows: Rows, phi: FloatArray) -> FloatArray:
        """Calibrated ρ."""
        return apply_calibration(self.raw_ratio(rows), phi, self._calibration[0].eta)[0]

    @cached_property
    def _moments(self) -> dict[str, FloatArray]:
        average = self.estimand.kind == "average"
        _ = self._calibration  # its pass comes first

        def batch(rows: Rows) -> dict[str, FloatArray]:
            phi, ahead = self.features.transform(rows.observation), self.features.transform(rows.next_observation)
            c = self.weight(rows)
            flow = c * self.ratio(rows, phi)
            ahead = ahead * np.where(rows.terminated, 0.0, flow)[:, None]
            difference = phi * c[:, None] - self.gamma * ahead
            fold, over = fold_of(rows, self.folds), flow * rows.terminated
            parts = [(fold == k) for k in range(self.folds)]
            return {
                "a": np.stack([difference[p].T @ phi[p] for p in parts]),
                "gram": np.stack([phi[p].T @ (phi[p] * c[p][:, None]) for p in parts]),
                "e": np.stack([phi[p].T @ c[p] for p in parts]),
                "ended": np.stack([phi[p].T @ over[p] for p in parts]),
                "start": phi[rows.start].sum(axis=0),
                "starts": np.asarray(float(rows.start.sum())),
                "n": np.stack([np.asarray(c[p].sum()) for p in parts]),
            }

        sums = dict(self.scan.total("moments", batch).arrays)
        start = sums["start"] / max(float(sums["starts"]), 1.0)
        if average and sums["ended"].any():
            sums["a"] = sums["a"] - np.stack([np.outer(start, ended) for ended in sums["ended"]])
        return {**sums, "b": start}

    def _solve(self, use: FloatArray) -> tuple[FloatArray, Solved, float]:
        sums = self._moments
        n = float(use @ sums["n"])
        a, gram, e = (np.tensordot(use, sums[k], axes=1) / n for k in ("a", "gram", "e"))
        right = None if self.estimand.kind == "average" else (1.0 - self.gamma) * sums["b"]
        phi, c = self.features.transform(self.judges.observation), self.weight(self.judges)
        for ridge in self.ridges:
            solution = solve_ratio(a, right, e, gram, ridge)
            omega = phi @ solution[0]
            if float(c @ np.maximum(-omega, 0.0)) <= _NEGATIVE_MASS * float(c @ np.maximum(omega, 0.0)):
                break
        return solution

    @cached_property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """θ on all rows, how it was solved, the condition number."""
        return self._solve(np.ones(self.folds))

    @cached_property
    def crossed(self) -> FloatArray:
        """θ for every fold, from the others: shape (folds, features)."""
        thetas = []
        for k in range(self.folds):
            others = np.ones(self.folds)
            others[k] = 0.0
            thetas.append(self._solve(others)[0] if float(others @ self._moments["n"]) > 0 else self.whole[0])
        return np.stack(thetas)

    @property
    def start(self) -> FloatArray:
        """E_μ₀ φ."""
        return self._moments["b"]

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """c ω ρ of every row, ω clipped at 0 (before self-normalisation)."""
        phi = self.features.transform(rows.observation)
        theta = self.crossed if crossed else np.tile(self.whole[0], (self.folds, 1))
        omega = np.einsum("nm,nm->n", phi, theta[fold_of(rows, self.folds)])
        return np.asarray(self.weight(rows) * np.maximum(omega, 0.0) * self.ratio(rows, phi))
