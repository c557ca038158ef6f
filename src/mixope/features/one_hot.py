"""One-hot features of distinct states: with them the feature estimators are the tabular ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import DataError


def _rows(observations: AnyArray) -> AnyArray:
    """One row a state; objects as text, which can be sorted."""
    rows = np.asarray(observations).reshape(len(observations), -1)
    return rows.astype(str) if rows.dtype.kind == "O" else rows


@dataclass(frozen=True)
class OneHot:
    """One feature a distinct state of the sample."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedOneHot:
        """Number the distinct states."""
        return FittedOneHot(np.unique(_rows(observations), axis=0))


@dataclass(frozen=True)
class FittedOneHot:
    """The distinct states, in order."""

    states: AnyArray

    @property
    def size(self) -> int:
        """As many features as states."""
        return len(self.states)

    def transform(self, observations: AnyArray) -> FloatArray:
        """A one in the column of the row's state."""
        rows = _rows(observations)
        _, inverse = np.unique(np.concatenate([self.states, rows]), axis=0, return_inverse=True)
        number = np.full(int(inverse.max()) + 1, -1)
        number[inverse[: self.size]] = np.arange(self.size)
        column = number[inverse[self.size :]]
        if (column < 0).any():
            raise DataError(
                "one-hot features met a state that is not in the sample they were fitted on",
                column="observation",
                rows=np.flatnonzero(column < 0)[:5].tolist(),
            )
        return np.asarray(np.eye(self.size)[column])
