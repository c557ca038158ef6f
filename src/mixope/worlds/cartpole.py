"""CartPole: Gymnasium's ``CartPole-v1``, many carts at once, in double precision.

The state (x, ẋ, θ, θ̇) is observed as it is; actions push to the left (0) or to the right (1) with a force F = ∓10.
With masses 1 and .1, half a pole length of .5, g = 9.8 and Δ = .02 s,

    h = (F + .05 θ̇² sin θ) / 1.1,        ẍ = h − .05 θ̈ cos θ / 1.1,
    θ̈ = (g sin θ − h cos θ) / (.5 (4/3 − .1 cos² θ / 1.1)),

and every component moves by Δ times its *present* rate. Every step earns 1. An episode starts with all four uniform on
±.05 and is *terminated* when |x| > 2.4 or |θ| > 12°, the step that does it included. Gymnasium's limit of 500 steps is
no part of the state, so that a log ends there as *truncated*, and the values are those of a pole that is watched until
it falls: the total of an episode without a discount is the mean number of steps, which these policies keep finite.

The policies balance by a linear controller behind a logistic function, P(right) = σ(g · (1.5 x + 2 ẋ + 20 θ + 6 θ̇)),
the better the larger their gain g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.policies.callables import DiscreteCallablePolicy
from mixope.policies.protocol import Policy
from mixope.worlds import continuous
from mixope.worlds.continuous import Truth

GRAVITY, FORCE, TIME_STEP = 9.8, 10.0, 0.02
MASS, POLE_MASS, HALF_LENGTH = 1.1, 0.1, 0.5
FARTHEST, STEEPEST = 2.4, 12 * 2 * np.pi / 360
START = 0.05
WEIGHTS = (1.5, 2.0, 20.0, 6.0)
TARGET = 0.25
LOGGERS = {1: (0.2,), 4: (0.05, 0.12, 0.2, 0.3)}


@dataclass(frozen=True)
class CartPole:
    """The dynamics; rows of states are (x, ẋ, θ, θ̇)."""

    name: str = "cartpole"

    def start(self, chains: int, generator: np.random.Generator) -> FloatArray:
        """All four uniform on ±.05."""
        return generator.uniform(-START, START, (chains, 4))

    def observe(self, states: FloatArray) -> FloatArray:
        """The states themselves."""
        return states

    def step(
        self, states: FloatArray, actions: AnyArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """One step of .02 s; the generator is not used."""
        _, speed, angle, turn = states.T
        sine, cosine, lever = np.sin(angle), np.cos(angle), POLE_MASS * HALF_LENGTH
        force = np.where(actions == 1, FORCE, -FORCE)
        push = (force + lever * turn**2 * sine) / MASS
        bend = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / MASS))
        rates = np.stack([speed, push - lever * bend * cosine / MASS, turn, bend], axis=1)
        return states + TIME_STEP * rates, np.ones(len(states))

    def ended(self, states: FloatArray) -> BoolArray:
        """Whether the cart has left the track or the pole has fallen."""
        return np.asarray((np.abs(states[:, 0]) > FARTHEST) | (np.abs(states[:, 2]) > STEEPEST), dtype=bool)


@dataclass(frozen=True)
class Balance:
    """The action laws of a controller of some gain."""

    gain: float

    def __call__(self, observations: AnyArray) -> FloatArray:
        """Shape (n, 2)."""
        observed = np.asarray(observations, dtype=np.float64)
        if observed.ndim != 2 or observed.shape[1] != len(WEIGHTS):
            raise DataError(
                "these observations are not CartPole's",
                column="observation",
                expected="four columns: position, speed, angle, angular speed",
                got=f"shape {observed.shape}",
                hint="mixope simulate cartpole writes them; for other states give a policy of those states",
            )
        right = expit(self.gain * (observed @ np.array(WEIGHTS)))
        return np.stack([1 - right, right], axis=1)


def controller(gain: float) -> DiscreteCallablePolicy:
    """The policy of that gain."""
    return DiscreteCallablePolicy(Balance(gain), actions=np.arange(2))


def target() -> DiscreteCallablePolicy:
    """The policy to evaluate, which keeps the pole up for about 103 steps."""
    return controller(TARGET)


def loggers(n: int) -> list[DiscreteCallablePolicy]:
    """One logger, or four from poor to good."""
    if n not in LOGGERS:
        raise UsageError(f"expected 1 or 4 loggers, got {n}; controller(gain) makes any other")
    return [controller(gain) for gain in LOGGERS[n]]


def truth(policy: Policy, estimand: Estimand, *, chains: int = 20_000, seed: int = 0) -> Truth:
    """The value by simulation, with its standard error; the average is 1, whatever the policy."""
    if estimand.kind == "average":
        return Truth(1.0, 0.0)
    return continuous.value(CartPole(), policy, estimand, chains=chains, seed=seed)
