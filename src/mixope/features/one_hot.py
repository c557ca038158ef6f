"""One-hot features of distinct states: with them the feature estimators are the tabular ones.

States are numbered; a matrix of rows × states is made while it is small, and refused beyond that rather than built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, TupleIndex
from mixope.base.errors import DataError
from mixope.features.protocol import as_rows

#: A dense matrix has at most so many columns, and so many numbers in all (800 MB).
MOST_DENSE_STATES = 2_000
MOST_DENSE_NUMBERS = 100_000_000


def _columns(observations: AnyArray) -> AnyArray:
    """One row per state; objects as text, which can be sorted."""
    rows = np.asarray(as_rows(observations))
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        raise DataError("the state has values that are not finite", column="observation", expected="ids")
    if rows.dtype.kind not in "fiubUSO":
        got = f"an array of type {rows.dtype}"
        raise DataError("the states are no ids", column="observation", expected="numbers or text", got=got)
    return rows.astype(str) if rows.dtype.kind == "O" else rows


@dataclass(frozen=True)
class OneHot:
    """One feature per distinct state of the sample."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedOneHot:
        """Number the distinct states in the order of their columns."""
        return FittedOneHot(TupleIndex(list(_columns(observations).T)))


@dataclass(frozen=True)
class FittedOneHot:
    """The distinct states, numbered."""

    states: TupleIndex

    @property
    def size(self) -> int:
        """As many features as states."""
        return len(self.states.first)

    def columns(self, observations: AnyArray) -> IntArray:
        """The number of every row's state; −1 for a state that is not in the sample."""
        columns = _columns(observations)
        if columns.shape[1] != self.states.width:
            raise DataError(
                "the states have another shape", expected=f"{self.states.width} columns", got=f"{columns.shape[1]}"
            )
        return self.states.find(list(columns.T))

    def transform(self, observations: AnyArray) -> FloatArray:
        """A one in the column of the row's state."""
        n = len(observations)
        if self.size > MOST_DENSE_STATES or n * self.size > MOST_DENSE_NUMBERS:
            raise DataError(
                f"one-hot features of {self.size} states on {n} rows are too large as a dense matrix",
                expected=f"at most {MOST_DENSE_STATES} states and {MOST_DENSE_NUMBERS} numbers",
                hint="leave features out, so that ids are counted, or use fewer features such as NormalisedBumps",
            )
        result = np.zeros((n, self.size))
        result[np.arange(n), self._known(observations)] = 1.0
        return result

    def _known(self, observations: AnyArray) -> IntArray:
        column = self.columns(observations)
        if (column < 0).any():
            raise DataError(
                "one-hot features met a state that is not in the sample they were fitted on",
                column="observation",
                rows=np.flatnonzero(column < 0)[:5].tolist(),
            )
        return column
