"""Worlds drawn at random, and healthy logs of them: few and many states, weak and strong actions, ends, cuts, noise.

For calibrating checks: what is drawn includes what makes a check nervous, such as actions without any effect, loggers
that do not look at the state, states that hardly change, rare rewards, and loggers that nobody named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Columns = dict[str, np.ndarray]
MOST_ROWS = 12_000


@dataclass(frozen=True)
class World:
    """P(s′|s,a), the loggers' policies, the chance of an end, rewards by (s, a, s′) with noise, and the size."""

    moves: np.ndarray
    policies: np.ndarray
    ends: np.ndarray
    reward: np.ndarray
    noise: float
    law: str
    start: np.ndarray
    episodes: int
    horizon: int
    labelled: bool
    cuts: bool
    """Whether episodes are cut after lengths of their own."""


def draw(generator: np.random.Generator) -> World:
    """A world, its loggers and the size of its logs."""
    choose = generator.choice
    states, actions, loggers = int(choose([2, 3, 6, 20, 60])), int(choose([2, 3, 5])), int(choose([1, 2, 4]))
    effect, stays = choose([0, 0.1, 0.4, 1.0]), choose([0, 0.5, 0.9])
    common = generator.dirichlet(np.full(states, 0.5), size=(states, 1))
    own = generator.dirichlet(np.full(states, 0.3), size=(states, actions))
    moves = (1 - stays) * ((1 - effect) * common + effect * own) + stays * np.eye(states)[:, None, :]
    taste = choose([0, 0.2, 1.0, 3.0]) * generator.normal(size=(loggers, states, actions))
    odds = np.exp(taste + choose([0, 1.0]) * generator.normal(size=(loggers, 1, actions)))
    hazard = choose([0, 0.02, 0.15])
    some = np.where(generator.random((states, actions)) < 0.25, min(0.6, 4 * hazard), 0.0)
    shape = [(states, actions, states), (states, actions, 1), (states, 1, 1), (1, 1, states), (1, 1, 1)]
    reward = np.broadcast_to(generator.normal(size=shape[generator.integers(5)]), (states, actions, states))
    episodes, horizon = int(choose([20, 60, 200, 600])), int(choose([3, 8, 25, 80]))
    return World(
        moves=moves,
        policies=odds / odds.sum(axis=-1, keepdims=True),
        ends=some if generator.random() < 0.5 else np.full((states, actions), hazard),
        reward=(reward > 1).astype(float) if generator.random() < 0.3 else reward,
        noise=float(choose([0, 0, 0.3, 2.0])),
        law=str(choose(["normal", "exponential", "rare"])),
        start=generator.dirichlet(np.full(states, 0.5)),
        episodes=episodes,
        horizon=min(horizon, max(3, MOST_ROWS // episodes)),
        labelled=bool(generator.random() < 0.6),
        cuts=bool(generator.random() < 0.4),
    )


def simulate(world: World, generator: np.random.Generator) -> Columns:
    """Logs, in the order of their episodes and steps."""
    n = world.episodes
    logger = np.sort(np.arange(n) % len(world.policies))
    limit = generator.integers(1, world.horizon + 1, n) if world.cuts else np.full(n, world.horizon)
    state, alive, steps = pick(np.tile(world.start, (n, 1)), generator), np.ones(n, dtype=bool), []
    for step in range(world.horizon):
        action = pick(world.policies[logger, state], generator)
        after = pick(world.moves[state, action], generator)
        ended = generator.random(n) < world.ends[state, action]
        cut = (step == limit - 1) & ~ended
        reward = world.reward[state, action, after] + world.noise * _noise(world.law, n, generator)
        steps.append((np.arange(n), np.full(n, step), state, action, reward, after, ended, cut, logger, alive))
        alive, state = alive & ~ended & ~cut, after
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated")
    *values, who, lived = (np.stack(part, axis=1) for part in zip(*steps, strict=True))
    columns = {name: value[lived] for name, value in zip(names, values, strict=True)}
    return {**columns, "policy_id": np.char.add("logger-", who[lived].astype(str))} if world.labelled else columns


def pick(chances: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One of the columns for every row, by its chances."""
    drawn = (np.cumsum(chances, axis=1) < generator.random(len(chances))[:, None]).sum(axis=1)
    return np.minimum(drawn, chances.shape[1] - 1)


def _noise(law: str, n: int, generator: np.random.Generator) -> np.ndarray:
    if law == "normal":
        return generator.normal(size=n)
    return generator.exponential(size=n) - 1 if law == "exponential" else 3.0 * (generator.random(n) < 0.1)
