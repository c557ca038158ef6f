"""One-hot features of distinct states: with them the feature estimators are the tabular ones.

A one-hot matrix is held sparse, one number per row. Estimators that multiply dense features get a dense one while it is
small; a matrix of rows × states beyond that is refused rather than built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.arrays import AnyArray, FloatArray, IntArray
from mixope.errors import DataError

#: A dense matrix has at most so many columns, and so many numbers in all (800 MB).
MOST_DENSE_STATES = 2_000
MOST_DENSE_NUMBERS = 100_000_000


def positions(values: AnyArray, known: AnyArray) -> IntArray:
    """The position of every value among the sorted known ones; −1 where it is none of them."""
    if len(known) == 0 or (values.dtype.kind == "U") != (known.dtype.kind == "U"):
        return np.full(len(values), -1, dtype=np.int64)
    position = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[position] == values, position, -1).astype(np.int64)


def _columns(observations: AnyArray) -> AnyArray:
    """One row per state; objects as text, which can be sorted."""
    rows = np.asarray(observations).reshape(len(observations), -1)
    return rows.astype(str) if rows.dtype.kind == "O" else rows


@dataclass(frozen=True)
class OneHot:
    """One feature per distinct state of the sample."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedOneHot:
        """Number the distinct states in the order of their columns."""
        columns = _columns(observations)
        levels, prefixes = [], []
        code = np.zeros(len(columns), dtype=np.int64)
        for column in columns.T:
            values, inverse = np.unique(column, return_inverse=True)
            prefix, code = np.unique(code * len(values) + inverse, return_inverse=True)
            levels.append(values)
            prefixes.append(prefix)
        return FittedOneHot(tuple(levels), tuple(prefixes))


@dataclass(frozen=True)
class FittedOneHot:
    """The distinct states: the sorted levels of every column, and which combinations of the first columns occur."""

    levels: tuple[AnyArray, ...]
    prefixes: tuple[IntArray, ...]

    @property
    def size(self) -> int:
        """As many features as states."""
        return len(self.prefixes[-1])

    def columns(self, observations: AnyArray) -> IntArray:
        """The number of every row's state; −1 for a state that is not in the sample."""
        columns = _columns(observations)
        if columns.shape[1] != len(self.levels):
            raise DataError(
                "the states have another shape", expected=f"{len(self.levels)} columns", got=f"{columns.shape[1]}"
            )
        code = np.zeros(len(columns), dtype=np.int64)
        for column, values, prefix in zip(columns.T, self.levels, self.prefixes, strict=True):
            level = positions(column, values)
            code = np.where((code < 0) | (level < 0), -1, positions(code * len(values) + level, prefix))
        return code

    def transform(self, observations: AnyArray) -> FloatArray:
        """A one in the column of the row's state, dense."""
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

    def transform_sparse(self, observations: AnyArray) -> sparse.csr_array:
        """The same with one number per row, for any number of states."""
        n = len(observations)
        return sparse.csr_array((np.ones(n), self._known(observations), np.arange(n + 1)), shape=(n, self.size))

    def _known(self, observations: AnyArray) -> IntArray:
        column = self.columns(observations)
        if (column < 0).any():
            raise DataError(
                "one-hot features met a state that is not in the sample they were fitted on",
                column="observation",
                rows=np.flatnonzero(column < 0)[:5].tolist(),
            )
        return column
