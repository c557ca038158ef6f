"""What a request for moments adds up, written down once: the processor and a device read the same terms.

Everything that moments are made of is φ of a row's state, or of the next one, crossed with a few numbers per row:

    FeatureColumns   φ(s) ⊗ f        f (n, k), k·size columns; several of them add up, as in  φ(s) ⊗ f − φ(s′) ⊗ g
    Hinge            max(1 + η·φ(s), 0)        one more factor of the row, where a ratio is calibrated
    Product          Σ left rightᵀ
    Square           Σ w x xᵀ
    ColumnSum        Σ columns,  or Σ φ² ⊗ f
    Cut              in how many rows a gate was below zero
    NumberSum        Σ of numbers that need no features

f and the numbers are made from the rows by policies and behaviours, on the processor; they are small. φ is large: NumPy
makes it slice by slice (:mod:`mixope.requests.processor`), a device where it is needed
(:mod:`mixope.requests.device_moments`). Columns of the next state count for nothing where an episode has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.features import FittedMap


@dataclass(frozen=True)
class Hinge:
    """max(1 + η·φ(s), 0) of every row."""

    features: FittedMap
    eta: FloatArray


@dataclass(frozen=True)
class FeatureColumns:
    """φ(s), or φ(s′) where ``following``, crossed with ``factor`` (n, k) or (n,); without one, as it is.

    Columns φ(s) ⊗ f that several requests share, by the same ``factor``, are ``kept`` while a slice is worked on.
    """

    features: FittedMap
    factor: AnyArray | None = None
    following: bool = False
    gate: Hinge | None = None
    kept: bool = False


@dataclass(frozen=True)
class Product:
    """Σ left rightᵀ over rows."""

    name: str
    left: tuple[FeatureColumns, ...]
    right: tuple[FeatureColumns, ...]
    by_fold: bool = True


@dataclass(frozen=True)
class Square:
    """Σ w x xᵀ over rows, x = φ ⊗ f.

    Where bumps sum to one, and c·f or Σ f is one for every row, some combination of x is one too. Whoever subtracts
    Σ w x (Σ w x)ᵀ / Σ w later finds it at zero, and rounded sums could leave it below. Squares are therefore made of x
    less a constant, ``centre`` ⊗ 1/size, whose combination is one as well.
    """

    name: str
    columns: FeatureColumns
    weight: AnyArray
    centre: tuple[float, ...] = (1.0,)
    by_fold: bool = True


@dataclass(frozen=True)
class ColumnSum:
    """Σ columns over rows; with ``squared``, of the squares of φ. ``stacked`` keeps the factors apart, (k, size)."""

    name: str
    columns: tuple[FeatureColumns, ...]
    by_fold: bool = True
    squared: bool = False
    stacked: bool = False


@dataclass(frozen=True)
class Cut:
    """Rows, among those ``where``, whose gate would be below zero."""

    name: str
    gate: Hinge
    where: BoolArray


@dataclass(frozen=True)
class NumberSum:
    """Σ values over rows; (n,) or, for several sums at once, (n, k)."""

    name: str
    values: AnyArray
    by_fold: bool = True


Term = Product | Square | ColumnSum | Cut | NumberSum


def sums_of(number: NumberSum, fold: AnyArray, folds: int) -> FloatArray:
    """Σ values by fold, in double precision."""
    values = np.asarray(number.values, dtype=np.float64)
    if not number.by_fold:
        fold = np.zeros_like(fold)
    member = (fold[:, None] == np.arange(folds)).astype(np.float64)
    return np.asarray(member.T @ values)
