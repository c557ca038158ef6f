"""Calibration of rows: make E[ρ φ(s)] = E[φ(s)] hold in the sample, for every feature.

Replace ρ by ρ(1 + ηᵀφ(s)) with η solving

    Σ c ρ (1 + ηᵀφ) φ = Σ c φ,      that is   K η = m − k,   K = Σ c ρ φφᵀ,   m = Σ c φ,   k = Σ c ρ φ.

The sums come batch by batch and add up. Before calibration, m and k test the behaviour model for nothing: if ρ = π/b is
right, z = Σ c(ρ − 1)φ / √(Σ c²(ρ − 1)²φ²) is about standard normal for every feature. With one-hot φ all this is the
factor a state of :mod:`mixope.behaviours.calibration`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import DataError

#: Directions of the scaled K with less than this share of the largest eigenvalue are left alone.
TOLERANCE = 1e-11


@dataclass(frozen=True)
class CalibrationMoments:
    """Sums over rows: ``gram`` K, ``plain`` m, ``weighted`` k, and ``spread`` Σ c²(ρ − 1)²φ². They add up."""

    gram: FloatArray
    plain: FloatArray
    weighted: FloatArray
    spread: FloatArray

    @classmethod
    def zero(cls, size: int) -> CalibrationMoments:
        """Of no rows."""
        return cls(np.zeros((size, size)), np.zeros(size), np.zeros(size), np.zeros(size))

    def merge(self, other: CalibrationMoments) -> CalibrationMoments:
        """Of the rows of both."""
        return CalibrationMoments(
            self.gram + other.gram,
            self.plain + other.plain,
            self.weighted + other.weighted,
            self.spread + other.spread,
        )


@dataclass(frozen=True)
class Calibration:
    """η, and how well it could be had.

    ``rank`` of K's directions were solved, with ``condition`` the ratio of the largest to the smallest of their
    eigenvalues; ``residual`` is max |Kη − (m − k)| / max |m|: above rounding where the target avoids a feature.
    """

    eta: FloatArray
    rank: int
    condition: float
    residual: float


def calibration_moments(phi: FloatArray, ratio: FloatArray, weight: FloatArray) -> CalibrationMoments:
    """K = Σ c ρ φφᵀ, m = Σ c φ, k = Σ c ρ φ and Σ c²(ρ − 1)²φ² of a batch: φ (n, M), ρ and c (n,)."""
    if phi.ndim != 2 or ratio.shape != (len(phi),) or weight.shape != (len(phi),):
        raise DataError(
            "features, ratios and weights do not belong to the same rows",
            expected="shapes (n, M), (n,) and (n,)",
            got=f"shapes {phi.shape}, {ratio.shape} and {weight.shape}",
        )
    mass = weight * ratio
    return CalibrationMoments(
        gram=phi.T @ (phi * mass[:, None]),
        plain=phi.T @ weight,
        weighted=phi.T @ mass,
        spread=(phi**2).T @ (mass - weight) ** 2,
    )


def z_scores(moments: CalibrationMoments) -> FloatArray:
    """z = Σ c(ρ − 1)φ / √(Σ c²(ρ − 1)²φ²) for every feature; 0 where ρ = 1 throughout."""
    off = moments.weighted - moments.plain
    scale = np.sqrt(moments.spread)
    return np.asarray(np.divide(off, scale, out=np.zeros_like(off), where=scale > 0))


def solve_calibration(moments: CalibrationMoments, ridge: float = 0.0) -> Calibration:
    """η = (K + ridge·diag K)⁺ (m − k), in the scale where diag K = 1, on its eigenvectors above the tolerance.

    The scale lets a rare feature count like a common one; the truncation leaves out what features cannot tell apart.
    """
    gram, off = moments.gram, moments.plain - moments.weighted
    seen = np.diag(gram) > 0
    scale = np.where(seen, 1 / np.sqrt(np.where(seen, np.diag(gram), 1.0)), 0.0)
    values, basis = np.linalg.eigh(gram * scale[:, None] * scale[None, :])
    kept = values > TOLERANCE * max(float(values[-1]), 0.0)
    if not kept.any():
        raise DataError(
            "the target gives no weight to any logged row, so the ratios cannot be calibrated",
            expected="rows whose action the target can take",
            hint="check that actions of the logs and of the target mean the same",
        )
    eta = scale * (basis[:, kept] @ ((basis[:, kept].T @ (scale * off)) / (values[kept] + ridge)))
    left = np.abs(gram @ eta - off).max() / max(float(np.abs(moments.plain).max()), np.finfo(float).tiny)
    return Calibration(eta, int(kept.sum()), float(values[-1] / values[kept][0]), float(left))


def apply_calibration(ratio: FloatArray, phi: FloatArray, eta: FloatArray) -> tuple[FloatArray, int]:
    """ρ(1 + ηᵀφ), raised to 0 where it is below, and in how many rows that was."""
    factor = 1 + phi @ eta
    clipped = int(((factor < 0) & (ratio > 0)).sum())
    return ratio * np.maximum(factor, 0.0), clipped
