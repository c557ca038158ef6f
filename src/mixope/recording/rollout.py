"""``record``: a policy acts in an environment, and every step is a row with the probability of its action."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from mixope.base.arrays import AnyArray
from mixope.base.errors import MixopeError, MixopeWarning, UsageError
from mixope.logs import Logs, read
from mixope.policies import CallablePolicy, ContinuousPolicy, DiscretePolicy, Policy, read_policy
from mixope.policies.given import PolicySource
from mixope.policies.own_code import asking, running
from mixope.recording.episodes import Recording
from mixope.recording.given import Environment
from mixope.recording.parts import EpisodeTables
from mixope.recording.shapes import carried_out, name_of, seen, spaces_of


def record(
    env: Environment,
    policy: PolicySource,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    horizon: int | None = None,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    label: str | None = None,
) -> Logs:
    """Let a policy act in an environment, and give the log of it.

    :param env: an environment as Gymnasium has them; it is reset at the beginning and not closed at the end.
    :param policy: a policy, or anything that :func:`mixope.read_policy` takes. Actions are drawn from it.
    :param episodes: stop after so many episodes, or
    :param steps: after so many steps; the last episode is then cut, which its last row says (``truncated``).
    :param horizon: cut every episode after so many steps. Environments that never end need it, or ``steps``.
    :param seed: of the environment's first reset and of the draws from the policy.
    :param path: a new or empty folder for the log, as Parquet files; otherwise it is held in memory.
    :param label: the name of the logger; otherwise one made from the fingerprint of the policy.
    :returns: the log. If the recording is interrupted or fails, the steps before that are in ``path``.

    >>> import gymnasium
    >>> policy = mixope.read_policy(lambda states: [[0.3, 0.7]] * len(states), actions=[0, 1])
    >>> logs = mixope.record(gymnasium.make("CartPole-v1"), policy, steps=100)
    >>> logs.total_rows(), logs.schema.has_propensity
    (100, True)
    """
    limits = Limits.of(episodes, steps, horizon)
    actor = Actor.of(env, policy, seed)
    name = label or f"policy-{actor.policy.fingerprint()[:8]}"
    recording = Recording(actor.spaces, EpisodeTables(path), name, actor.where)
    with _kept_when_stopped(recording):
        _play(actor, recording, limits, seed)
    if recording.parts.folder is not None:
        return read(recording.parts.folder)
    return _held(recording)


def _held(recording: Recording) -> Logs:
    import pyarrow as pa

    return read(pa.concat_tables(recording.parts.tables))


class Limits(NamedTuple):
    """When to stop, and when to cut an episode."""

    episodes: int | None
    steps: int | None
    horizon: int | None

    @classmethod
    def of(cls, episodes: int | None, steps: int | None, horizon: int | None) -> Limits:
        """Whole numbers above 0; episodes or steps must be said."""
        found = cls(episodes, steps, horizon)
        for name, limit in found._asdict().items():
            whole = isinstance(limit, int | np.integer) and not isinstance(limit, bool)
            if limit is not None and (not whole or limit < 1):
                raise UsageError(f"{name} is a whole number above 0, got {limit!r}")
        if episodes is None and steps is None:
            raise UsageError("say how much to record: episodes=100 or steps=10000")
        return found

    def reached(self, recording: Recording) -> bool:
        """Whether enough is recorded."""
        enough = self.episodes is not None and recording.episodes >= self.episodes
        return enough or (self.steps is not None and recording.steps >= self.steps)


class Actor(NamedTuple):
    """A policy that acts in an environment."""

    env: Environment
    policy: Policy
    spaces: Any
    where: str
    generator: np.random.Generator

    @classmethod
    def of(cls, env: Environment, policy: PolicySource, seed: int) -> Actor:
        """Refuses what cannot be drawn from."""
        spaces, where, found = spaces_of(env), name_of(env), read_policy(policy)
        if (
            isinstance(found, CallablePolicy)
            and not isinstance(found, DiscretePolicy)
            and _is_counted(env.action_space)
        ):
            start = int(getattr(env.action_space, "start", 0))
            found = read_policy(policy, actions=range(start, start + int(env.action_space.n)))
        numbers = spaces.action[0].holds == "numbers"
        wanted: Any = ContinuousPolicy if numbers else DiscretePolicy
        if not isinstance(found, wanted):
            needs = "sample(observations, generator)" if numbers else "actions and probs(observations)"
            kind = "numbers" if numbers else "classes"
            said = f"the actions of the {where} are {kind}, so the policy must have {needs}"
            raise UsageError(f"{said}; a {type(found).__name__} has not")
        return cls(env, found, spaces, where, np.random.default_rng(seed))

    def choose(self, observation: Any) -> tuple[Any, float]:
        """An action and its log-probability, or log density."""
        states = seen(self.spaces, observation, self.where)
        with asking(self.policy):
            return self._draw(states)

    def _draw(self, states: AnyArray) -> tuple[Any, float]:
        if isinstance(self.policy, DiscretePolicy):
            law = self.policy.probs(states)[0]
            chosen = int(np.searchsorted(np.cumsum(law), self.generator.random() * law.sum(), side="right"))
            chosen = min(chosen, int(np.flatnonzero(law)[-1]))
            return self.policy.actions[chosen], float(np.log(law[chosen]))
        policy: Any = self.policy
        action = np.asarray(policy.sample(states, self.generator), dtype=np.float64).reshape(1, -1)
        return action[0], float(policy.log_prob(states, action)[0])


def _is_counted(space: Any) -> bool:
    """Whether the actions of a space are numbered: a function that does not name them has these."""
    return any(each.__name__ == "Discrete" for each in type(space).__mro__)


def _play(actor: Actor, recording: Recording, limits: Limits, seed: int) -> None:
    first: int | None = int(seed)
    while not limits.reached(recording):
        with running(f"reset() of the {actor.where}"):
            observation, _ = actor.env.reset(seed=first)
        first = None
        recording.begin(observation)
        taken = 0
        while recording.open is not None:
            action, logp = actor.choose(observation)
            done = carried_out(actor.env, actor.spaces, action, actor.where)
            with running(f"step() of the {actor.where}"):
                observation, reward, terminated, truncated, _ = actor.env.step(done)
            numbers = actor.spaces.action[0].holds == "numbers"
            taken += 1
            truncated = truncated or taken == limits.horizon
            recording.add(action if numbers else done, reward, observation, terminated, truncated, logp)
            if recording.open is not None and limits.steps is not None and recording.steps >= limits.steps:
                recording.cut()


@contextmanager
def _kept_when_stopped(recording: Recording) -> Iterator[None]:
    """Whatever stops the recording, the steps before it are written, and a warning says where they are."""
    try:
        yield
    except BaseException:
        with suppress(MixopeError):  # what the open episode holds may be what went wrong
            recording.cut()
        recording.close()
        if recording.parts.folder is not None and recording.kept:
            warnings.warn(
                f"the recording stopped early; its {recording.kept:,} steps ({recording.episodes:,} episodes, the last"
                f" one cut unless it was over) are in {recording.parts.folder}",
                MixopeWarning,
                stacklevel=4,
            )
        raise
    recording.close()
