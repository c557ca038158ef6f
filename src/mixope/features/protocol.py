"""What a feature map is: fitted once on a sample of states, then applied to batches, on NumPy and JAX arrays alike."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from mixope.arrays import AnyArray, FloatArray


@runtime_checkable
class FeatureMap(Protocol):
    """φ: states (n, d) → numbers (n, size). Configuration in the constructor; ``fit`` gives a fitted map back."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedMap:
        """Choose whatever the map takes from the data."""
        ...


@runtime_checkable
class FittedMap(Protocol):
    """A feature map that is ready."""

    @property
    def size(self) -> int:
        """How many features."""
        ...

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row, in the array library of the argument."""
        ...


def namespace(array: Any) -> Any:
    """The array library of an array: NumPy, or JAX's NumPy for JAX arrays."""
    if isinstance(array, np.ndarray):
        return np
    return array.__array_namespace__()
