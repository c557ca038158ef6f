"""Terms of some rows, split in two: a plan, the same for all rows, which is compiled, and the numbers of the rows.

Factors that are the same array are sent once; a plan names them by their rows in one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.requests.rows import FOLDS
from mixope.requests.terms import ColumnSum, Cut, FeatureColumns, Hinge, NumberSum, Product, Square, Term, sums_of

Named = tuple[int, str]
"""The number of a request, and the name of one of its sums."""


class Side(NamedTuple):
    """φ of a map, crossed with some rows of the table of factors (or −1); ``gate`` is the number of one, or −1."""

    features: int
    following: bool
    first: int
    width: int
    gate: int


Sides = tuple[Side, ...]


class ProductPlan(NamedTuple):
    """Σ left rightᵀ."""

    left: Sides
    right: Sides
    by_fold: bool


class SquarePlan(NamedTuple):
    """Σ w (x − μ)(x − μ)ᵀ, and below it Σ w x; ``weight`` is a row of the table of factors."""

    side: Side
    weight: int
    centre: tuple[float, ...]
    by_fold: bool


class TotalPlan(NamedTuple):
    """Σ columns."""

    sides: Sides
    by_fold: bool
    squared: bool
    stacked: bool


class CutPlan(NamedTuple):
    """Rows whose gate is below zero, among those where a row of the table of factors is one."""

    gate: int
    where: int


SumPlan = ProductPlan | SquarePlan | TotalPlan | CutPlan


class DevicePlan(NamedTuple):
    """Everything that is compiled: sizes of maps, the map of every gate, and the sums in order."""

    sizes: tuple[int, ...]
    gates: tuple[int, ...]
    sums: tuple[SumPlan, ...]


@dataclass(frozen=True)
class PlanInput:
    """What rows add to a plan: factors (k, n), which of them belong to next states, η of the gates, and numbers.

    Parts that are merged keep numbers, and no factors.
    """

    plan: DevicePlan
    names: tuple[Named, ...]
    factors: AnyArray
    following: BoolArray
    etas: tuple[FloatArray, ...]
    numbers: Mapping[Named, FloatArray]
    weights: Mapping[Named, FloatArray]
    """Σ w of the squares."""

    @property
    def padded_etas(self) -> tuple[AnyArray, ...]:
        """η in single precision, as long as the tables of their maps."""
        sizes = [self.plan.sizes[features] for features in self.plan.gates]
        pairs = zip(self.etas, sizes, strict=True)
        return tuple(np.pad(eta, (0, size - len(eta))).astype(np.float32) for eta, size in pairs)

    def merge(self, other: PlanInput) -> PlanInput:
        """The numbers of both."""
        if (self.plan, self.names) != (other.plan, other.names):
            raise UsageError("these moments belong to different features, targets or behaviours and cannot be merged")
        numbers = {name: total + other.numbers[name] for name, total in self.numbers.items()}
        weights = {name: total + other.weights[name] for name, total in self.weights.items()}
        return replace(self, numbers=numbers, weights=weights, factors=self.factors[:, :0])


def planned(
    terms: Sequence[Sequence[Term]], maps: Mapping[int, int], sizes: tuple[int, ...], fold: IntArray
) -> PlanInput:
    """The terms of several requests; ``maps`` gives the number of each map by its identity."""
    writer = _Writer(maps)
    sums, names, numbers, weights = [], [], {}, {}
    for number, of_request in enumerate(terms):
        for term in of_request:
            if isinstance(term, NumberSum):
                numbers[number, term.name] = sums_of(term, fold, FOLDS)
                continue
            sums.append(writer.plan(term))
            names.append((number, term.name))
            if isinstance(term, Square):
                weight = NumberSum(term.name, term.weight, term.by_fold)
                weights[number, term.name] = sums_of(weight, fold, FOLDS)
    plan = DevicePlan(sizes, tuple(writer.gates.values()), tuple(sums))
    table = np.stack(writer.rows) if writer.rows else np.zeros((0, len(fold)), dtype=np.float32)
    following = np.array(writer.following, dtype=np.bool_)
    return PlanInput(plan, tuple(names), table, following, tuple(writer.etas), numbers, weights)


@dataclass
class _Writer:
    """Writes factors into a table, each once."""

    maps: Mapping[int, int]
    rows: list[AnyArray] = field(default_factory=list)
    following: list[bool] = field(default_factory=list)
    places: dict[tuple[int, bool], int] = field(default_factory=dict)
    gates: dict[tuple[int, int], int] = field(default_factory=dict)
    etas: list[FloatArray] = field(default_factory=list)

    def plan(self, term: Product | Square | ColumnSum | Cut) -> SumPlan:
        """Where the arrays of a term are."""
        match term:
            case Product(_, left, right, by_fold):
                return ProductPlan(self._sides(left), self._sides(right), by_fold)
            case Square(_, columns, weight, centre, by_fold):
                return SquarePlan(self._side(columns), self._place(weight, False), centre, by_fold)
            case Cut(_, gate, where):
                return CutPlan(self._gate(gate), self._place(where, False))
            case ColumnSum(_, several, by_fold, squared, stacked):
                return TotalPlan(self._sides(several), by_fold, squared, stacked)

    def _sides(self, columns: Sequence[FeatureColumns]) -> Sides:
        return tuple(self._side(each) for each in columns)

    def _side(self, columns: FeatureColumns) -> Side:
        factor = columns.factor
        width = 1 if factor is None or factor.ndim == 1 else factor.shape[1]
        first = -1 if factor is None else self._place(factor, columns.following)
        gate = -1 if columns.gate is None else self._gate(columns.gate)
        return Side(self.maps[id(columns.features)], columns.following, first, width, gate)

    def _place(self, factor: AnyArray, following: bool) -> int:
        """The first row of a factor in the table; the caller's terms hold it, so that its identity is its own."""
        key = (id(factor), following)
        if key not in self.places:
            self.places[key] = len(self.rows)
            columns = factor.astype(np.float32).reshape(len(factor), -1).T
            self.rows += list(columns)
            self.following += [following] * len(columns)
        return self.places[key]

    def _gate(self, gate: Hinge) -> int:
        key = (id(gate.features), id(gate.eta))
        if key not in self.gates:
            self.gates[key] = self.maps[id(gate.features)]
            self.etas.append(gate.eta)
        return list(self.gates).index(key)
