"""Does the ratio of some episodes balance the flow of the others?

A ratio that is right leaves, on rows it has not seen, for every f,

    Σ c ω(s) [ f(s) − γ ρ f(s′) ] − (1−γ) E_μ₀ f · Σ c = 0        up to chance.

What matters to the value is f = V, the value function: the residual is then how far the value is off. V is fitted by
least squares on the features of the ratio, Σ φ(s) [c V(s) − γ c ρ V(s′)] = Σ c ρ (r − η) φ(s). A few thousand rows that
were drawn anyway are looked at, no pass is made. Of K folds each is judged by the ω of the K − 1 others, whose own
error counts too: the sum, clustered by episode, is divided by √(K/(K−1)) standard deviations. The worst fold is told.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mixope.arrays import FloatArray, sum_by
from mixope.estimators.vector.ratio import RatioFit
from mixope.estimators.vector.value import fold_of

_RIDGE = 1e-5
_LEAST = 5
"""Episodes that a fold must have to be judged."""


def held_out_residual(ratio: RatioFit) -> float | None:
    """In standard deviations; None where no fold has episodes enough to say."""
    if ratio.folds < 2:
        return None
    rows = ratio.judges
    assert rows.episode is not None
    phi, ahead = (ratio.features.transform(x) for x in (rows.observation, rows.next_observation))
    c, rho = ratio.weight(rows), ratio.ratio(rows, phi)
    average = ratio.estimand.kind == "average"
    ahead[rows.terminated] = ratio.start if average else 0.0
    v = _value(phi, c[:, None] * phi - ratio.gamma * (c * rho)[:, None] * ahead, c * rho, rows.reward, average)
    here, later = phi @ v, ahead @ v
    # V is known up to a constant, and (1 − ρ) times a large one would drown the rest
    level = float(c @ here) / float(c.sum())
    ends = rows.terminated & (not average)
    flow = here - level - ratio.gamma * rho * np.where(ends, 0.0, later - level)
    due = 0.0 if average else (1.0 - ratio.gamma) * (float(ratio.start @ v) - level)
    fold, off, own = fold_of(rows, ratio.folds), [], np.sqrt(ratio.folds / (ratio.folds - 1))
    for k in range(ratio.folds):
        mine = fold == k
        omega = np.maximum(phi[mine] @ ratio.crossed[k], 0.0)
        episode = np.unique(rows.episode[mine], return_inverse=True)[1]
        residual = sum_by(episode, c[mine] * (omega * flow[mine] - due))
        spread = float(np.sqrt(residual @ residual))
        if len(residual) >= _LEAST and spread > 0:
            off.append(abs(float(residual.sum())) / (own * spread))
    return float(max(off)) if off else None


def _value(phi: FloatArray, flow: FloatArray, weight: FloatArray, reward: FloatArray, average: bool) -> FloatArray:
    """The coefficients of V; for the average, less the mean of the weighted rewards."""
    level = float(weight @ reward) / max(float(weight.sum()), 1e-300) if average else 0.0
    n, right = len(phi), phi.T @ (weight * (reward - level))
    matrix = phi.T @ flow / n + _RIDGE * np.eye(phi.shape[1])
    return np.asarray(linalg.solve(matrix, right / n))
