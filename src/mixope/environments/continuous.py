"""Environments with vector states and actions: their protocol, logs from them, and truth by long simulation.

All chains of all loggers advance together, one step at a time, as in :mod:`~mixope.environments.simulation`; the
columns are the canonical ones of a log. Episodes never end by themselves and are cut (``truncated``) after ``horizon``
steps.

Truth comes with its standard error, the chains being independent: with x_i the mean reward of chain i after a burn-in
(or its discounted sum), the answer is x̄ ± sd(x)/√chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, log
from typing import NamedTuple, Protocol

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.environments.simulation import Columns, logger_names, share_episodes
from mixope.errors import UsageError
from mixope.policies.protocol import ContinuousPolicy


class ContinuousEnvironment(Protocol):
    """A continuing process on vectors, many chains at a time; states are rows."""

    @property
    def name(self) -> str:
        """What the environment is called in errors."""
        ...

    @property
    def action_size(self) -> int:
        """The number of components of an action."""
        ...

    def start(self, chains: int, generator: np.random.Generator) -> FloatArray:
        """Draws from the start law μ₀, shape (chains, k)."""
        ...

    def observe(self, states: FloatArray) -> FloatArray:
        """What a policy sees of the states, shape (chains, d)."""
        ...

    def step(
        self, states: FloatArray, actions: FloatArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """The next states (chains, k) and the rewards (chains,)."""
        ...


class Truth(NamedTuple):
    """A simulated value and its standard error."""

    value: float
    standard_error: float


def simulate(
    environment: ContinuousEnvironment, policies: Sequence[ContinuousPolicy], episodes: int, horizon: int, *, seed: int
) -> Columns:
    """Logs of ``episodes`` episodes in total, shared as evenly as can be among the policies, in blocks.

    Policy j is called ``logger-j``; where the shares are uneven the first policies get one episode more. Rows are
    ordered by episode, then step. ``action`` is what the policy drew, whatever the environment makes of it.
    """
    logger = share_episodes(len(policies), episodes, horizon)
    bounds = np.searchsorted(logger, np.arange(len(policies) + 1))
    path = _walk(environment, policies, bounds, horizon, np.random.default_rng(seed))
    rows, blocks = episodes * horizon, _blocks(bounds * horizon)
    step = np.tile(np.arange(horizon), episodes)
    observation, action = path.observation[:, :-1].reshape(rows, -1), path.action.reshape(rows, -1)
    return {
        "policy_id": np.repeat(logger_names(len(policies))[logger], horizon),
        "episode_id": np.repeat(np.arange(episodes), horizon),
        "step": step,
        "observation": observation,
        "action": action,
        "reward": path.reward.ravel(),
        "next_observation": path.observation[:, 1:].reshape(rows, -1),
        "terminated": np.zeros(rows, dtype=bool),
        "truncated": step == horizon - 1,
        "action_logp": np.concatenate(
            [policy.log_prob(observation[b], action[b]) for policy, b in zip(policies, blocks, strict=True)]
        ),
    }


class _Path(NamedTuple):
    """What happened: observations (episodes, horizon + 1, d), actions (episodes, horizon, ·), rewards."""

    observation: FloatArray
    action: FloatArray
    reward: FloatArray


def _walk(
    environment: ContinuousEnvironment,
    policies: Sequence[ContinuousPolicy],
    bounds: IntArray,
    horizon: int,
    generator: np.random.Generator,
) -> _Path:
    """All episodes together; those from bounds[j] to bounds[j + 1] are policy j's."""
    episodes = int(bounds[-1])
    states = environment.start(episodes, generator)
    seen = environment.observe(states)
    observation = np.empty((episodes, horizon + 1, seen.shape[1]))
    action, reward = np.empty((episodes, horizon, environment.action_size)), np.empty((episodes, horizon))
    for t in range(horizon):
        observation[:, t] = seen
        for policy, block in zip(policies, _blocks(bounds), strict=True):
            action[block, t] = policy.sample(seen[block], generator)
        states, reward[:, t] = environment.step(states, action[:, t], generator)
        seen = environment.observe(states)
    observation[:, horizon] = seen
    return _Path(observation, action, reward)


def _blocks(bounds: IntArray) -> list[slice]:
    """The rows of policy j are those from bounds[j] to bounds[j + 1]."""
    return [slice(first, last) for first, last in pairwise(bounds.tolist())]


def average(
    environment: ContinuousEnvironment, policy: ContinuousPolicy, *, chains: int, steps: int, burn_in: int, seed: int
) -> Truth:
    """The average reward: the mean of ``steps`` steps after ``burn_in``, over chains from the start law."""
    if chains < 2 or steps < 1 or burn_in < 0:
        raise UsageError(
            "expected at least 2 chains, 1 step and a burn-in of at least 0,"
            f" got {chains} chains, {steps} steps and a burn-in of {burn_in}"
        )
    totals = np.zeros(chains)
    for t, reward in enumerate(_rewards(environment, policy, chains, burn_in + steps, seed)):
        if t >= burn_in:
            totals += reward
    return _truth(totals / steps)


def discounted(
    environment: ContinuousEnvironment,
    policy: ContinuousPolicy,
    gamma: float,
    *,
    chains: int,
    seed: int,
    tail: float = 1e-8,
) -> Truth:
    """(1 − γ) Σ γᵗ r_t from the start law, cut where the weight γᵀ of all that follows is below ``tail``."""
    if chains < 2 or not 0 <= gamma < 1 or not 0 < tail < 1:
        raise UsageError(
            "expected at least 2 chains, a discount in [0, 1) and a tail in (0, 1),"
            f" got {chains} chains, a discount of {gamma} and a tail of {tail}"
        )
    steps = 1 if gamma == 0 else ceil(log(tail) / log(gamma))
    totals = np.zeros(chains)
    for t, reward in enumerate(_rewards(environment, policy, chains, steps, seed)):
        totals += (1 - gamma) * gamma**t * reward
    return _truth(totals)


def _rewards(
    environment: ContinuousEnvironment, policy: ContinuousPolicy, chains: int, steps: int, seed: int
) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    states = environment.start(chains, generator)
    for _ in range(steps):
        actions = policy.sample(environment.observe(states), generator)
        states, reward = environment.step(states, actions, generator)
        yield reward


def _truth(totals: FloatArray) -> Truth:
    return Truth(float(totals.mean()), float(totals.std(ddof=1) / np.sqrt(len(totals))))
