"""Environments whose every step is known beforehand."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces

NUMBERS, CLASSES = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(3)


class Chance(gymnasium.Env):
    """Any observation, whatever is done. The reward counts the steps; even episodes end, odd ones are cut."""

    def __init__(self, observation_space=NUMBERS, action_space=CLASSES):
        self.observation_space, self.action_space = observation_space, action_space
        self.episode, self.time = -1, 0
        self.given = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.episode, self.time = self.episode + 1, 0
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        over, even = self.time == 2 + self.episode % 3, self.episode % 2 == 0
        return self._see(), 10.0 * self.episode + self.time, over and even, over and not even, {}

    def _see(self):
        self.given.append(self.observation_space.sample())
        return self.given[-1]


class Broken(Chance):
    """Fails in the middle of the third episode."""

    def step(self, action):
        if (self.episode, self.time) == (2, 1):
            raise RuntimeError("the robot fell over")
        return super().step(action)


def flat(value):
    """All that an observation or action holds."""
    if isinstance(value, dict):
        return [each for key in value for each in flat(value[key])]
    if isinstance(value, tuple):
        return [each for part in value for each in flat(part)]
    return np.ravel(value).tolist()
