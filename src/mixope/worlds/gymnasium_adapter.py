"""Every model as a Gymnasium environment: ``mixope/Taxi-v0``, ``mixope/Gridworld-v0``, ``mixope/GridworldSlip-v0`` …

Importing this module registers them, so Gymnasium finds them by itself in the form

    gymnasium.make("mixope.worlds.gymnasium_adapter:mixope/Taxi-v0", pickup_bonus=True)

Observations and actions are ids. Continuing environments never end; pass ``max_episode_steps`` to cut episodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixope.base.errors import MissingExtra, UsageError
from mixope.worlds import BUILDERS, make
from mixope.worlds.model import Model
from mixope.worlds.simulation import laws, transition_laws

try:
    import gymnasium
except ImportError as error:
    raise MissingExtra("gym", "stepping through environments with Gymnasium") from error


class ModelEnv(gymnasium.Env):  # type: ignore[misc]  # Gymnasium is an optional, untyped import here
    """One model, one step at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.observation_space = gymnasium.spaces.Discrete(model.n_states)
        self.action_space = gymnasium.spaces.Discrete(model.n_actions)
        self._moving = transition_laws(model)
        self._starting = laws(model.start, np.array([0, model.n_states]))
        self._state: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """A state drawn from the start law."""
        super().reset(seed=seed)
        self._state = int(self._starting.draw(np.zeros(1, dtype=np.int64), self.np_random.random(1))[0])
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One transition of the model; ``truncated`` is always false."""
        if self._state is None:
            raise UsageError("expected reset() before the first step()")
        if not self.action_space.contains(action):
            raise UsageError(f"expected an action from 0 to {self.model.n_actions - 1}, got {action!r}")
        row = np.array([self._state * self.model.n_actions + int(action)])
        entry = int(self._moving.draw(row, self.np_random.random(1))[0])
        self._state = int(self.model.transition.indices[entry])
        return self._state, float(self.model.reward[entry]), bool(self.model.terminated[entry]), False, {}


def environment_id(name: str) -> str:
    """The Gymnasium id of a registered environment: ``gridworld-slip`` is ``mixope/GridworldSlip-v0``."""
    return f"mixope/{name.title().replace('-', '')}-v0"


def build(name: str, **options: Any) -> ModelEnv:
    """The environment of that name, for Gymnasium."""
    return ModelEnv(make(name, **options))


def register() -> None:
    """Make all environments known to Gymnasium; again is no harm."""
    for name in BUILDERS:
        if environment_id(name) not in gymnasium.registry:
            gymnasium.register(environment_id(name), entry_point=f"{__name__}:build", kwargs={"name": name})


register()
