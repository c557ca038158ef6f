"""Whitened, regularised linear solves: the normal form of every feature estimator.

    average   min_θ ‖W Aθ‖² + λ‖θ‖²                     with  e·θ = 1
    sums      min_θ ‖W(Aθ − b)‖² + λ‖θ − κ θ₁‖²         θ₁·φ as near to 1 as it can be, κ its best multiple

Either shrinks the ratio towards a constant, never towards 0: a ridge must not take mass away. Whitening: with Σ = E φφᵀ
= U diag(v) Uᵀ, keep v > 1e-9 v_max and work in coordinates Uv^{−½}, so that λ means the same for every feature map. It
is never less than what rounding leaves of (WA)ᵀWA, which is large where ratios are. The condition number and the
relative residual ‖Aθ − b‖ are reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mixope.base.arrays import FloatArray
from mixope.base.errors import UsageError
from mixope.solvers.outcome import Outcome, Solved

TOLERANCE = 1e-9
RIDGE = 1e-6
LEAST_RIDGE = 1e-13
"""Times the trace: what sums of products of so many features cannot tell from zero."""
NO_MEAN = 1e-12
"""Below this the features have no mean: ‖E φ̃‖² of whitened features is 1 if they can follow a constant, else less."""


@dataclass(frozen=True)
class Whitening:
    """The map from raw features to whitened ones, φ̃ = Rᵀφ."""

    root: FloatArray
    condition: float

    @classmethod
    def of(cls, gram: FloatArray, tolerance: float = TOLERANCE) -> Whitening:
        """From Σ = E φφᵀ."""
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        kept = values > tolerance * values[-1]
        if not kept.any():
            raise UsageError(
                "all features are zero on these logs; use features that tell states apart, or leave them out"
            )
        return cls(vectors[:, kept] / np.sqrt(values[kept]), float(values[-1] / values[kept][0]))


def solve_ratio(
    system: FloatArray,
    right: FloatArray | None,
    normaliser: FloatArray,
    gram: FloatArray,
    ridge: float = RIDGE,
    *,
    whiten_tests: bool = True,
) -> tuple[FloatArray, Solved, float]:
    """θ in raw coordinates for ``system @ θ = right`` (or 0 with ``normaliser @ θ = 1``), and the condition number.

    Rows of ``system`` belong to tests: whitened like the features, or only scaled to mean square one.
    """
    white = Whitening.of(gram)
    tests = white.root if whiten_tests else np.diag(1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-12)))
    a = tests.T @ system @ white.root
    square = a.T @ a
    square[np.diag_indices(len(square))] += max(ridge, LEAST_RIDGE * float(np.trace(square)))
    e = white.root.T @ normaliser
    if right is None:
        if not e @ e > NO_MEAN:
            raise UsageError(
                "the features average to zero over the logs, so that no ratio made of them can average one; use some"
                " that can follow a constant, such as NormalisedBumps()"
            )
        direction = linalg.solve(square, e, assume_a="pos")
        z = direction / (e @ direction)
        residual = float(np.linalg.norm(a @ z) / np.linalg.norm(z))
    else:
        b = tests.T @ right
        even = a @ e  # in whitened coordinates, e is the constant 1
        level = float(even @ b) / max(float(even @ even), 1e-300)
        z = level * e + linalg.solve(square, a.T @ (b - level * even), assume_a="pos")
        residual = float(np.linalg.norm(a @ z - b)) / max(float(np.linalg.norm(b)), 1e-300)
    return white.root @ z, Solved(Outcome.DIRECT, residual), white.condition
