"""The episode that is being recorded, step by step, and the episodes before it.

An episode that is not over when the recording stops, or when the environment is reset, was cut: its last step is
``truncated``, and has its next observation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixope.base.errors import DataError, UsageError
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.spaces import Key, Leaf
from mixope.logs.sources.steps import Spaces, columns_of
from mixope.recording.parts import EpisodeTables
from mixope.recording.shapes import OUTSIDE, stacked


class Recording:
    """What was seen, done and earned. One episode is open at a time; those that are over go to the parts."""

    def __init__(self, spaces: Spaces, parts: EpisodeTables, label: str | None, where: str) -> None:
        self.spaces, self.parts, self.label, self.where = spaces, parts, label, where
        self.episodes = self.steps = self.kept = 0
        self.open: Open | None = None
        self.closed = False

    def begin(self, observation: Any) -> None:
        """The first observation of an episode; one that is open was cut."""
        if self.closed:
            raise UsageError("the recording is closed; wrap the environment again, with a new folder")
        self.cut()
        self.open = Open(f"{self.where}, episode {self.episodes}", observation)

    def add(
        self, action: Any, reward: Any, observation: Any, terminated: Any, truncated: Any, logp: float | None
    ) -> None:
        """One step, and the observation after it."""
        if self.open is None:
            raise UsageError("expected reset() before step(): the last episode is over")
        self.open.add(action, reward, observation, bool(terminated), bool(truncated), logp)
        self.steps += 1
        if terminated or truncated:
            self._finish(self.open)

    def cut(self) -> None:
        """End the open episode where it is, if it has a step."""
        if self.open is not None and self.open.rewards:
            self.open.truncated[-1] = True
            self._finish(self.open)
        self.open = None

    def close(self) -> None:
        """Cut the open episode, and write what is not written."""
        self.cut()
        self.parts.flush()
        self.closed = True

    def _finish(self, episode: Open) -> None:
        self.open = None
        columns = columns_of(self.spaces, episode, self.episodes)
        columns |= episode.propensities(self.spaces)
        if self.label is not None:
            columns["policy_id"] = np.full(len(episode.rewards), self.label)
        self.parts.add(table_of_arrays(columns, episode.where))
        self.episodes += 1
        self.kept += len(episode.rewards)


class Open:
    """One episode; an :class:`~mixope.logs.sources.steps.Episode` once it is over."""

    remedy = OUTSIDE

    def __init__(self, where: str, observation: Any) -> None:
        self.where = where
        self.observations = [_kept(observation)]
        self.actions: list[Any] = []
        self.rewards: list[float] = []
        self.terminated: list[bool] = []
        self.truncated: list[bool] = []
        self.logps: list[float | None] = []

    def add(
        self, action: Any, reward: Any, observation: Any, terminated: bool, truncated: bool, logp: float | None
    ) -> None:
        """One step."""
        self.actions.append(_kept(action))
        self.rewards.append(_number(reward, self.where))
        self.observations.append(_kept(observation))
        self.terminated.append(terminated)
        self.truncated.append(truncated)
        self.logps.append(logp)

    def values(self, name: str, keys: Sequence[Key] = ()) -> Any:
        """An array by the name that Minari gives it."""
        flat = {"rewards": self.rewards, "terminations": self.terminated, "truncations": self.truncated}
        if name in flat:
            return np.asarray(flat[name])
        many = {"observations": self.observations, "actions": self.actions}.get(name)
        if many is None:
            return None
        try:
            return stacked(many, Leaf(tuple(keys), "numbers"))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(
                f"The {name} are not of the space of the environment",
                where=self.where,
                got=str(error),
                hint=self.remedy,
            ) from error

    def propensities(self, spaces: Spaces) -> dict[str, Any]:
        """The column of probabilities, or of log densities where actions are numbers; none where none was said."""
        if all(logp is None for logp in self.logps):
            return {}
        numbers = spaces.action[0].holds == "numbers"
        said = [None if logp is None else logp if numbers else math.exp(logp) for logp in self.logps]
        return {"action_logp" if numbers else "action_prob": np.array([np.nan if x is None else x for x in said])}


def _kept(value: Any) -> Any:
    """A copy of what an environment may write into again."""
    if isinstance(value, dict):
        return {name: _kept(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_kept(part) for part in value)
    return np.array(value) if isinstance(value, np.ndarray) else value


def _number(reward: Any, where: str) -> float:
    try:
        return float(np.asarray(reward).reshape(()))
    except (TypeError, ValueError) as error:
        raise DataError("A reward is not a number", where=where, got=repr(reward)[:80]) from error
