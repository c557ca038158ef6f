"""Features that need no landmarks: coordinates, squares and products; and two maps side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.features.protocol import FittedMap
from mixope.features.standard import units_of


@dataclass(frozen=True)
class Quadratic:
    """φ(s): standardised coordinates, their squares and (up to 15 coordinates) products."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedQuadratic:
        """Centre, scale and range of every coordinate."""
        centre, scale, low, high = units_of(observations)
        return FittedQuadratic(
            centre, scale, np.maximum(observations.min(axis=0), low), np.minimum(observations.max(axis=0), high)
        )


@dataclass(frozen=True)
class FittedQuadratic:
    """Coordinates are held to the range of the sample: beyond it, a quadratic knows nothing."""

    centre: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def size(self) -> int:
        """d + d(d + 1)/2, or 2d without products."""
        return len(self.centre) + len(self._pairs()[0])

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        z = (np.clip(observations, self.low, self.high) - self.centre) / self.scale
        left, right = self._pairs()
        return np.concatenate([z, z[:, left] * z[:, right]], axis=1)

    def _pairs(self) -> tuple[AnyArray, AnyArray]:
        d = len(self.centre)
        return np.triu_indices(d) if d <= 15 else (np.arange(d), np.arange(d))


@dataclass(frozen=True)
class FittedJoined:
    """Two fitted maps side by side."""

    first: FittedMap
    second: FittedMap

    @property
    def size(self) -> int:
        """Of both."""
        return self.first.size + self.second.size

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        return np.concatenate([self.first.transform(observations), self.second.transform(observations)], axis=1)
