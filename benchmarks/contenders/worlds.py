"""The worlds on which contenders meet the defaults: the truth of each is exact, and nothing is known but the logs.

circle   the toy of D2OPE (Shi, Wan, Chernozhukov & Song, "Deeply-debiased off-policy interval estimation", 2021):
         three states on a circle, two actions (one state back, one forward) that succeed with probability .9 and
         otherwise stay; arrival in state 0 earns 1. Episodes of 50 steps by a fair coin, from a uniform start.
         The target goes straight to 0, and leaves it either way. Wanted is E Σ .95ᵗ r, as in the paper.
taxi     factors, one logger and four; the long-run average, episodes of 200 steps
rare     Gridworld with slip, logged as factors; the one logger goes right with probability .05 only
lq       the linear–quadratic system: 20 episodes of 50 steps; ``lq-weak`` is logged by an idle, narrower policy,
         so that a few rows have most of the weight
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

import mixope
from mixope import worlds
from mixope.policies.gaussian import LinearGaussianPolicy
from mixope.worlds import Model, continuous, efficiency_bound, from_outcomes, linear_quadratic, simulate, truth
from mixope.worlds.efficiency import logged_law, return_variance

GAMMA = 0.95
STEPS = 50
RARE = 0.05
IDLE = LinearGaussianPolicy([-0.1, -0.1], 0.0, 0.45)


@dataclass(frozen=True)
class World:
    """How to log, what to ask, the truth, and the least mean squared error of a regular estimator."""

    name: str
    log: Callable[[int], Any] = field(repr=False)
    target: Any = field(repr=False)
    truth: float
    bound: float
    gamma: float | None = None
    unit: float = 1.0
    """By what errors are multiplied before they are shown: 1/(1−γ) where the paper sums rewards."""

    def logs(self, repetition: int) -> Any:
        """The same for all who are compared."""
        seeds = np.random.SeedSequence([zlib.crc32(self.name.encode()), repetition])
        return self.log(int(seeds.generate_state(1)[0]))


def circle(episodes: int) -> World:
    """The toy of D2OPE."""
    model, coin, law = circle_model(), np.full((3, 2), 0.5), circle_target()
    return World(
        f"circle, {episodes}",
        lambda seed: simulate(model, [coin], episodes, STEPS, seed=seed),
        mixope.TabularPolicy(law),
        truth.discounted(model, law, GAMMA),
        discounted_bound(model, law, coin, GAMMA, STEPS) / episodes,
        gamma=GAMMA,
        unit=1.0 / (1.0 - GAMMA),
    )


def circle_model() -> Model:
    """Its dynamics; action 0 goes back, action 1 forward."""
    state, action, moves = (index.ravel() for index in np.indices((3, 2, 2)))
    following = np.where(moves == 1, (state + 2 * action - 1) % 3, state)
    return from_outcomes(
        "circle",
        shape=(3, 2),
        state=state,
        action=action,
        next_state=following,
        probability=np.where(moves == 1, 0.9, 0.1),
        reward=(following == 0).astype(np.float64),
        start=np.full(3, 1 / 3),
    )


def circle_target() -> np.ndarray:
    """Either way in state 0, straight back to it elsewhere."""
    return np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])


def discounted_bound(model: Model, target: np.ndarray, logger: np.ndarray, gamma: float, horizon: int) -> float:
    """The least squared error from one episode: Σ d²/d₀ Var(r + γV)/H + (1−γ)² Var V(s₀), the start law unknown."""
    matrix = np.einsum("sa,sat->st", target, model.transition.toarray().reshape(*target.shape, -1))
    reward = (target * model.expected_reward()).sum(axis=1)
    inverse = np.linalg.inv(np.eye(len(matrix)) - gamma * matrix)
    value, occupancy = inverse @ reward, (1.0 - gamma) * model.start @ inverse
    needed, logged = occupancy[:, None] * target, logged_law(model, [logger], horizon)
    steps = float((needed**2 / logged * return_variance(model, gamma * value)).sum()) / horizon
    spread = float(model.start @ value**2 - (model.start @ value) ** 2)
    return steps + (1.0 - gamma) ** 2 * spread


def factored(name: str, model: Model, law: np.ndarray, loggers: list[np.ndarray], episodes: int, steps: int) -> World:
    """A world of factors, whose average is wanted."""
    return World(
        name,
        lambda seed: simulate(model, loggers, episodes, steps, seed=seed, observed="factors"),
        mixope.TabularPolicy(law, np.stack(list(model.factors.values()), 1), factors=list(model.factors)),
        truth.average(model, law),
        efficiency_bound(model, law, loggers, horizon=steps) / (episodes * steps),
    )


@lru_cache
def trained(name: str, n_loggers: int, seed: int = 0) -> tuple[Model, np.ndarray, list[np.ndarray]]:
    """A model, its target and its loggers."""
    model = worlds.make(name)
    return model, worlds.target(model, seed=seed), worlds.stages(model, n_loggers, seed=seed)


def taxi(n_loggers: int, episodes: int, seed: int = 0) -> World:
    """As in the efficiency benchmark; with another seed, other policies."""
    name = f"{'other ' if seed else ''}taxi, {n_loggers}, {episodes}"
    return factored(name, *trained("taxi", n_loggers, seed), episodes, 200)


def rare(episodes: int) -> World:
    """The target goes right as often as it likes, the logger next to never; otherwise they are alike."""
    model, law, _ = trained("gridworld-slip", 1)
    logger = 0.5 * law + 0.125
    logger[:, 3] = 0.0
    logger = (1.0 - RARE) * logger / logger.sum(axis=1, keepdims=True)
    logger[:, 3] = RARE
    return factored(f"rare, {episodes}", model, law, [logger], episodes, 100)


@lru_cache
def machines(n: int, episodes: int) -> World:
    """Loggers reboot what is down, each with favourites; the target has none."""
    model, generator = worlds.make("machines", n=n), np.random.default_rng(0)
    down = 1 - np.stack(list(model.factors.values()), 1)

    def preferring(care: float, favour: np.ndarray) -> np.ndarray:
        weight = np.concatenate([care * np.exp(favour) * down + 0.01, np.ones((len(down), 1))], axis=1)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    loggers = [preferring(care, 0.7 * generator.normal(size=n)) for care in (0.08, 0.12, 0.15, 0.2)]
    return factored(f"machines, {n}, {episodes}", model, preferring(0.15, np.zeros(n)), loggers, episodes, 100)


def lq(n_loggers: int, *, weak: bool = False) -> World:
    """Vectors; everything is Gaussian."""
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    loggers = [IDLE] if weak else linear_quadratic.loggers(n_loggers)
    bound = linear_quadratic.efficiency_bound(system, target, loggers, horizon=50).value
    return World(
        "lq-weak" if weak else f"lq, {n_loggers}",
        lambda seed: mixope.Logs.from_arrays(**continuous.simulate(system, loggers, 20, 50, seed=seed)),
        target,
        linear_quadratic.average(system, target),
        bound / (20 * 50),
    )
