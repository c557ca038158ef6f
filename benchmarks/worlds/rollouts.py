"""Logs and truths of the worlds, by running Gymnasium's environments (extra ``bench``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from benchmarks.worlds.policies import Linear

GAMMA = 0.99
EPISODE_STEPS = 200
"""Steps after which an episode of a log is truncated."""
NOTHING = 1e-4
"""The truth of a discounted value follows an episode until γᵗ is below this."""
BURN_IN = 500


@cache
def environment(name: str, **options: Any) -> Any:
    """An environment that does not truncate by itself."""
    import gymnasium

    return gymnasium.make(name, max_episode_steps=10**9, **options)


@dataclass(frozen=True)
class Law:
    """How an episode goes: in which environment, and whether it starts anew where it would end."""

    environment: str
    restarts: bool = False

    def make(self) -> Any:
        """The environment; one that restarts pays for the end alone."""
        return (
            environment(self.environment, sutton_barto_reward=True) if self.restarts else environment(self.environment)
        )

    def episode(self, policy: Linear, generator: np.random.Generator, steps: int) -> dict[str, np.ndarray]:
        """One episode of at most so many steps, as columns."""
        world = self.make()
        state, _ = world.reset(seed=int(generator.integers(2**31)))
        rows: list[tuple[Any, ...]] = []
        for _ in range(steps):
            action = policy.act(state, generator)
            executed = action if policy.discrete else np.clip(action, -policy.scale, policy.scale)
            following, reward, ended, _, _ = world.step(executed)
            if ended and self.restarts:
                following, _ = world.reset()
                ended = False
            rows.append((state.copy(), action, float(reward), following.copy(), bool(ended)))
            state = following
            if ended:
                break
        names = ("observation", "action", "reward", "next_observation", "terminated")
        return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def log(law: Law, loggers: Sequence[Linear], episodes: int, seed: int) -> dict[str, np.ndarray]:
    """The log of some loggers that take turns, as columns."""
    generator = np.random.default_rng([seed, episodes, 101])
    parts = []
    for k in range(episodes):
        part = law.episode(loggers[k % len(loggers)], generator, EPISODE_STEPS)
        n = len(part["reward"])
        part |= {"episode_id": np.full(n, k), "step": np.arange(n)}
        part["policy_id"] = np.full(n, f"logger-{k % len(loggers)}")
        part["truncated"] = (np.arange(n) == n - 1) & ~part["terminated"]
        parts.append(part)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def discounted(law: Law, policy: Linear, episodes: int, seed: int) -> tuple[float, float]:
    """(1 − γ) E Σ γᵗ r by simulation, with its standard error; episodes are followed until γᵗ is nothing."""
    generator = np.random.default_rng([seed, 202])
    steps = int(np.ceil(np.log(NOTHING) / np.log(GAMMA)))
    rewards = (law.episode(policy, generator, steps)["reward"] for _ in range(episodes))
    return _mean([(1 - GAMMA) * float(GAMMA ** np.arange(len(reward)) @ reward) for reward in rewards])


def average(law: Law, policy: Linear, episodes: int, seed: int) -> tuple[float, float]:
    """The reward per step in the long run, by long episodes that restart, with its standard error."""
    generator = np.random.default_rng([seed, 202])
    rewards = (law.episode(policy, generator, 10 * BURN_IN)["reward"] for _ in range(episodes))
    return _mean([float(reward[BURN_IN:].mean()) for reward in rewards])


def _mean(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
