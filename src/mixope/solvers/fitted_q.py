"""Fitted Q evaluation: networks that learn q(s,a) = r + γ E_π q(s′,·) from rows, several at once.

    targets      y = r + γ clip(Σ p_k q(s′, a_k)),  with the networks as they were at the last renewal
    steps        Adam on the mean square of q(s,a) − y, a few dozen steps between renewals
    the level    at each renewal, the constant that makes the mean Bellman residual zero is solved for:
                 c = mean(y − q) / (1 − γ · share of rows that go on);  it alone would take 1/(1−γ) renewals
    the end      the step size falls to zero, and the parameters of the last steps are averaged

A value lies within the range of the rewards (with 0, where episodes end) in the units of (1−γ) Σ γᵗ r, and predictions
are clipped to it: what is beyond is known to be wrong. Each network has rows of its own, which is how they are
cross-fitted: one that never saw an episode judges it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.solvers.networks import Adam, Networks, gradients, new_networks

Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class FittedQSettings:
    """How to train; the defaults take about fifteen processor seconds for four networks of twenty inputs."""

    width: int = 64
    renewals: int = 100
    steps: int = 60
    """Between two renewals."""
    batch: int = 256
    rate: float = 1e-3
    decay: float = 1e-3
    averaged: float = 0.2
    """The share of the last steps whose parameters are averaged."""


@dataclass(frozen=True)
class FittedRows:
    """Rows as the learner sees them.

    ``ahead`` (n, K, d) are the pairs that the target makes of s′ and ``shares`` (n, K) their probabilities; ``going``
    is γ where an episode goes on and 0 where it ends; rewards are in units of (1 − γ) r.
    """

    inputs: FloatArray
    ahead: FloatArray
    shares: FloatArray
    reward: FloatArray
    going: FloatArray
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.reward)


def fit_networks(
    rows: FittedRows, weights: FloatArray, settings: FittedQSettings, seed: int, tick: Tick | None = None
) -> Networks:
    """One network for each row of ``weights`` (networks, n), which say how often it sees each of the rows."""
    members = len(weights)
    scale = max(float(np.abs(rows.reward).max()), 1e-30)
    low, high = np.float32(rows.low / scale), np.float32(rows.high / scale)
    reward, going = (rows.reward / scale).astype(np.float32), rows.going.astype(np.float32)
    parameters = new_networks(members, rows.inputs.shape[1], settings.width, seed)
    adam, total = Adam(parameters), settings.renewals * settings.steps
    kept, n_kept, done = [np.zeros_like(p, dtype=np.float64) for p in parameters], 0, 0
    cumulated = np.cumsum(weights, axis=1)
    generator = np.random.default_rng([seed, 67])
    begin_average = total - int(settings.averaged * total)
    for renewal in range(settings.renewals):
        chosen = _draw(cumulated, settings.steps * settings.batch, generator)
        ahead = _looked_ahead(rows, chosen, parameters, generator)
        now = _valued(parameters, rows.inputs[chosen])
        slope, level = _rescaled(reward[chosen], going[chosen], now, ahead, low, high)
        parameters[-1] = parameters[-1] * slope[:, None, None] + level[:, None, None]
        parameters[-2] *= slope[:, None, None]
        adam.parameters = parameters
        y = reward[chosen] + going[chosen] * np.clip(ahead * slope[:, None] + level[:, None], low, high)
        for step in range(settings.steps):
            part = chosen[:, step * settings.batch : (step + 1) * settings.batch]
            goal = y[:, step * settings.batch : (step + 1) * settings.batch]
            found = gradients(parameters, rows.inputs[part], goal)
            adam.step(found, settings.rate * _rate(done / total), settings.decay)
            done += 1
            if done > begin_average:
                n_kept += 1
                for mean, now_is in zip(kept, parameters, strict=True):
                    mean += now_is
        if tick is not None:
            tick(renewal + 1, settings.renewals)
    *rest, last, level_at = (mean / max(n_kept, 1) for mean in kept)
    return Networks(tuple(p.astype(np.float32) for p in (*rest, last * scale, level_at * scale)))


def _rescaled(reward, going, now, ahead, low, high):
    """a and c such that a q + c has Bellman residuals of mean zero, also weighted by q: for every network."""
    slopes, levels = [], []
    for r, g, q, v in zip(reward, going, now, ahead, strict=True):
        inside = (v > low) & (v < high)
        gi, out = g * inside, g * np.where(inside, 0.0, np.clip(v, low, high))
        centre = q - q.mean()
        left = np.array([[np.mean(q - gi * v), np.mean(1 - gi)], [np.mean(centre * (q - gi * v)), np.mean(centre * (1 - gi))]])
        right = np.array([np.mean(r + out), np.mean(centre * (r + out))])
        a = float(np.linalg.solve(left + 1e-12 * np.eye(2), right)[0]) if SLOPE else 1.0
        a = min(max(a, 1 / SLOPE), SLOPE) if SLOPE and np.isfinite(a) else 1.0
        slopes.append(a)
        levels.append((right[0] - a * left[0, 0]) / left[0, 1])
    return np.array(slopes, dtype=np.float32), np.array(levels, dtype=np.float32)


SLOPE = 1.25


def _rate(share: float) -> float:
    """Full for half of the way, then down to a twentieth along a cosine."""
    return 1.0 if share < 0.5 else 0.05 + 0.95 * 0.5 * (1.0 + float(np.cos(2.0 * np.pi * (share - 0.5))))


def _draw(cumulated: FloatArray, count: int, generator: np.random.Generator) -> IntArray:
    """Rows for every network, with replacement, in proportion to their weights."""
    drawn = generator.random((len(cumulated), count))
    found = [np.searchsorted(each, u * each[-1], side="right") for each, u in zip(cumulated, drawn, strict=True)]
    return np.minimum(np.stack(found), cumulated.shape[1] - 1)


def _looked_ahead(
    rows: FittedRows, chosen: IntArray, parameters: list[FloatArray], generator: np.random.Generator
) -> FloatArray:
    """V(s′) of the chosen rows: the mean over all pairs where shares differ, else one of the pairs at random."""
    members, count = chosen.shape
    k = rows.ahead.shape[1]
    if bool((rows.shares == rows.shares[:, :1]).all()):
        one = generator.integers(k, size=chosen.shape)
        return _valued(parameters, rows.ahead[chosen, one]) * rows.shares[chosen, 0] * np.float32(k)
    every = [_valued(parameters, rows.ahead[chosen, j]) * rows.shares[chosen, j] for j in range(k)]
    return np.asarray(np.sum(every, axis=0))


def _valued(parameters: list[FloatArray], x: FloatArray) -> FloatArray:
    """q of rows of each network's own: x is (networks, n, d)."""
    from mixope.solvers.networks import forward

    piece, found = 4096, []
    for low in range(0, x.shape[1], piece):
        hidden = forward(parameters, x[:, low : low + piece])[-1][0]
        found.append((np.matmul(hidden, parameters[4]) + parameters[5])[..., 0])
    return np.concatenate(found, axis=1)


def unseen(fold: IntArray, folds: int) -> BoolArray:
    """For every fold, the rows that are not in it."""
    return np.asarray(fold[None, :] != np.arange(folds)[:, None])
