"""Fitted Q evaluation: networks that learn q(s,a) = r + γ E_π q(s′,·) from rows, several at once.

    targets      y = r + γ clip(Σ p_k q(s′, a_k)),  with the networks as they were at the last renewal
    steps        Adam on the mean square of q(s,a) − y, a few dozen steps between renewals
    renewal      a q + c takes the place of q, a and c such that Bellman residuals have mean zero and do not go with q:
                 a constant alone would take 1/(1−γ) renewals to get where it belongs
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
from mixope.solvers.networks import Adam, Networks, gradients, new_networks, single, valued

Tick = Callable[[int, int], None]
_STEEPEST = 1.25
"""By how much a renewal may stretch or shrink the values at most."""
_LARGE = 100.0
"""Values are learned in units in which they lie within this: steps of Adam are then small beside them."""


@dataclass(frozen=True)
class FittedQSettings:
    """How to train; the defaults take about fifteen processor seconds for four networks of twenty inputs."""

    width: int = 128
    renewals: int = 80
    steps: int = 40
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
    units = Units.of(rows)
    learner = _Learner(units.inside(rows), new_networks(len(weights), rows.inputs.shape[1], settings.width, seed))
    cumulated, generator = np.cumsum(weights, axis=1), np.random.default_rng([seed, 67])
    adam, total = Adam(learner.parameters), settings.renewals * settings.steps
    averaged, since = Average(learner.parameters), total - int(settings.averaged * total)
    for renewal in range(settings.renewals):
        chosen = _draw(cumulated, settings.steps * settings.batch, generator)
        goals = learner.renewed(chosen, generator)
        for step in range(settings.steps):
            part = slice(step * settings.batch, (step + 1) * settings.batch)
            found = gradients(learner.parameters, learner.rows.inputs[chosen[:, part]], goals[:, part])
            done = renewal * settings.steps + step
            adam.step(found, settings.rate * _rate(done / total), settings.decay)
            if done >= since:
                averaged.add(learner.parameters)
        if tick is not None:
            tick(renewal + 1, settings.renewals)
    return units.outside(averaged.parameters)


@dataclass(frozen=True)
class Units:
    """Values in which networks learn: less a level (none where episodes end and earn nothing more), over a size."""

    level: float
    size: float

    @classmethod
    def of(cls, rows: FittedRows) -> Units:
        """Such that all values lie within −1 and 1, times a hundred."""
        level = 0.0 if bool((rows.going == 0.0).any()) else 0.5 * (rows.low + rows.high)
        size = max(rows.high - level, level - rows.low)
        return cls(level, max(size, 1e-300) / _LARGE)

    def inside(self, rows: FittedRows) -> FittedRows:
        """The rows in these units."""
        reward = (rows.reward - (1.0 - rows.going) * self.level) / self.size
        low, high = (rows.low - self.level) / self.size, (rows.high - self.level) / self.size
        return FittedRows(rows.inputs, rows.ahead, rows.shares, single(reward), single(rows.going), low, high)

    def outside(self, parameters: list[FloatArray]) -> Networks:
        """Networks whose values are in the units of the question, in double precision."""
        *rest, last, constant = parameters
        return Networks((*rest, last * self.size, constant * self.size + self.level))


class Average:
    """The mean of parameters over some steps."""

    def __init__(self, like: list[FloatArray]) -> None:
        self._total = [np.zeros(p.shape) for p in like]
        self._count = 0

    def add(self, parameters: list[FloatArray]) -> None:
        """One step more."""
        self._count += 1
        for k, now in enumerate(parameters):
            self._total[k] += now

    @property
    def parameters(self) -> list[FloatArray]:
        """The mean."""
        return [total / max(self._count, 1) for total in self._total]


@dataclass(frozen=True)
class _Learner:
    """Rows in the units of the networks, and the parameters, which change in place."""

    rows: FittedRows
    parameters: list[FloatArray]

    def renewed(self, chosen: IntArray, generator: np.random.Generator) -> FloatArray:
        """New goals y for the chosen rows, after slope and level of the networks were set right."""
        rows = self.rows
        reward, going = rows.reward[chosen], rows.going[chosen]
        now, ahead = valued(self.parameters, rows.inputs[chosen]), self._ahead(chosen, generator)
        fits = [self._rescaled(*each) for each in zip(reward, going, now, ahead, strict=True)]
        slope, level = (np.array(each, dtype=np.float32)[:, None] for each in zip(*fits, strict=True))
        self.parameters[-2] *= slope[..., None]
        self.parameters[-1] *= slope[..., None]
        self.parameters[-1] += level[..., None]
        return np.asarray(reward + going * np.clip(ahead * slope + level, rows.low, rows.high), dtype=np.float32)

    def _ahead(self, chosen: IntArray, generator: np.random.Generator) -> FloatArray:
        """V(s′) of the chosen rows: the mean over all pairs where shares differ, else by one of them at random."""
        ahead, shares = self.rows.ahead, self.rows.shares
        k = ahead.shape[1]
        if bool((shares == shares[:, :1]).all()):
            one = generator.integers(k, size=chosen.shape)
            return np.asarray(valued(self.parameters, ahead[chosen, one]) * shares[chosen, 0] * np.float32(k))
        every = [valued(self.parameters, ahead[chosen, j]) * shares[chosen, j] for j in range(k)]
        return np.asarray(np.sum(every, axis=0))

    def _rescaled(self, reward: FloatArray, going: FloatArray, q: FloatArray, v: FloatArray) -> tuple[float, float]:
        """a and c such that a q + c has Bellman residuals of mean zero, and uncorrelated with q as far as a allows."""
        low, high = self.rows.low, self.rows.high
        inside = (v > low) & (v < high)
        on, beyond = going * inside, going * np.where(inside, 0.0, np.clip(v, low, high))
        centred = q - q.mean(dtype=np.float64)
        tests = np.stack([np.ones(len(q)), centred])
        columns, right = np.stack([q - on * v, 1.0 - on], axis=1), reward + beyond
        matrix, goal = tests @ columns / len(q), tests @ right / len(q)
        determinant = float(np.linalg.det(matrix))
        slope = 1.0
        if determinant != 0.0:
            slope = float((goal[0] * matrix[1, 1] - goal[1] * matrix[0, 1]) / determinant)
        slope = min(max(slope, 1.0 / _STEEPEST), _STEEPEST)
        return slope, float((goal[0] - slope * matrix[0, 0]) / max(float(matrix[0, 1]), 1e-6))


def _rate(share: float) -> float:
    """Full for half of the way, then down to a twentieth along a cosine."""
    return 1.0 if share < 0.5 else 0.05 + 0.95 * 0.5 * (1.0 + float(np.cos(2.0 * np.pi * (share - 0.5))))


def _draw(cumulated: FloatArray, count: int, generator: np.random.Generator) -> IntArray:
    """Rows for every network, with replacement, in proportion to their weights."""
    drawn = generator.random((len(cumulated), count))
    found = [np.searchsorted(each, u * each[-1], side="right") for each, u in zip(cumulated, drawn, strict=True)]
    return np.asarray(np.minimum(np.stack(found), cumulated.shape[1] - 1))


def unseen(fold: IntArray, folds: int) -> BoolArray:
    """For every fold, the rows that are not in it."""
    return np.asarray(fold[None, :] != np.arange(folds)[:, None])
