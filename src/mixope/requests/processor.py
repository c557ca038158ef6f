"""Moments on the processor: the terms of a request (:mod:`mixope.requests.terms`) read by NumPy, slice after slice.

Features of a slice are made once for all requests. Products take the rows that count for something alone: what is asked
of every logger by itself costs as much as what is asked of all together. Sums of columns need no columns: those of all
terms are one product of their factors with φ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.features import FittedMap
from mixope.requests.rows import Rows
from mixope.requests.terms import ColumnSum, Cut, FeatureColumns, Hinge, NumberSum, Product, Square, Term

if TYPE_CHECKING:
    from mixope.requests.moments import Moments

MOST_IDLE = 0.1
"""The share of rows that count for nothing above which products leave them out: they have to be copied for it."""


def phi_of(features: FittedMap, rows: Rows, following: bool = False) -> FloatArray:
    """φ(s) or φ(s′) of every row, computed once per batch."""
    at = "next_observation" if following else "observation"
    return rows.once(at, features, lambda: features.transform(getattr(rows, at)))


def scaled(phi: FloatArray, factor: FloatArray) -> FloatArray:
    """Every row times its factor, in the precision of the features."""
    return np.asarray(phi * factor.astype(phi.dtype)[:, None])


def cross(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product of every column of one with every column of the other, row by row."""
    right = right.astype(left.dtype, copy=False)
    return np.asarray((left[:, None, :] * right[:, :, None]).reshape(len(left), left.shape[1] * right.shape[1]))


def crossed(columns: FeatureColumns, rows: Rows) -> FloatArray:
    """φ(s) ⊗ f of columns that are kept, made once per batch."""
    factor = columns.factor
    assert factor is not None
    what = ("crossed", id(columns.features))
    return rows.once(what, factor, lambda: cross(phi_of(columns.features, rows), factor))


def add_terms(total: Moments, terms: Sequence[Term], rows: Rows, fold: int) -> None:
    """What rows of one fold add to some moments, in place."""
    columns, sums = RowColumns(rows), list[ColumnSum]()
    for term in terms:
        match term:
            case Product(name, left, right, by_fold):
                total.add_product(name, fold if by_fold else 0, *columns.sides(left, right))
            case Square(name, side, weight, _, by_fold):
                total.add_square(name, fold if by_fold else 0, columns.rooted(side, np.asarray(weight)))
            case ColumnSum():
                sums.append(term)
            case Cut(name, gate, where):
                total.add(name, fold, float((where & (columns.gate(gate) < 0)).sum()))
            case NumberSum(name, values, by_fold):
                total.add(name, fold if by_fold else 0, np.sum(values, axis=0, dtype=np.float64))
    for each, found in zip(sums, columns.totals(sums), strict=True):
        total.add(each.name, fold if each.by_fold else 0, found if each.stacked else found.ravel())


@dataclass(frozen=True)
class RowColumns:
    """The columns of terms, for some rows."""

    rows: Rows

    def sides(self, left: Sequence[FeatureColumns], right: Sequence[FeatureColumns]) -> tuple[FloatArray, FloatArray]:
        """Both sides of a product, in the rows that count for something in both."""
        mine = _unless_most(self._alive(left) & self._alive(right))
        return self._summed(left, mine), self._summed(right, mine)

    def rooted(self, columns: FeatureColumns, weight: FloatArray) -> FloatArray:
        """Columns times the roots of their weights."""
        mine = _unless_most(weight != 0)
        made, _ = self._made(columns, mine)
        weight = weight if mine is None else weight[mine]
        return made if (weight == 1).all() else scaled(made, np.sqrt(weight))

    def totals(self, sums: Sequence[ColumnSum]) -> list[FloatArray]:
        """Σ φ ⊗ f of each, (k, size)."""
        found: list[FloatArray | float] = [0.0] * len(sums)
        alike: dict[tuple[int, bool, bool], list[tuple[int, FeatureColumns]]] = {}
        for number, term in enumerate(sums):
            for each in term.columns:
                alike.setdefault((id(each.features), each.following, term.squared), []).append((number, each))
        for (_, following, squared), members in alike.items():
            phi = phi_of(members[0][1].features, self.rows, following)
            factors = [self._table(each) for _, each in members]
            made = np.concatenate(factors).astype(phi.dtype) @ (phi**2 if squared else phi)
            parts = np.split(made, np.cumsum([len(factor) for factor in factors])[:-1])
            for (number, _), part in zip(members, parts, strict=True):
                found[number] = found[number] + part
        return [np.asarray(each) for each in found]

    def gate(self, gate: Hinge) -> FloatArray:
        """1 + η·φ(s)."""
        what = ("gate", id(gate.features))
        return self.rows.once(what, gate.eta, lambda: np.asarray(1 + phi_of(gate.features, self.rows) @ gate.eta))

    def _factor(self, columns: FeatureColumns) -> AnyArray | None:
        """f, (n,) or (n, k); none where it is one throughout."""
        several = [] if columns.factor is None else [columns.factor]
        if columns.gate is not None:
            several.append(np.maximum(self.gate(columns.gate), 0.0))
        if columns.following and self.rows.terminated.any():
            several.append(~self.rows.terminated)
        if not several:
            return None
        factor, *others = several
        for other in others:
            factor = factor * (other if factor.ndim == 1 else other[:, None])
        return None if factor.ndim == 1 and (factor == 1).all() else factor

    def _table(self, columns: FeatureColumns) -> AnyArray:
        """f with one row per column, (k, n)."""
        factor = self._factor(columns)
        return np.ones((1, len(self.rows))) if factor is None else np.atleast_2d(factor.T)

    def _alive(self, side: Sequence[FeatureColumns]) -> BoolArray:
        """Rows in which any of these columns is not zero."""
        alive = np.zeros(len(self.rows), dtype=np.bool_)
        for each in side:
            alive |= (self._table(each) != 0).any(axis=0)
        return alive

    def _summed(self, side: Sequence[FeatureColumns], mine: BoolArray | None) -> FloatArray:
        made = sorted((self._made(each, mine) for each in side), key=lambda pair: not pair[1])
        total, owned = made[0]
        for other, _ in made[1:]:
            total = np.add(total, other, out=total if owned else None)
            owned = True
        return total

    def _made(self, columns: FeatureColumns, mine: BoolArray | None) -> tuple[FloatArray, bool]:
        """φ ⊗ f of some rows, and whether nobody else holds the array."""
        if columns.kept:
            phi, factor = crossed(columns, self.rows), None
        else:
            phi, factor = phi_of(columns.features, self.rows, columns.following), self._factor(columns)
        phi = phi if mine is None else phi[mine]
        if factor is None:
            return phi, mine is not None
        factor = factor if mine is None else factor[mine]
        return (scaled if factor.ndim == 1 else cross)(phi, factor), True


def _unless_most(alive: BoolArray) -> BoolArray | None:
    """The rows to take, unless nearly all are."""
    return None if np.count_nonzero(alive) >= (1 - MOST_IDLE) * len(alive) else alive
