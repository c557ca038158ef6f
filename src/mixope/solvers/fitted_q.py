"""Fitted Q evaluation: networks that learn a value from rows, each from rows of its own.

    goals        y = r + g V(s′),  V(s′) = Σ p_k q(s′, a_k)  with the network as it was at the last renewal
    steps        Adam on the mean square of q(s,a) − y, a few dozen steps between renewals
    renewal      a q + c takes the place of q, a and c such that Bellman residuals have mean zero and do not go with q:
                 a constant alone would take 1/(1−γ) renewals to get where it belongs
    the end      the step size falls to zero, and the parameters of the last steps are averaged

Every question is this recursion, in units in which a value lies among the rewards (and 0, where episodes end):

    discounted   r is (1−γ) r,  g is γ, and 0 at an end
    episode      r is r over the mean length of an episode,  g is 1, and 0 at an end
    horizon      q has the steps that are left, h, as one more input:  r is r/h,  g is (h−1)/h, and 0 at an end
    average      r is r − η,  g is 1, an end leads to the mean of V over the starts; q has mean zero, and the c of a
                 renewal is η

Predictions are clipped to the range of values: what is beyond is known to be wrong. Which rows a network sees is said
by weights, which is how they are left out by turns: a network that never saw an episode judges it.

Draws depend on nothing that is learned, so that :mod:`mixope.solvers.fitted_q_device`, which trains all networks at
once on a GPU, makes the same ones and finds the same networks up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.processes import run_tasks
from mixope.solvers.networks import Adam, Networks, ParameterMean, gradients, new_network, valued

Tick = Callable[[int, int], None]
STEEPEST = 1.25
"""By how much a renewal may stretch or shrink the values at most."""
_LARGE = 100.0
"""Values are learned in units in which they lie within this: steps of Adam are then small beside them."""


@dataclass(frozen=True)
class FittedQSettings:
    """How to train; the defaults were chosen on logs of seven control problems (``benchmarks/worlds``, seeds 0–4)."""

    width: int = 128
    renewals: int = 80
    steps: int = 40
    """Between two renewals."""
    batch: int = 256
    rate: float = 1e-3
    decay: float = 1e-3
    averaged: float = 0.2
    """The share of the last steps whose parameters are averaged."""
    passes: int = 300
    """A row is looked at no more often than this, so that little logs take little time."""

    def for_rows(self, n: int) -> FittedQSettings:
        """With as many steps as so many rows are worth."""
        worth = -(-n * self.passes // (self.renewals * self.batch))
        return replace(self, steps=min(self.steps, max(worth, 1)))

    @property
    def averaged_since(self) -> int:
        """The first step whose parameters are averaged."""
        total = self.renewals * self.steps
        return total - int(self.averaged * total)


@dataclass(frozen=True)
class FittedRows:
    """Rows as the learner sees them.

    ``ahead`` (n, K, d) are the pairs that the target makes of s′ and ``shares`` (n, K) their probabilities; ``going``
    is g. ``starts`` and ``start_shares`` are the pairs at the starts of episodes, to which an end leads where the
    question is the average. Where a ``horizon`` is asked for, rewards are as they were earned.
    """

    inputs: FloatArray
    ahead: FloatArray
    shares: FloatArray
    reward: FloatArray
    going: FloatArray
    low: float
    high: float
    horizon: int | None = None
    starts: FloatArray | None = None
    start_shares: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def average(self) -> bool:
        """Whether the question is the long-run average."""
        return self.starts is not None

    @cached_property
    def even(self) -> bool:
        """Whether all pairs ahead of a row have the same share, so that one of them at random stands for all."""
        return bool((self.shares == self.shares[:, :1]).all())


@dataclass(frozen=True)
class Fitted:
    """Networks, and for the average what each of them found it to be; the device they were trained on, if it was one.

    ``device`` is None where they were trained on the processor.
    """

    networks: Networks
    averages: FloatArray | None = None
    device: str | None = None


def fit_networks(
    rows: FittedRows,
    weights: FloatArray,
    settings: FittedQSettings,
    seed: int,
    jobs: int | None = 1,
    tick: bool | Tick | None = False,
) -> Fitted:
    """One network for each row of ``weights`` (networks, n), which say how often it sees each of the rows."""
    units = Units.of(rows)
    inside = units.inside(rows)
    train = partial(train_network, inside, weights, settings.for_rows(len(rows)), seed)
    found = run_tasks(train, range(len(weights)), jobs, tick, "learning the value")
    return units.fitted(rows, [parameters for parameters, _ in found], [eta for _, eta in found])


def with_clock(inputs: FloatArray, left: FloatArray | float, horizon: int | None) -> FloatArray:
    """Pairs with the share of the steps that are left as one more column, where there is a horizon."""
    if horizon is None:
        return inputs
    column = np.broadcast_to(np.asarray(left, dtype=inputs.dtype), inputs.shape[:-1])
    return np.concatenate([inputs, (column / horizon * 2.0 - 1.0)[..., None].astype(inputs.dtype)], axis=-1)


@dataclass(frozen=True)
class Units:
    """Values in which networks learn: less a level (none where episodes end and earn nothing more), over a size."""

    level: float
    size: float

    @classmethod
    def of(cls, rows: FittedRows) -> Units:
        """Such that all values lie within −1 and 1, times a hundred."""
        if rows.average:
            low, high = float(rows.reward.min()), float(rows.reward.max())
            return cls(0.5 * (low + high), max(0.5 * (high - low), 1e-300))
        level = 0.0 if bool((rows.going == 0.0).any()) else 0.5 * (rows.low + rows.high)
        size = max(rows.high - level, level - rows.low)
        return cls(level, max(size, 1e-300) / _LARGE)

    def inside(self, rows: FittedRows) -> FittedRows:
        """The rows in these units."""
        own = 1.0 if rows.horizon is not None or rows.average else 1.0 - rows.going
        reward = (rows.reward - own * self.level) / self.size
        low, high = (rows.low - self.level) / self.size, (rows.high - self.level) / self.size
        return replace(rows, reward=reward, low=low, high=high)

    def outside(self, parameters: list[FloatArray]) -> tuple[FloatArray, ...]:
        """A network whose values are in the units of the question, in double precision."""
        *rest, last, constant = parameters
        return (*rest, last * self.size, constant * self.size + self.level)

    def fitted(
        self, rows: FittedRows, found: Sequence[list[FloatArray]], averages: Sequence[float], device: str | None = None
    ) -> Fitted:
        """Networks that were trained in these units, in those of the question."""
        networks = Networks(tuple(self.outside(parameters) for parameters in found))
        return Fitted(networks, self.level + self.size * np.asarray(averages) if rows.average else None, device)


@dataclass(frozen=True)
class RenewalRows:
    """What is drawn for a renewal: rows, the steps that are left of each, and which pair ahead stands for all of them.

    Nobody looks at ``clock`` where there is no horizon; ``one`` is None where all pairs ahead are looked at.
    """

    chosen: IntArray
    clock: FloatArray
    one: IntArray | None


@dataclass(frozen=True)
class TrainingDraws:
    """All that is random in the training of one network, whoever is trained beside it."""

    rows: FittedRows
    cumulated: FloatArray
    settings: FittedQSettings
    generator: np.random.Generator

    @classmethod
    def of(
        cls, rows: FittedRows, weights: FloatArray, settings: FittedQSettings, seed: int, number: int
    ) -> TrainingDraws:
        """Those of network ``number``."""
        return cls(rows, np.cumsum(weights[number]), settings, np.random.default_rng([seed, 67, number]))

    def network(self) -> list[FloatArray]:
        """Parameters to begin with."""
        inputs = self.rows.inputs.shape[1] + (self.rows.horizon is not None)
        return new_network(inputs, self.settings.width, self.generator)

    def renewal(self) -> RenewalRows:
        """Rows in proportion to their weights, with replacement, for all steps up to the next renewal."""
        rows, generator = self.rows, self.generator
        count = self.settings.steps * self.settings.batch
        found = np.searchsorted(self.cumulated, generator.random(count) * self.cumulated[-1], side="right")
        chosen = np.asarray(np.minimum(found, len(self.cumulated) - 1))
        clock = np.ones(count)
        if rows.horizon is not None:
            clock = generator.integers(1, rows.horizon + 1, size=count).astype(np.float64)
        return RenewalRows(chosen, clock, generator.integers(rows.ahead.shape[1], size=count) if rows.even else None)


def train_network(
    rows: FittedRows, weights: FloatArray, settings: FittedQSettings, seed: int, number: int
) -> tuple[list[FloatArray], float]:
    """One network, from its own rows and its own draws; and η."""
    draws = TrainingDraws.of(rows, weights, settings, seed, number)
    learner = _Learner(rows, draws.network())
    adam, total = Adam(learner.parameters), settings.renewals * settings.steps
    averaged, since = ParameterMean(learner.parameters), settings.averaged_since
    for renewal in range(settings.renewals):
        x, goals = learner.renewed(draws.renewal())
        for step in range(settings.steps):
            part = slice(step * settings.batch, (step + 1) * settings.batch)
            done = renewal * settings.steps + step
            found = gradients(learner.parameters, x[part], goals[part])
            adam.step(found, settings.rate * falling(done / total), settings.decay)
            if done >= since:
                averaged.add(learner.parameters)
    return averaged.parameters, _Learner(rows, averaged.parameters).average(weights[number])


@dataclass(frozen=True)
class _Learner:
    """Rows in the units of the network, and its parameters, which change in place."""

    rows: FittedRows
    parameters: list[FloatArray]

    def renewed(self, drawn: RenewalRows) -> tuple[FloatArray, FloatArray]:
        """Inputs and new goals y of the chosen rows, after slope and level of the network were set right."""
        rows, chosen, clock = self.rows, drawn.chosen, drawn.clock
        x = with_clock(rows.inputs[chosen], clock, rows.horizon).astype(np.float64)
        reward, going = rows.reward[chosen], rows.going[chosen]
        if rows.horizon is not None:
            reward, going = reward / clock, going * (clock - 1.0) / clock
        if rows.average:
            going = np.ones_like(going)
        q, v = valued(self.parameters, x), self._ahead(drawn)
        slope, level = self._rescaled(reward, going, q, v)
        shift = -slope * float(q.mean(dtype=np.float64)) if rows.average else level
        self.parameters[-2] *= slope
        self.parameters[-1] *= slope
        self.parameters[-1] += shift
        ahead = np.clip(v * slope + shift, rows.low, rows.high)
        return x, reward + going * ahead - (level if rows.average else 0.0)

    def average(self, weights: FloatArray) -> float:
        """η by the network as it is: the mean of r + V(s′) − q(s,a) over its rows; 0 where it is not asked for."""
        rows = self.rows
        if not rows.average:
            return 0.0
        q = valued(self.parameters, rows.inputs)
        off = rows.reward + self._restarted(np.arange(len(rows)), self._expected(rows.ahead, rows.shares)) - q
        return float(weights @ off / weights.sum())

    def _ahead(self, drawn: RenewalRows) -> FloatArray:
        """V(s′) of the chosen rows: the mean over all pairs where shares differ, else by one of them at random."""
        rows, chosen = self.rows, drawn.chosen
        shares, pairs = rows.shares[chosen], rows.ahead
        left = np.maximum(drawn.clock - 1.0, 0.0)
        if drawn.one is not None:
            each = with_clock(pairs[chosen, drawn.one], left, rows.horizon)
            found = valued(self.parameters, each) * shares[:, 0] * pairs.shape[1]
            return self._restarted(chosen, found)
        timed = with_clock(pairs[chosen], left[:, None], rows.horizon)
        return self._restarted(chosen, self._expected(timed, shares))

    def _expected(self, pairs: FloatArray, shares: FloatArray) -> FloatArray:
        """Σ p_k q(s, a_k)."""
        every = [valued(self.parameters, pairs[:, k]) * shares[:, k] for k in range(pairs.shape[1])]
        return np.asarray(np.sum(every, axis=0))

    def _restarted(self, chosen: IntArray, v: FloatArray) -> FloatArray:
        """For the average an end leads to a start."""
        rows = self.rows
        if rows.starts is None or rows.start_shares is None:
            return v
        ended = rows.going[chosen] == 0.0
        first = float(self._expected(rows.starts, rows.start_shares).mean()) if ended.any() else 0.0
        return np.where(ended, first, v)

    def _rescaled(self, reward: FloatArray, going: FloatArray, q: FloatArray, v: FloatArray) -> tuple[float, float]:
        """a and c such that a q + c has Bellman residuals of mean zero, and uncorrelated with q as far as a allows."""
        rows = self.rows
        inside = (v > rows.low) & (v < rows.high)
        on, beyond = going * inside, going * np.where(inside, 0.0, np.clip(v, rows.low, rows.high))
        centred = q - q.mean(dtype=np.float64)
        tests = np.stack([np.ones(len(q)), centred])
        rise = np.ones(len(q)) if rows.average else 1.0 - on
        columns, right = np.stack([q - on * v, rise], axis=1), reward + beyond
        matrix, goal = tests @ columns / len(q), tests @ right / len(q)
        determinant = float(np.linalg.det(matrix))
        slope = 1.0
        if determinant != 0.0:
            slope = float((goal[0] * matrix[1, 1] - goal[1] * matrix[0, 1]) / determinant)
        slope = min(max(slope, 1.0 / STEEPEST), STEEPEST)
        return slope, float((goal[0] - slope * matrix[0, 0]) / max(float(matrix[0, 1]), 1e-6))


def falling(share: float) -> float:
    """The step size along the way: full for half of it, then down to a twentieth along a cosine."""
    return 1.0 if share < 0.5 else 0.05 + 0.95 * 0.5 * (1.0 + float(np.cos(2.0 * np.pi * (share - 0.5))))
