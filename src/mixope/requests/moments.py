"""Moments: named arrays that add up over rows. A commutative monoid: merging adds, the neutral element is empty.

Everything that a feature estimator needs of the logs is such a sum, most of it matrix products that are kept by fold of
the episodes. While a fragment is worked on they are added to in place, slice after slice of one fold each; totals are
float64, the products themselves may be made in float32, which runs twice as fast.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, square
from mixope.base.errors import UsageError
from mixope.features import FittedMap
from mixope.requests.processor import add_terms
from mixope.requests.request import Batch, SlicedRequest
from mixope.requests.rows import FOLDS, Rows
from mixope.requests.terms import Term


@dataclass
class Moments:
    """Sums over ``n_rows`` rows; ``belongs_to`` names the request behind them."""

    arrays: dict[str, FloatArray] = field(default_factory=dict)
    n_rows: int = 0
    belongs_to: str = ""

    def __getitem__(self, name: str) -> FloatArray:
        return self.arrays[name]

    def merge(self, other: Moments) -> Moments:
        """Add arrays of the same name, in float64; neither side is changed."""
        if self.n_rows == 0 or other.n_rows == 0:
            return self if other.n_rows == 0 else other
        if self.belongs_to != other.belongs_to or self.arrays.keys() != other.arrays.keys():
            raise UsageError("these moments belong to different features, targets or behaviours and cannot be merged")
        added = {name: _wide(self.arrays[name]) + _wide(other.arrays[name]) for name in self.arrays}
        return Moments(added, self.n_rows + other.n_rows, self.belongs_to)

    @property
    def not_finite(self) -> list[str]:
        """The arrays that hold something that is not a number."""
        return [name for name, array in self.arrays.items() if not np.isfinite(array).all()]

    def add_product(self, name: str, fold: int, left: AnyArray, right: AnyArray) -> None:
        """Σ left rightᵀ over the rows of one fold."""
        self._by_fold(name, (left.shape[1], right.shape[1]))[fold] += left.T @ right

    def add_square(self, name: str, fold: int, left: AnyArray) -> None:
        """Σ left leftᵀ over the rows of one fold."""
        self._by_fold(name, (left.shape[1], left.shape[1]))[fold] += square(left)

    def add(self, name: str, fold: int, values: AnyArray | float) -> None:
        """Any other sum over the rows of one fold."""
        made = np.asarray(values, dtype=np.float64)
        self._by_fold(name, made.shape)[fold] += made

    def _by_fold(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        if name not in self.arrays:
            self.arrays[name] = np.zeros((FOLDS, *shape))
        return self.arrays[name]


def _wide(array: FloatArray) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


class MomentRequest(SlicedRequest):
    """A request for moments: subclasses say in terms what some rows add; the processor and a device add it up."""

    @property
    @abstractmethod
    def maps(self) -> tuple[FittedMap, ...]:
        """The feature maps in its terms."""

    @abstractmethod
    def terms(self, rows: Rows) -> tuple[Term, ...]:
        """What some rows add; the same arrays in the same places for all rows of some logs."""

    def add(self, total: Moments | None, batch: Batch) -> Moments:
        """The total with one slice added, in place."""
        total = total or Moments(belongs_to=type(self).__name__)
        if len(batch):
            self.accumulate(total, batch.rows, batch.fold)
        total.n_rows += len(batch)
        return total

    def accumulate(self, total: Moments, rows: Rows, fold: int) -> None:
        """Add what the rows of one fold are worth, on the processor."""
        add_terms(total, self.terms(rows), rows, fold)
