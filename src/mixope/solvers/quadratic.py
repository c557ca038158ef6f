"""The quadratic program of Liu et al. (2018): min ½ xᵀHx over the simplex {x ≥ 0, Σ x = 1}; kept for reproduction.

With multipliers y for the sum and z ≥ 0 for the bounds the optimum has  Hx − y·1 − z = 0,  Σx = 1,  x∘z = 0. Which
bounds bind is guessed and corrected (a primal–dual active set; Hintermüller, Ito & Kunisch 2003): with the guess, x is
a sparse solve, and where x < 0 a bound is to bind, where z < 0 to be free. On logs few bind, if any, and the first
guess is often right; a guess that comes to rest is the optimum. Where the guesses run in a circle, a primal–dual
interior-point method (Mehrotra's predictor–corrector, dense) takes over.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import SuperLU, splu

from mixope.base.arrays import FloatArray
from mixope.solvers.outcome import Outcome, Solved

GUESSES = 12
"""Of the bounds that bind, before the interior point takes over."""


def minimise_on_simplex(
    hessian: FloatArray | sparse.csc_array, tolerance: float = 1e-10, steps: int = 100, guesses: int = GUESSES
) -> tuple[FloatArray, Solved]:
    """The minimiser of ½ xᵀHx on the simplex; H positive definite, dense or sparse."""
    h = sparse.csc_array(hessian)
    h = h / (h.trace() / h.shape[0])
    return _by_guesses(h, guesses) or _inside(h.toarray(), tolerance, steps)


def _by_guesses(h: sparse.csc_array, guesses: int) -> tuple[FloatArray, Solved] | None:
    """The optimum, if the guesses of what binds come to rest."""
    free = np.ones(h.shape[0], dtype=bool)
    for guess in range(1, guesses + 1):
        among = np.flatnonzero(free)
        direction = _factor(h[:, among][among].tocsc()).solve(np.ones(len(among)))
        x, y = np.zeros(len(free)), 1.0 / direction.sum()
        x[among] = direction * y
        slope = h @ x - y
        after = np.where(free, x > 0, slope < 0)
        if (after == free).all():
            return x, Solved(Outcome.DIRECT, float(np.abs(slope[among]).max()), guess)
        if not after.any():
            return None
        free = after
    return None


def _factor(h: sparse.csc_array) -> SuperLU:
    return splu(h, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def _inside(h: FloatArray, tolerance: float, steps: int) -> tuple[FloatArray, Solved]:
    n = len(h)
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
