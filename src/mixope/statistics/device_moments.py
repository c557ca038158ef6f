"""Moments on a GPU: the terms of several requests (:mod:`mixope.statistics.terms`) in one compiled programme of JAX.

    processor    points z of the states, and a few factors per row, by policies and behaviours; piece after piece
    device       φ from the points, φ(s) ⊗ f − φ(s′) ⊗ g, products and sums, added to totals that stay there

Rows lie along the last axis, and come in pieces of a fixed size and of one fold each, filled up with rows that count
for nothing: there is one programme. Where the next state of most rows is the state of the row after, φ is computed once
for both (*chained*; where a chain breaks, the next state follows as a row of its own that counts for nothing).

Calls return before the device has done anything: the next pieces are read and prepared while it computes. Products are
made in TF32 (float32 with ten bits of mantissa) and added up in float32, sums by row in float32. Pieces are added in
the order of the rows, totals pairwise in a tree that the rows alone decide, so that no rounding error grows with their
number and that the same device gives the same bits however many threads prepare pieces.

Importing this module imports JAX: it is for those who have found a device (:mod:`mixope.solvers.devices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mixope.arrays import AnyArray, BoolArray, IntArray
from mixope.features.points import Points, points_of
from mixope.logs import Schema
from mixope.statistics.device_plan import CutPlan, Part, Plan, ProductPlan, Side, Sides, TotalPlan, planned
from mixope.statistics.moments import MomentRequest, Moments
from mixope.statistics.request import Batch, content_key
from mixope.statistics.rows import FOLDS, Rows, fold_of, row_columns, told

Precision = Literal["float32", "bfloat16"]
PIECE = 1 << 15
"""Rows of a piece."""
MOST_BREAKS = 0.25
"""Chains are used where at most this share of the rows breaks one."""
_UNROLLED = 16
"""Distances of points with so many numbers are summed one number at a time, without a product."""

DeviceFailure: type[Exception] = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
"""What JAX raises where the device cannot go on, such as for want of memory."""


class Sheet(NamedTuple):
    """Rows of one fold, along the last axis: points by encoding, those of the next states unless chained, factors."""

    points: tuple[AnyArray, ...]
    ahead: tuple[AnyArray, ...]
    factors: AnyArray

    def __len__(self) -> int:
        return int(self.factors.shape[1])

    def map(self, function: Callable[[AnyArray], AnyArray]) -> Sheet:
        """The same of every array."""
        return Sheet(tuple(map(function, self.points)), tuple(map(function, self.ahead)), function(self.factors))


class Table(NamedTuple):
    """The bumps of a map, on the device: centres (size, d) and 1/2w²."""

    centres: Any
    half: Any


class DeviceMoments:
    """The moments of several requests at once, all of which have points, on one device: a request of this process."""

    whole_episodes = False

    def __init__(
        self,
        requests: Sequence[MomentRequest],
        device: Any,
        piece: int = PIECE,
        precision: Precision = "float32",
    ) -> None:
        self.requests, self.device, self.piece, self.precision = tuple(requests), device, piece, precision

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Everything that a row holds, and its step."""
        return (*row_columns(schema), "step")

    @cached_property
    def maps(self) -> tuple[Points, ...]:
        """The distinct maps of all requests, as points."""
        found = [points_of(features) for features in self._maps]
        assert all(points is not None for points in found), "a map without points has no place on a device"
        return tuple(points for points in found if points is not None)

    @cached_property
    def _maps(self) -> list[Any]:
        return list({id(each): each for request in self.requests for each in request.maps}.values())

    @cached_property
    def encodings(self) -> tuple[int, ...]:
        """For every map, the number of its encoding."""
        keys = [content_key(points.parts) for points in self.maps]
        return tuple(list(dict.fromkeys(keys)).index(key) for key in keys)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All bumps, on the device."""
        return tuple(self.put(Table(_single(p.centres), _single(0.5 / p.widths**2))) for p in self.maps)

    def put(self, arrays: Any) -> Any:
        """On the device."""
        return jax.device_put(arrays, self.device)

    def of(self, batch: Batch) -> Staged:
        """Some rows, ready for the device."""
        return self.staged(batch.rows)

    def staged(self, rows: Rows) -> Staged:
        """The same of arrays."""
        if len(rows) == 0:
            return Staged(self, None, {}, 0)
        fold = fold_of(told(rows.draw), FOLDS)
        numbers = {id(each): k for k, each in enumerate(self._maps)}
        sizes = tuple(len(points.widths) for points in self.maps)
        part = planned([request.terms(rows) for request in self.requests], numbers, sizes, fold)
        return Staged(self, part, self._sheets(rows, fold, part), len(rows))

    def _sheets(self, rows: Rows, fold: IntArray, part: Part) -> dict[tuple[int, bool], Sheet]:
        """The rows by fold."""
        found = {}
        for k in np.unique(fold).tolist():
            mine = np.flatnonzero(fold == k)
            sheet, chained = self._sheet(rows, mine, part)
            found[int(k), chained] = sheet
        return found

    def _sheet(self, rows: Rows, mine: IntArray, part: Part) -> tuple[Sheet, bool]:
        here, ahead = rows.observation[mine], rows.next_observation[mine]
        factors = part.factors[:, mine]
        factors[part.following] *= ~rows.terminated[mine]
        broken = _broken(here, ahead, rows.terminated[mine])
        if not part.following.any():
            return Sheet(self._points(here), (), factors), True
        if broken.mean() > MOST_BREAKS:
            return Sheet(self._points(here), self._points(ahead), factors), False
        place = np.repeat(np.arange(len(mine)), 1 + broken)
        extra = np.append(False, place[1:] == place[:-1])  # a next state that no row begins with
        points = here[place]
        points[extra] = ahead[broken]
        factors = factors[:, place]
        factors[:, extra] = 0.0
        return Sheet(self._points(points), (), factors), True

    def _points(self, observations: AnyArray) -> tuple[AnyArray, ...]:
        first = [self.encodings.index(k) for k in range(max(self.encodings) + 1)]
        return tuple(_single(self.maps[k].place(observations).T) for k in first)

    def finish(self, staged: Staged) -> tuple[Moments, ...]:
        """The moments of every request, in double precision on the processor."""
        if staged.part is None:
            return tuple(Moments(belongs_to=type(request).__name__) for request in self.requests)
        totals = staged.flushed()
        arrays: list[dict[str, Any]] = [{} for _ in self.requests]
        for (number, name), total in zip(staged.part.names, map(np.asarray, totals), strict=True):
            whole = np.zeros((FOLDS, *total.shape[1:]))
            whole[: len(total)] = total
            arrays[number][name] = whole
        for (number, name), total in staged.part.numbers.items():
            arrays[number][name] = total
        made = zip(self.requests, arrays, strict=True)
        return tuple(Moments(found, staged.n_rows, type(request).__name__) for request, found in made)


@dataclass
class Staged:
    """Rows on their way: totals on the device of all full pieces, and what is left over on the processor."""

    request: DeviceMoments
    part: Part | None
    sheets: dict[tuple[int, bool], Sheet]
    n_rows: int
    totals: tuple[Any, ...] | None = None

    def merge(self, other: Staged) -> Staged:
        """Of the rows of both: full pieces go to the device."""
        if self.part is None or other.part is None:
            return self if other.part is None else other
        totals = self.totals or other.totals
        if self.totals is not None and other.totals is not None:
            totals = _added(self.totals, other.totals)
        merged = Staged(self.request, self.part.merge(other.part), {}, self.n_rows + other.n_rows, totals)
        for key in sorted({*self.sheets, *other.sheets}):
            both = [each.sheets[key] for each in (self, other) if key in each.sheets]
            merged.sheets[key] = merged._sent(key, both[0] if len(both) == 1 else _joined(*both))
        return merged

    def flushed(self) -> tuple[Any, ...]:
        """The totals of all rows: the rest, filled up, as the last pieces."""
        piece = self.request.piece
        for key in sorted(self.sheets):
            sheet = self._sent(key, self.sheets[key])
            if len(sheet):
                self._add(key, sheet.map(lambda array: np.pad(array, ((0, 0), (0, piece - array.shape[1])))))
        self.sheets = {}
        assert self.totals is not None
        return self.totals

    def _sent(self, key: tuple[int, bool], sheet: Sheet) -> Sheet:
        """Full pieces go to the device; the rest comes back. The last point of a chained piece begins the next one."""
        piece = self.request.piece
        step = piece - 1 if key[1] else piece
        while len(sheet) >= piece:
            self._add(key, sheet.map(lambda array: array[:, :piece].copy()))
            sheet = sheet.map(lambda array: array[:, step:])
        return sheet

    def _add(self, key: tuple[int, bool], sheet: Sheet) -> None:
        """One piece; the last row of a chained one is the state after the row before it, and counts for nothing."""
        fold, chained = key
        request, part = self.request, self.part
        assert part is not None
        if chained:
            sheet.factors[:, -1] = 0.0
        if self.totals is None:
            self.totals = _zeros(part.plan, request.device)
        programme = _programme(part.plan, request.encodings, chained, request.precision)
        etas = tuple(map(_single, part.etas))
        self.totals = programme(self.totals, request.tables, *request.put((etas, sheet, np.int32(fold))))


def _single(values: AnyArray) -> AnyArray:
    return np.ascontiguousarray(values, dtype=np.float32)


def _broken(here: AnyArray, ahead: AnyArray, ended: BoolArray) -> BoolArray:
    """Rows whose next state is not the state of the row after; after an end no next state is asked for."""
    off = (np.roll(here, -1, axis=0) != ahead).reshape(len(here), -1).any(axis=1)
    off[-1] = True
    return np.asarray(off & ~ended)


def _joined(first: Sheet, second: Sheet) -> Sheet:
    def both(left: tuple[AnyArray, ...], right: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
        return tuple(np.concatenate(pair, axis=1) for pair in zip(left, right, strict=True))

    (factors,) = both((first.factors,), (second.factors,))
    return Sheet(both(first.points, second.points), both(first.ahead, second.ahead), factors)


# --- programmes: what is compiled


def _zeros(plan: Plan, device: Any) -> tuple[Any, ...]:
    """Totals of no rows."""
    with jax.default_device(device):
        return tuple(jnp.zeros(_shape(plan, each), dtype=jnp.float32) for each in plan.sums)


def _shape(plan: Plan, each: ProductPlan | TotalPlan | CutPlan) -> tuple[int, ...]:
    if isinstance(each, CutPlan):
        return (1,)
    folds = FOLDS if each.by_fold else 1
    if isinstance(each, ProductPlan):
        return (folds, *(plan.sizes[sides[0].features] * sides[0].width for sides in (each.left, each.right)))
    size, width = plan.sizes[each.sides[0].features], each.sides[0].width
    return (folds, width, size) if each.stacked else (folds, width * size)


@partial(jax.jit, donate_argnums=0)
def _added(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


@lru_cache(maxsize=32)
def _programme(plan: Plan, encodings: tuple[int, ...], chained: bool, precision: Precision) -> Any:
    """One piece added to the totals, which are overwritten."""
    step = partial(_step, plan, encodings, chained, precision)
    return jax.jit(step, donate_argnums=0)


def _step(
    plan: Plan,
    encodings: tuple[int, ...],
    chained: bool,
    precision: Precision,
    totals: tuple[Any, ...],
    tables: tuple[Table, ...],
    etas: tuple[Any, ...],
    sheet: Sheet,
    fold: Any,
) -> tuple[Any, ...]:
    here = tuple(_bumps(table, sheet.points[k]) for table, k in zip(tables, encodings, strict=True))
    if chained:
        ahead = tuple(jnp.roll(phi, -1, axis=1) for phi in here)
    else:
        ahead = tuple(_bumps(table, sheet.ahead[k]) for table, k in zip(tables, encodings, strict=True))
    gates = tuple(1.0 + _exact(eta[None], here[k])[0] for eta, k in zip(etas, plan.gates, strict=True))
    piece = _Piece(here, ahead, gates, sheet.factors, chained, precision)
    added = []
    for each, total in zip(plan.sums, totals, strict=True):
        match each:
            case CutPlan(gate, where):
                added.append(total + jnp.sum((gates[gate] < 0) * sheet.factors[where]))
            case ProductPlan(left, right, by_fold):
                added.append(total.at[fold if by_fold else 0].add(piece.product(left, right)))
            case TotalPlan(by_fold=by_fold):
                added.append(total.at[fold if by_fold else 0].add(piece.total(each).reshape(total.shape[1:])))
    return tuple(added)


class _Piece(NamedTuple):
    """A piece while it is worked on."""

    here: tuple[Any, ...]
    ahead: tuple[Any, ...]
    gates: tuple[Any, ...]
    factors: Any
    chained: bool
    precision: Precision

    def product(self, left: Sides, right: Sides) -> Any:
        """Σ left rightᵀ."""
        kind = jnp.bfloat16 if self.precision == "bfloat16" else jnp.float32
        first = self._columns(left).astype(kind)
        second = first if right == left else self._columns(right).astype(kind)
        over = (((1,), (1,)), ((), ()))
        return jax.lax.dot_general(first, second, over, preferred_element_type=jnp.float32)

    def total(self, plan: TotalPlan) -> Any:
        """Σ columns: factors times φ, so that no columns are made."""
        return sum(self._total(side, plan.squared) for side in plan.sides)

    def _total(self, side: Side, squared: bool) -> Any:
        factor = self._factor(side)
        if side.following and self.chained:  # the next state is in the next column
            phi, factor = self.here[side.features], jnp.roll(factor, 1, axis=1)
        else:
            phi = (self.ahead if side.following else self.here)[side.features]
        return _exact(factor, phi**2 if squared else phi, along=1)

    def _factor(self, side: Side) -> Any:
        factor = self.factors[side.first : side.first + side.width]
        return factor if side.gate < 0 else factor * jnp.maximum(self.gates[side.gate], 0.0)

    def _columns(self, sides: Sides) -> Any:
        return sum(self._crossed(side) for side in sides)

    def _crossed(self, side: Side) -> Any:
        phi, factor = (self.ahead if side.following else self.here)[side.features], self._factor(side)
        if side.width == 1:
            return phi * factor
        return (phi[None] * factor[:, None]).reshape(side.width * phi.shape[0], phi.shape[1])


def _exact(left: Any, right: Any, along: int = 0) -> Any:
    """A product with few rows, in full single precision, over the axis ``along`` of the right side."""
    over = (((1,), (along,)), ((), ()))
    return jax.lax.dot_general(left, right, over, precision=jax.lax.Precision.HIGHEST)


def _bumps(table: Table, points: Any) -> Any:
    """φ (size, n) of points (d, n)."""
    if points.shape[0] <= _UNROLLED:
        distance = sum((points[k][None] - table.centres[:, k, None]) ** 2 for k in range(points.shape[0]))
    else:
        squares = jnp.sum(points**2, axis=0)[None] + jnp.sum(table.centres**2, axis=1)[:, None]
        distance = squares - 2.0 * _exact(table.centres, points)
    logits = -table.half[:, None] * distance
    heights = jnp.exp(logits - jnp.max(logits, axis=0))
    return heights / jnp.sum(heights, axis=0)
