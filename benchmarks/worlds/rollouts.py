"""Logs and truths of the worlds, by running Gymnasium's environments (extra ``bench``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks.worlds.policies import Linear

EPISODE_STEPS = {"CartPole-v1": 100, "MountainCarContinuous-v0": 200}
"""Steps after which a log's episode is truncated; 200 where nothing is said."""
TRUTH_STEPS = 1500


@cache
def environment(name: str) -> Any:
    """An environment that does not truncate by itself."""
    import gymnasium

    return gymnasium.make(name, max_episode_steps=10**9)


def episode(name: str, policy: Linear, generator: np.random.Generator, steps: int) -> dict[str, np.ndarray]:
    """One episode of at most so many steps, as columns."""
    world = environment(name)
    state, _ = world.reset(seed=int(generator.integers(2**31)))
    rows: list[tuple[Any, ...]] = []
    for _ in range(steps):
        action = policy.act(state, generator)
        executed = action if policy.discrete else np.clip(action, -policy.scale, policy.scale)
        following, reward, ended, _, _ = world.step(executed)
        rows.append((state.copy(), action, float(reward), following.copy(), bool(ended)))
        state = following
        if ended:
            break
    names = ("observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}


def log(name: str, loggers: Sequence[Linear], episodes: int, seed: int) -> dict[str, np.ndarray]:
    """The log of some loggers that take turns, as columns."""
    generator = np.random.default_rng([seed, 101])
    steps, parts = EPISODE_STEPS.get(name, 200), []
    for k in range(episodes):
        part = episode(name, loggers[k % len(loggers)], generator, steps)
        n = len(part["reward"])
        part |= {"episode_id": np.full(n, k), "step": np.arange(n), "policy_id": np.full(n, f"logger-{k % len(loggers)}")}
        part["truncated"] = (np.arange(n) == n - 1) & ~part["terminated"]
        parts.append(part)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def discounted(name: str, policy: Linear, episodes: int, gamma: float, seed: int) -> tuple[float, float]:
    """(1 − γ) E Σ γᵗ r by simulation, with its standard error; episodes are followed until γᵗ is nothing."""
    generator = np.random.default_rng([seed, 202])
    steps = min(TRUTH_STEPS, int(np.ceil(np.log(1e-4) / np.log(gamma))))
    found = []
    for _ in range(episodes):
        reward = episode(name, policy, generator, steps)["reward"]
        found.append((1 - gamma) * float(gamma ** np.arange(len(reward)) @ reward))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(episodes))
