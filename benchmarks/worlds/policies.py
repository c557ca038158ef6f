"""The policies of the worlds: small and linear, so that their weights fit into a file of a few kilobytes.

    continuous   a ~ N(scale · tanh(K z + k), σ²), clipped to the box of the environment when it is executed
    discrete     softmax((K z + k)/temperature)

z is the state in the units that ``centre`` and ``unit`` give.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("policies.json")


@dataclass(frozen=True)
class Linear:
    """A policy that is linear in the state."""

    weights: np.ndarray
    offset: np.ndarray
    noise: float
    centre: np.ndarray
    unit: np.ndarray
    scale: float = 1.0
    discrete: bool = False

    def level(self, states: np.ndarray) -> np.ndarray:
        """Logits, or the mean of the action."""
        linear = (states - self.centre) / self.unit @ self.weights.T + self.offset
        return linear / self.noise if self.discrete else self.scale * np.tanh(linear)

    def probs(self, states: np.ndarray) -> np.ndarray:
        """π(·|s) of a discrete policy."""
        logits = self.level(states)
        heights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(heights / heights.sum(axis=1, keepdims=True))

    def act(self, state: np.ndarray, generator: np.random.Generator) -> Any:
        """One action."""
        if self.discrete:
            return int(np.searchsorted(np.cumsum(self.probs(state[None])[0]), generator.random()))
        mean = self.level(state[None])[0]
        return mean + self.noise * generator.standard_normal(len(mean))

    def mixope(self) -> Any:
        """As a target of the library."""
        import mixope

        if self.discrete:
            return mixope.CallablePolicy(self.probs, actions=np.arange(len(self.offset)))
        sigma = np.full(len(self.offset), self.noise)
        return mixope.GaussianPolicy(self.level, sigma, low=-self.scale, high=self.scale)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, five digits."""
        return {
            "weights": np.round(self.weights, 5).tolist(),
            "offset": np.round(self.offset, 5).tolist(),
            "noise": self.noise,
        }


def stored() -> dict[str, Any]:
    """What was found, by the name of the world."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def read(world: dict[str, Any], policy: dict[str, Any]) -> Linear:
    """A policy of a world."""
    return Linear(
        np.array(policy["weights"]),
        np.array(policy["offset"]),
        policy["noise"],
        np.array(world["centre"]),
        np.array(world["unit"]),
        world["scale"],
        world["discrete"],
    )
