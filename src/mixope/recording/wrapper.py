"""The wrapper itself; only this file needs Gymnasium."""

from __future__ import annotations

import math
import os
import weakref
from typing import Any

import gymnasium

from mixope.base.errors import UsageError
from mixope.recording.episodes import Recording
from mixope.recording.parts import EpisodeTables
from mixope.recording.shapes import name_of, spaces_of


class Recorder(gymnasium.Wrapper):  # type: ignore[misc]  # Gymnasium is an optional, untyped import here
    """An environment that writes a log; see :func:`mixope.recorder`."""

    def __init__(self, env: Any, path: str | os.PathLike[str], *, label: str | None = None) -> None:
        spaces = spaces_of(env)
        super().__init__(env)
        self.recording = Recording(spaces, EpisodeTables(path), label, name_of(env))
        self._logp: float | None = None
        self._closing = weakref.finalize(self, self.recording.close)

    def probability(self, value: float | None = None, *, log: float | None = None) -> None:
        """Say how likely the action of the next step was; of real actions, its log density."""
        if (value is None) == (log is None):
            raise UsageError("say the probability of the next action, or its logarithm: probability(0.5) or log=-0.7")
        if value is not None and not 0.0 < value <= 1.0:
            raise UsageError(f"the probability of an action that was taken is above 0 and at most 1, got {value!r}")
        found = math.log(value) if value is not None else float(log or 0.0)
        if not math.isfinite(found) or (found > 0 and self.recording.spaces.action[0].holds != "numbers"):
            raise UsageError(f"the log-probability of an action that was taken is finite and at most 0, got {log!r}")
        self._logp = found

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the one before is cut if it was not over."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.recording.begin(observation)
        self._logp = None
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step of the environment, written down."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        logp, self._logp = self._logp, None
        self.recording.add(action, reward, observation, terminated, truncated, _told(info) if logp is None else logp)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Write what is not written, and close the environment."""
        self._closing()
        super().close()


def _told(info: Any) -> float | None:
    """The log-probability that the info of a step gives."""
    if info.get("action_logp") is not None:
        return float(info["action_logp"])
    told = info.get("action_prob")
    return math.log(told) if told is not None and told > 0 else None
