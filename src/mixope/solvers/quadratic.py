"""The quadratic program of Liu et al. (2018): min ½ xᵀHx over the simplex {x ≥ 0, Σ x = 1}.

Dense, kept for reproducing the paper; solved by a primal–dual interior-point method (Mehrotra's predictor–corrector).
With multipliers y for the sum and z ≥ 0 for the bounds the optimum has  Hx − y·1 − z = 0,  Σx = 1,  x∘z = 0.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixope.arrays import FloatArray
from mixope.solvers.outcome import Outcome, Solved


def minimise_on_simplex(hessian: FloatArray, tolerance: float = 1e-10, steps: int = 100) -> tuple[FloatArray, Solved]:
    """The minimiser of ½ xᵀHx on the simplex; H positive definite."""
    n = len(hessian)
    scale = float(np.trace(hessian)) / n
    h = hessian / scale
    x, z, y = np.full(n, 1.0 / n), np.full(n, 1.0), 0.0
    gap = float("inf")
    for step in range(1, steps + 1):
        dual = h @ x - y - z
        primal = 1.0 - x.sum()
        gap = float(x @ z)
        if (
            gap < tolerance * max(float(x @ h @ x), 1e-12)
            and np.abs(dual).max() < tolerance
            and abs(primal) < tolerance
        ):
            return x, Solved(Outcome.DIRECT, gap, step)
        factor = cho_factor(h + np.diag(z / x))
        ones = cho_solve(factor, np.ones(n))
        dx, dz, dy = _newton(factor, ones, x, z, dual, primal, -x * z)
        affine = (x + _longest(x, dx) * dx) @ (z + _longest(z, dz) * dz) / n
        centre = (affine / (gap / n)) ** 3 * gap / n
        dx, dz, dy = _newton(factor, ones, x, z, dual, primal, centre - x * z - dx * dz)
        x = x + 0.995 * _longest(x, dx) * dx
        length = 0.995 * _longest(z, dz)
        z, y = z + length * dz, y + length * dy
    return x / x.sum(), Solved(Outcome.INACCURATE, gap, steps)


def _newton(
    factor: tuple[FloatArray, bool],
    ones: FloatArray,
    x: FloatArray,
    z: FloatArray,
    dual: FloatArray,
    primal: float,
    complement: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    """One Newton step: (H + Z/X) dx = y·1 − dual + complement/x, 1·dx = primal."""
    free = cho_solve(factor, -dual + complement / x)
    dy = float((primal - free.sum()) / ones.sum())
    dx = free + dy * ones
    return dx, (complement - z * dx) / x, dy


def _longest(value: FloatArray, direction: FloatArray) -> float:
    """How far one may go before a component turns negative, at most one."""
    shrinking = direction < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float(np.min(-value[shrinking] / direction[shrinking])))
