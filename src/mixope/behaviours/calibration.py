"""Calibration: make E[ρ φ(s)] = E[φ(s)] hold in the sample, for every feature.

Replace ρ by ρ(1 + ηᵀφ(s)) with η solving

    Σ c ρ (1 + ηᵀφ) φ = Σ c φ,      that is   K η = m − k,   K = Σ c ρ φφᵀ,   m = Σ c φ,   k = Σ c ρ φ.

The sums come batch by batch and add up. With one-hot φ, K is diagonal and 1 + η is one factor per state, Σ c / Σ c ρ
over the rows at s: the target is renormalised over the actions that were logged there, and the flow between states
becomes a stochastic matrix. Before calibration, m and k test the behaviour model for nothing: if ρ = π/b is right,
z = Σ c(ρ − 1)φ / √(Σ c²(ρ − 1)²φ²) is about standard normal for every feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import DataError
from mixope.base.tails import normal_of_chi_squared

#: Directions of the scaled K with less than this share of the largest eigenvalue are left alone.
TOLERANCE = 1e-11
#: States with fewer rows, or with ratios that hardly vary, do not judge a behaviour.
_FEWEST_ROWS, _LEAST_SPREAD = 20, 1e-9


@dataclass(frozen=True)
class CalibrationMoments:
    """Sums over rows: ``gram`` K, ``plain`` m, ``weighted`` k, and ``spread`` Σ c²(ρ − 1)²φ². They add up."""

    gram: FloatArray
    plain: FloatArray
    weighted: FloatArray
    spread: FloatArray


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
    diagonal = np.diag(gram)
    seen = diagonal > 0
    if not seen.any():
        raise DataError(
            "the target gives no weight to any logged row, so the ratios cannot be calibrated",
            expected="rows whose action the target can take",
            hint="check that actions of the logs and of the target mean the same",
        )
    scale = np.where(seen, 1 / np.sqrt(np.where(seen, diagonal, 1.0)), 0.0)
    values, basis = np.linalg.eigh(gram * scale[:, None] * scale[None, :])
    kept = values > TOLERANCE * max(float(values[-1]), 0.0)
    values, basis = values[kept], basis[:, kept]
    eta = scale * (basis @ ((basis.T @ (scale * off)) / (values + ridge)))
    left = np.abs(gram @ eta - off).max() / max(float(np.abs(moments.plain).max()), np.finfo(float).tiny)
    return Calibration(eta, len(values), float(values[-1] / values[0]), float(left))


def apply_calibration(ratio: FloatArray, phi: FloatArray, eta: FloatArray) -> tuple[FloatArray, int]:
    """ρ(1 + ηᵀφ), raised to 0 where it is below, and in how many rows (or groups) that was: a number to report."""
    factor = 1 + phi @ eta
    clipped = int(((factor < 0) & (ratio > 0)).sum())
    return ratio * np.maximum(factor, 0.0), clipped


def state_factors(state: IntArray, count: FloatArray, ratio: FloatArray, n_states: int) -> FloatArray:
    """1 + η of every state, m/k from Σ c and Σ c ρ; 0 where the target takes no logged action."""
    rows = sum_by(state, count, n_states)
    mass = sum_by(state, ratio, n_states)
    return np.divide(rows, mass, out=np.zeros(n_states), where=mass > 0)


def misfit(
    state: IntArray, rows: FloatArray, ratio: FloatArray, squared: FloatArray, n_states: int
) -> tuple[float, int]:
    """χ² of Σ(ρ − 1) over states, as a normal deviate: near 0 if ρ = π/b is right, large if b is wrong; and its states.

    Under the right b, (Σ(ρ−1))²/Σ(ρ−1)² at a state is about z², and their sum is χ² with as many degrees of freedom as
    states. ``ratio`` and ``squared`` are Σ ρ and Σ ρ² of groups.
    """
    off = sum_by(state, ratio - rows, n_states)
    spread = sum_by(state, squared - 2 * ratio + rows, n_states)
    busy = (sum_by(state, rows, n_states) >= _FEWEST_ROWS) & (spread > _LEAST_SPREAD)
    n = int(busy.sum())
    if n == 0:
        return 0.0, 0
    chi_squared = float(np.sum(off[busy] ** 2 / spread[busy]))
    return normal_of_chi_squared(chi_squared, n), n
