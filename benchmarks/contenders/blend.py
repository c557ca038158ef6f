"""OPERA (Nie et al. 2024): a blend of estimators whose weights minimise a squared error that the bootstrap estimates.

    Â_ij = mean over resampled logs of (v*_i − v_i)(v*_j − v_j),      α = argmin αᵀ Â α,  Σ α = 1,  α ≥ 0

Episodes are resampled and everything is refitted. The value is Σ α v, its error the spread of Σ α v* (t interval).
Â knows what varies from log to log, and of a bias only what grows when a log gets poorer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from mixope.answers.resampling import FeatureRefit, Refit, prepare
from mixope.base.arrays import FloatArray
from mixope.base.estimand import Estimand
from mixope.estimators import Estimator, make
from mixope.session.questions import ask
from mixope.session.session import Session
from mixope.uncertainty import quantile


def refits(seen: Session, target: object, estimators: Sequence[str | Estimator], estimand: Estimand) -> list[Refit]:
    """Each estimator, ready to be asked of resampled episodes."""
    if seen.counted is not None:
        return [prepare(seen.counted, target, each, estimand=estimand) for each in estimators]
    (question,) = ask(seen.logs, seen.labels, {"target": target}, estimand=estimand, columns=seen.columns)
    return [FeatureRefit.prepare(seen.logs, seen.problem(question), make(each)) for each in estimators]


def blend(several: Sequence[Refit], replicates: int) -> tuple[float, float, float, FloatArray]:
    """Value, ends of the 95 % interval, and α."""
    values = np.array([refit.whole.value for refit in several])
    drawn = [[refit.replicate(number) for refit in several] for number in range(replicates)]
    known = np.array([row for row in drawn if not any(isinstance(value, str) for value in row)], dtype=np.float64)
    alpha = least_error((known - values).T @ (known - values) / len(known))
    value, spread = float(alpha @ values), float(np.std(known @ alpha, ddof=1))
    reach = quantile(0.95, several[0].n_episodes - 1.0) * spread
    return value, value - reach, value + reach, alpha


def least_error(matrix: FloatArray) -> FloatArray:
    """α ≥ 0 with sum 1 that minimises αᵀ A α."""
    n, scale = len(matrix), max(float(np.trace(matrix)), 1e-300)
    found = minimize(
        lambda alpha: alpha @ matrix @ alpha / scale,
        np.full(n, 1.0 / n),
        jac=lambda alpha: 2.0 * matrix @ alpha / scale,
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1.0},
        method="SLSQP",
    )
    return np.asarray(found.x / found.x.sum())
