"""What a feature map is: fitted once on a sample of states, then applied to batches, on NumPy and JAX arrays alike."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError


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


def as_rows(observations: Any, width: int | None = None) -> Any:
    """States as rows (n, d), in their own array library; (n,) is one column. ``width`` is the d that is expected."""
    if np.ma.isMaskedArray(observations) and np.ma.getmaskarray(observations).any():
        raise DataError("states are masked", column="observation", expected="a value for every state")
    foreign = hasattr(observations, "__array_namespace__") and not isinstance(observations, np.ndarray)
    try:
        array = observations if foreign else np.asarray(observations)
    except ValueError:
        raise DataError("the states have rows of different lengths", column="observation") from None
    rows = array[:, None] if array.ndim == 1 else array
    if rows.ndim != 2 or rows.shape[1] == 0 or width not in (None, rows.shape[1]):
        expected = f"(n, {'d' if width is None else width})"
        raise DataError("the states have another shape", column="observation", expected=expected, got=str(array.shape))
    return rows


def as_vectors(observations: Any, width: int | None = None) -> Any:
    """The same of numbers: NumPy's in single or double precision."""
    rows = as_rows(observations, width)
    if not isinstance(rows, np.ndarray) or rows.dtype in (np.float32, np.float64):
        return rows
    if rows.dtype.kind not in "fiub":
        raise DataError(
            "these features are made of numbers, and the states are none",
            column="observation",
            expected="numbers (n, d)",
            got=f"an array of type {rows.dtype}",
            hint="use OneHot() for ids, or leave features out so that they are counted",
        )
    with np.errstate(over="ignore"):
        return rows.astype(np.float64)


def namespace(array: Any) -> Any:
    """The array library of an array: NumPy, or JAX's NumPy for JAX arrays."""
    if isinstance(array, np.ndarray):
        return np
    return array.__array_namespace__()
