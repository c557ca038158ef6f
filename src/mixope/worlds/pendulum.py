"""Pendulum: Gymnasium's ``Pendulum-v1``, many chains at once, in double precision and continuing.

The state is (θ, θ̇), θ = 0 upright; a policy sees (cos θ, sin θ, θ̇). With u the action clipped to ±2,

    r  = −( θ² + .1 θ̇² + .001 u² ),   θ taken in [−π, π), before the step
    θ̇′ = θ̇ + .05 (15 sin θ + 3 u), clipped to ±8,        θ′ = θ + .05 θ̇′.

Episodes start with θ uniform on the circle and θ̇ uniform on ±1; nothing ends. The dynamics being deterministic, the
efficiency bound is 0.

The analytic policies swing the pendulum up by pumping its energy and catch it with a linear controller, as far as their
gain g lets them; k says which of the two is at work:

    a ~ N( 2 tanh(½ g m), σ² ),      m = −k (8 sin θ + 1.5 θ̇) + (1 − k) .05 (15 − ½ θ̇² − 15 cos θ) θ̇,
    k = 1 / (1 + exp(−8 (cos θ − .8))).

They record the unclipped draw. :mod:`~mixope.worlds.actor_critic` trains others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import DataError, UsageError
from mixope.policies.gaussian import GaussianPolicy
from mixope.policies.protocol import ContinuousPolicy
from mixope.worlds import continuous
from mixope.worlds.continuous import Truth

MAX_TORQUE, MAX_SPEED, TIME_STEP = 2.0, 8.0, 0.05
GRAVITY_PULL, TORQUE_PULL = 15.0, 3.0
TARGET = (0.85, 0.8)
LOGGERS = {1: ((0.7, 0.9),), 4: ((0.4, 0.9), (0.55, 0.9), (0.7, 0.9), (0.85, 1.0))}


@dataclass(frozen=True)
class Pendulum:
    """The dynamics; rows of states are (θ, θ̇)."""

    name: str = "pendulum"
    action_size: int = 1

    def start(self, chains: int, generator: np.random.Generator) -> FloatArray:
        """θ uniform on the circle, θ̇ uniform on ±1."""
        return generator.uniform((-np.pi, -1.0), (np.pi, 1.0), (chains, 2))

    def observe(self, states: FloatArray) -> FloatArray:
        """(cos θ, sin θ, θ̇)."""
        return np.stack([np.cos(states[:, 0]), np.sin(states[:, 0]), states[:, 1]], axis=1)

    def step(
        self, states: FloatArray, actions: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """One step of .05 s; the generator is not used."""
        theta, speed = states.T
        torque = np.clip(actions[:, 0], -MAX_TORQUE, MAX_TORQUE)
        reward = -(wrapped(theta) ** 2 + 0.1 * speed**2 + 0.001 * torque**2)
        pull = GRAVITY_PULL * np.sin(theta) + TORQUE_PULL * torque
        faster = np.clip(speed + TIME_STEP * pull, -MAX_SPEED, MAX_SPEED)
        return np.stack([theta + TIME_STEP * faster, faster], axis=1), reward

    def ended(self, states: FloatArray) -> BoolArray:
        """Never."""
        return np.zeros(len(states), dtype=bool)


def wrapped(theta: FloatArray) -> FloatArray:
    """The angle in [−π, π)."""
    return np.asarray((theta + np.pi) % (2 * np.pi) - np.pi, dtype=np.float64)


@dataclass(frozen=True)
class SwingUp:
    """The mean 2 tanh(½ g m) of the analytic policies."""

    gain: float

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, 1)."""
        observed = np.asarray(observations, dtype=np.float64)
        if observed.ndim != 2 or observed.shape[1] != 3:
            raise DataError(
                "these observations are not Pendulum's",
                column="observation",
                expected="three columns: cos θ, sin θ, angular speed",
                got=f"shape {observed.shape}",
                hint="mixope simulate pendulum writes them; for other states give a policy of those states",
            )
        cosine, sine, speed = observed.T
        k = 1 / (1 + np.exp(-8 * (cosine - 0.8)))
        caught = -(8 * sine + 1.5 * speed)
        pumped = 0.05 * (15 - 0.5 * speed**2 - 15 * cosine) * speed
        m = k * caught + (1 - k) * pumped
        return np.asarray(2 * np.tanh(0.5 * self.gain * m), dtype=np.float64)[:, None]


def analytic_policy(g: float, sigma: float) -> GaussianPolicy:
    """The policy of gain ``g`` and noise ``sigma``; its box is the torque the environment executes."""
    return GaussianPolicy(SwingUp(g), sigma, low=-MAX_TORQUE, high=MAX_TORQUE)


def target() -> GaussianPolicy:
    """The policy to evaluate, of average −1.4930 ± .0007 (160 million steps)."""
    return analytic_policy(*TARGET)


def loggers(n: int) -> list[GaussianPolicy]:
    """One logger, or four from poor to good."""
    if n not in LOGGERS:
        raise UsageError(f"expected 1 or 4 loggers, got {n}; analytic_policy(g, sigma) makes any other")
    return [analytic_policy(g, sigma) for g, sigma in LOGGERS[n]]


def truth(
    policy: ContinuousPolicy, *, chains: int = 2000, steps: int = 2000, burn_in: int = 1000, seed: int = 0
) -> Truth:
    """The average reward by long simulation, with its standard error."""
    return continuous.average(Pendulum(), policy, chains=chains, steps=steps, burn_in=burn_in, seed=seed)


def discounted_truth(policy: ContinuousPolicy, gamma: float, *, chains: int = 10_000, seed: int = 0) -> Truth:
    """(1 − γ) Σ γᵗ r_t from the start law by simulation, with its standard error."""
    return continuous.discounted(Pendulum(), policy, gamma, chains=chains, seed=seed)
