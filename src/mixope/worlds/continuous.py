"""Environments with vector states: their protocol, logs from them, and truth by long simulation.

All chains of all loggers advance together, one step at a time, as in :mod:`~mixope.worlds.simulation`; the
columns are the canonical ones of a log. Actions are vectors, or ids where policies are discrete. An episode is
terminated where the environment says so, and cut (``truncated``) after ``horizon`` steps; without a horizon it is
logged to its end.

Truth comes with its standard error, the chains being independent: with x_i the mean reward of chain i after a burn-in
(or its discounted sum), the answer is x̄ ± sd(x)/√chains. What an end means is up to the estimand: chains start again
(average), or earn nothing from there on (all others).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log
from typing import NamedTuple, Protocol

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.policies.protocol import ContinuousPolicy, DiscretePolicy, Policy
from mixope.worlds.simulation import Columns, logger_names, share_episodes, truncated

MOST_STEPS = 20_000
"""After so many, an episode is taken not to end."""


class ContinuousEnvironment(Protocol):
    """A process on vectors, many chains at a time; states are rows."""

    @property
    def name(self) -> str:
        """What the environment is called in errors."""
        ...

    def start(self, chains: int, generator: np.random.Generator) -> FloatArray:
        """Draws from the start law μ₀, shape (chains, k)."""
        ...

    def observe(self, states: FloatArray) -> FloatArray:
        """What a policy sees of the states, shape (chains, d)."""
        ...

    def step(
        self, states: FloatArray, actions: AnyArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """The next states (chains, k) and the rewards (chains,)."""
        ...

    def ended(self, states: FloatArray) -> BoolArray:
        """Whether arrival in these states ends an episode, shape (chains,)."""
        ...


class Truth(NamedTuple):
    """A simulated value and its standard error."""

    value: float
    standard_error: float


def simulate(
    environment: ContinuousEnvironment,
    policies: Sequence[Policy],
    episodes: int,
    horizon: int | None = None,
    *,
    seed: int,
) -> Columns:
    """Logs of ``episodes`` episodes in total, shared as evenly as can be among the policies, in blocks.

    Policy j is called ``logger-j``; where the shares are uneven the first policies get one episode more. Rows are
    ordered by episode, then step. ``action`` is what the policy drew, whatever the environment makes of it.
    """
    logger = share_episodes(len(policies), episodes, horizon)
    path = _walk(environment, policies, logger, horizon, np.random.default_rng(seed))
    rows = np.flatnonzero(path.lived)
    episode, step = np.divmod(rows, path.lived.shape[1])
    observation, action, reward, following = (
        part.reshape(path.lived.size, *part.shape[2:])[rows]
        for part in (path.observation, path.action, path.reward, path.following)
    )
    terminated = path.ended.ravel()[rows]
    blocks = _blocks(logger[episode], len(policies))
    return {
        "policy_id": logger_names(len(policies))[logger[episode]],
        "episode_id": episode,
        "step": step,
        "observation": observation,
        "action": action,
        "reward": reward,
        "next_observation": following,
        "terminated": terminated,
        "truncated": truncated(step, horizon) & ~terminated,
        "action_logp": np.concatenate(
            [policy.log_prob(observation[b], action[b]) for policy, b in zip(policies, blocks, strict=True)]
        ),
    }


class _ContinuousPath(NamedTuple):
    """What happened, each of shape (episodes, steps, …), whether it ended the episode, and whether it happened."""

    observation: FloatArray
    action: AnyArray
    reward: FloatArray
    following: FloatArray
    ended: BoolArray
    lived: BoolArray


def _walk(
    environment: ContinuousEnvironment,
    policies: Sequence[Policy],
    logger: IntArray,
    horizon: int | None,
    generator: np.random.Generator,
) -> _ContinuousPath:
    """All episodes together; those of policy j are a block."""
    states, alive = environment.start(len(logger), generator), np.ones(len(logger), dtype=bool)
    blocks, happened = _blocks(logger, len(policies)), list[tuple[AnyArray, ...]]()
    while len(happened) != horizon and alive.any():
        if len(happened) == MOST_STEPS and horizon is None:
            raise _endless(environment)
        seen = environment.observe(states)
        drawn = zip(policies, blocks, strict=True)
        action = np.concatenate([act(policy, seen[block], generator) for policy, block in drawn])
        states, reward = environment.step(states, action, generator)
        ended = environment.ended(states)
        happened.append((seen, action, reward, environment.observe(states), ended, alive))
        alive = alive & ~ended
    return _ContinuousPath(*(np.stack(part, axis=1) for part in zip(*happened, strict=True)))


def act(policy: Policy, seen: FloatArray, generator: np.random.Generator) -> AnyArray:
    """One action for every row: an id of a discrete policy, else a vector."""
    if isinstance(policy, DiscretePolicy):
        ladder = policy.probs(seen).cumsum(axis=1)[:, :-1]
        chosen: AnyArray = policy.actions[(ladder < generator.random((len(seen), 1))).sum(axis=1)]
        return chosen
    if isinstance(policy, ContinuousPolicy):
        return policy.sample(seen, generator)
    raise UsageError(f"expected a policy to draw actions from, with probs or sample, got {policy!r}")


def _blocks(logger: IntArray, loggers: int) -> list[slice]:
    """What belongs to policy j, of what is sorted by policy."""
    bounds = np.searchsorted(logger, np.arange(loggers + 1)).tolist()
    return [slice(bounds[j], bounds[j + 1]) for j in range(loggers)]


def value(environment: ContinuousEnvironment, policy: Policy, estimand: Estimand, *, chains: int, seed: int) -> Truth:
    """A value that starts from μ₀; the average needs a burn-in (:func:`average`)."""
    if estimand.kind == "average":
        raise UsageError("the long-run average needs a burn-in; ask for continuous.average")
    if estimand.horizon is not None:
        return horizon(environment, policy, estimand.horizon, chains=chains, seed=seed)
    found = episode(environment, policy, estimand.discount, chains=chains, seed=seed)
    return Truth(estimand.scale * found.value, estimand.scale * found.standard_error)


def average(
    environment: ContinuousEnvironment, policy: Policy, *, chains: int, steps: int, burn_in: int, seed: int
) -> Truth:
    """The average reward: the mean of ``steps`` steps after ``burn_in``, over chains from the start law.

    Chains that have ended start again from it.
    """
    if chains < 2 or steps < 1 or burn_in < 0:
        raise UsageError(
            "expected at least 2 chains, 1 step and a burn-in of at least 0,"
            f" got {chains} chains, {steps} steps and a burn-in of {burn_in}"
        )
    totals = np.zeros(chains)
    for t, reward in enumerate(_rewards(environment, policy, chains, burn_in + steps, seed, restarts=True)):
        if t >= burn_in:
            totals += reward
    return _truth(totals / steps)


def discounted(
    environment: ContinuousEnvironment, policy: Policy, gamma: float, *, chains: int, seed: int, tail: float = 1e-8
) -> Truth:
    """(1 − γ) Σ γᵗ r_t from the start law, cut where the weight γᵀ of all that follows is below ``tail``."""
    if chains < 2 or not 0 <= gamma < 1 or not 0 < tail < 1:
        raise UsageError(
            "expected at least 2 chains, a discount in [0, 1) and a tail in (0, 1),"
            f" got {chains} chains, a discount of {gamma} and a tail of {tail}"
        )
    steps = 1 if gamma == 0 else ceil(log(tail) / log(gamma))
    weights: FloatArray = (1 - gamma) * np.power(gamma, np.arange(steps), dtype=np.float64)
    return _summed(environment, policy, weights, chains, seed)


def horizon(environment: ContinuousEnvironment, policy: Policy, steps: int, *, chains: int, seed: int) -> Truth:
    """The mean reward of the first ``steps`` steps."""
    if chains < 2 or steps < 1:
        raise UsageError(f"expected at least 2 chains and 1 step, got {chains} chains and {steps} steps")
    return _summed(environment, policy, np.full(steps, 1 / steps), chains, seed)


def episode(environment: ContinuousEnvironment, policy: Policy, gamma: float = 1.0, *, chains: int, seed: int) -> Truth:
    """The total Σ γᵗ r_t of an episode; without a discount, all of ``chains`` episodes must come to an end."""
    if gamma < 1:
        found = discounted(environment, policy, gamma, chains=chains, seed=seed)
        return Truth(found.value / (1 - gamma), found.standard_error / (1 - gamma))
    if chains < 2:
        raise UsageError(f"expected at least 2 chains, got {chains}")
    return _summed(environment, policy, np.ones(MOST_STEPS), chains, seed, whole=True)


def _summed(
    environment: ContinuousEnvironment,
    policy: Policy,
    weights: FloatArray,
    chains: int,
    seed: int,
    *,
    whole: bool = False,
) -> Truth:
    """Σ w_t r_t; ``whole`` episodes must be over before the weights are."""
    totals, t = np.zeros(chains), -1
    for t, reward in enumerate(_rewards(environment, policy, chains, len(weights), seed)):
        totals += weights[t] * reward
    if whole and t == len(weights) - 1:
        raise _endless(environment)
    return _truth(totals)


def _rewards(
    environment: ContinuousEnvironment, policy: Policy, chains: int, steps: int, seed: int, *, restarts: bool = False
) -> Iterator[FloatArray]:
    """Step by step, 0 after an end, until all have ended; with ``restarts`` chains begin anew."""
    generator = np.random.default_rng(seed)
    states, alive = environment.start(chains, generator), np.ones(chains, dtype=bool)
    for _ in range(steps):
        actions = act(policy, environment.observe(states), generator)
        states, reward = environment.step(states, actions, generator)
        yield np.where(alive, reward, 0.0)
        ended = environment.ended(states)
        if not ended.any():
            continue
        if restarts:
            states = np.where(ended[:, None], environment.start(chains, generator), states)
        else:
            alive = alive & ~ended
            if not alive.any():
                return


def _endless(environment: ContinuousEnvironment) -> UsageError:
    return UsageError(
        f"on {environment.name} some episodes go on for more than {MOST_STEPS:,} steps;"
        " give a horizon for logs, or a discount for a value"
    )


def _truth(totals: FloatArray) -> Truth:
    return Truth(float(totals.mean()), float(totals.std(ddof=1) / np.sqrt(len(totals))))
