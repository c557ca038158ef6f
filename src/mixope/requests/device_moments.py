"""Moments on a GPU: the terms of several requests (:mod:`mixope.requests.terms`) in one compiled programme of JAX.

    processor    points z of the states, and a few factors per row, by policies and behaviours; piece after piece
    device       φ from the points, φ(s) ⊗ f − φ(s′) ⊗ g, products and sums, added to totals that stay there

Rows lie along the last axis, and come in pieces of a fixed size and of one fold each, filled up with rows that count
for nothing: there is one programme. Where the next state of most rows is the state of the row after, φ is computed once
for both (*chained*): chains lie side by side, a row's next state some columns after it. Where a chain breaks, the next
state follows as a row of its own that counts for nothing.

Calls return before the device has done anything: the next pieces are read and prepared while it computes. Products are
made in TF32 (float32 rounded to eleven bits), or of two halves of every number, which is as good as float32; everything
is added up in float32. Squares, whose small directions matter, are made of features less a constant, and put together
in float64. Pieces are added in the order of the rows, totals pairwise in a tree that the rows alone decide: no rounding
error grows with their number, and one device gives the same bits however many threads prepare pieces.

Importing this module imports JAX: it is for those who have found a device (:mod:`mixope.solvers.devices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.features.points import Points, points_of
from mixope.logs import Schema
from mixope.requests.device_kernel import BumpTable, FoldRows, Precision, added, padded_size, programme, table_of, zeros
from mixope.requests.device_plan import PlanInput, ProductPlan, Side, SquarePlan, SumPlan, TotalPlan, planned
from mixope.requests.moments import MomentRequest, Moments
from mixope.requests.request import Batch, content_key
from mixope.requests.rows import FOLDS, Rows, fold_of, required, row_columns

PIECE, LARGE_PIECE, LARGE_MEMORY = 1 << 15, 1 << 17, 40e9
"""Rows of a piece, and of one on a device with so many bytes."""
MOST_BREAKS = 0.25
"""Chains are used where at most this share of the rows breaks one."""
_MOST_LANES = 128
"""Chains that lie side by side in a piece."""

DeviceFailure: type[Exception] = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
"""What JAX raises where the device cannot go on, such as for want of memory."""


class DeviceMoments:
    """The moments of several requests at once, all of which have points, on one device: a request of this process."""

    whole_episodes = False

    def __init__(
        self,
        requests: Sequence[MomentRequest],
        device: Any,
        piece: int | None = None,
        precision: Precision = "float32",
    ) -> None:
        self.requests, self.device, self.precision = tuple(requests), device, precision
        self.piece = piece or _piece_on(device)

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
    def tables(self) -> tuple[BumpTable, ...]:
        """All bumps, on the device."""
        return tuple(self.put(table_of(points)) for points in self.maps)

    @property
    def lanes(self) -> int:
        """Chains that lie side by side in a piece: the next state of a row is so many columns after it."""
        return max(1, min(_MOST_LANES, self.piece // 4))

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
        fold = fold_of(required(rows.draw), FOLDS)
        numbers = {id(each): k for k, each in enumerate(self._maps)}
        sizes = tuple(map(padded_size, self.maps))
        part = planned([request.terms(rows) for request in self.requests], numbers, sizes, fold)
        return Staged(self, part, self._sheets(rows, fold, part), len(rows))

    def _sheets(self, rows: Rows, fold: IntArray, part: PlanInput) -> dict[tuple[int, bool], FoldRows]:
        """The rows by fold."""
        found = {}
        for k in np.unique(fold).tolist():
            mine = np.flatnonzero(fold == k)
            sheet, chained = self._sheet(rows, mine, part)
            found[int(k), chained] = sheet
        return found

    def _sheet(self, rows: Rows, mine: IntArray, part: PlanInput) -> tuple[FoldRows, bool]:
        here, ahead = rows.observation[mine], rows.next_observation[mine]
        factors = part.factors[:, mine]
        factors[part.following] *= ~rows.terminated[mine]
        broken = _broken(here, ahead, rows.terminated[mine])
        if not part.following.any():
            return FoldRows(self._points(here), (), factors), True
        if broken.mean() > MOST_BREAKS:
            return FoldRows(self._points(here), self._points(ahead), factors), False
        place = np.repeat(np.arange(len(mine)), 1 + broken)
        extra = np.append(False, place[1:] == place[:-1])  # a next state that no row begins with
        points = here[place]
        points[extra] = ahead[broken]
        factors = factors[:, place]
        factors[:, extra] = 0.0
        return FoldRows(self._points(points), (), factors), True

    def _points(self, observations: AnyArray) -> tuple[AnyArray, ...]:
        first = [self.encodings.index(k) for k in range(max(self.encodings) + 1)]
        return tuple(_single(self.maps[k].place(observations).T) for k in first)

    def finish(self, staged: Staged) -> tuple[Moments, ...]:
        """The moments of every request, in double precision on the processor."""
        part, arrays = staged.part, [dict[str, FloatArray]() for _ in self.requests]
        if part is not None:
            made = zip(part.names, part.plan.sums, staged.flushed(), strict=True)
            for (number, name), plan, total in made:
                found = self._whole(plan, np.asarray(total, dtype=np.float64), part.weights.get((number, name)))
                whole = np.zeros((FOLDS, *found.shape[1:]))
                whole[: len(found)] = found
                arrays[number][name] = whole
            for (number, name), numbers in part.numbers.items():
                arrays[number][name] = numbers
        kinds = [type(request).__name__ for request in self.requests]
        return tuple(Moments(found, staged.n_rows, kind) for found, kind in zip(arrays, kinds, strict=True))

    def _whole(self, plan: SumPlan, total: FloatArray, weight: FloatArray | None) -> FloatArray:
        """A sum without what fills up its tiles; squares as if nothing had been subtracted."""
        match plan:
            case ProductPlan(left, right):
                return total[:, self._real(left[0])][:, :, self._real(right[0])]
            case TotalPlan(sides, stacked=stacked):
                found = total[:, self._real(sides[0])]
                return found.reshape(len(found), sides[0].width, -1) if stacked else found
            case SquarePlan(side, _, centre) if weight is not None:
                real, size = self._real(side), len(self.maps[side.features].widths)
                square, mean = total[:, real][:, :, real], total[:, -1, real]
                middle, w = np.repeat(centre, size) / size, weight[: len(total), None, None]
                cross = mean[:, :, None] * middle
                return np.asarray(square + cross + cross.transpose(0, 2, 1) - w * np.outer(middle, middle))
        return total

    def _real(self, side: Side) -> IntArray:
        """The columns of a side that are bumps."""
        points = self.maps[side.features]
        return np.add.outer(np.arange(side.width) * padded_size(points), np.arange(len(points.widths))).ravel()


@dataclass
class Staged:
    """Rows on their way: totals on the device of all full pieces, and what is left over on the processor."""

    request: DeviceMoments
    part: PlanInput | None
    sheets: dict[tuple[int, bool], FoldRows]
    n_rows: int
    totals: tuple[Any, ...] | None = None

    def merge(self, other: Staged) -> Staged:
        """Of the rows of both: full pieces go to the device."""
        if self.part is None or other.part is None:
            return self if other.part is None else other
        totals = self.totals or other.totals
        if self.totals is not None and other.totals is not None:
            totals = added(self.totals, other.totals)
        merged = Staged(self.request, self.part.merge(other.part), {}, self.n_rows + other.n_rows, totals)
        for key in sorted({*self.sheets, *other.sheets}):
            both = [each.sheets[key] for each in (self, other) if key in each.sheets]
            merged.sheets[key] = merged._sent(key, both[0] if len(both) == 1 else _joined(*both))
        return merged

    def flushed(self) -> tuple[Any, ...]:
        """The totals of all rows: the rest, filled up, as the last pieces."""
        for key in sorted(self.sheets):
            sheet = self._sent(key, self.sheets[key])
            if sheet.factors.shape[1]:
                fill = (0, self._points(key) - sheet.factors.shape[1])
                self._sent(key, _mapped(sheet, partial(np.pad, pad_width=((0, 0), fill))))
        self.sheets = {}
        assert self.totals is not None
        return self.totals

    def _points(self, key: tuple[int, bool]) -> int:
        """Points of a piece: as many as it has columns, or those of its chains, in which every next point is one."""
        request, chained = self.request, key[1]
        return request.piece - request.lanes + 1 if chained else request.piece

    def _sent(self, key: tuple[int, bool], sheet: FoldRows) -> FoldRows:
        """Full pieces go to the device; the rest comes back. The last point of a chain begins the next one."""
        request, (fold, chained), points = self.request, key, self._points(key)
        lanes = request.lanes
        steps = request.piece // lanes
        place = np.add.outer(np.arange(steps), np.arange(lanes) * (steps - 1)).ravel()
        while sheet.factors.shape[1] >= points:
            if chained:
                piece = _mapped(sheet, lambda array: array[:, place])
                piece.factors[:, -lanes:] = 0.0
                sheet = _mapped(sheet, lambda array: array[:, points - 1 :])
            else:
                piece = _mapped(sheet, lambda array: array[:, :points])
                sheet = _mapped(sheet, lambda array: array[:, points:])
            self._add(fold, lanes if chained else 0, piece)
        return sheet

    def _add(self, fold: int, lag: int, sheet: FoldRows) -> None:
        """One piece."""
        request, part = self.request, self.part
        assert part is not None
        if self.totals is None:
            self.totals = zeros(part.plan, request.device)
        run = programme(part.plan, request.encodings, lag, request.precision, request.device.platform != "cpu")
        arrays = (part.padded_etas, _mapped(sheet, _single), np.int32(fold))
        self.totals = run(self.totals, request.tables, *request.put(arrays))


def _piece_on(device: Any) -> int:
    """As many rows as suit the memory of a device."""
    return LARGE_PIECE if (device.memory_stats() or {}).get("bytes_limit", 0) > LARGE_MEMORY else PIECE


def _single(values: AnyArray) -> AnyArray:
    return np.ascontiguousarray(values, dtype=np.float32)


def _broken(here: AnyArray, ahead: AnyArray, ended: BoolArray) -> BoolArray:
    """Rows whose next state is not the state of the row after; after an end no next state is asked for."""
    off = (np.roll(here, -1, axis=0) != ahead).reshape(len(here), -1).any(axis=1)
    off[-1] = True
    return np.asarray(off & ~ended)


def _mapped(sheet: FoldRows, function: Callable[[AnyArray], AnyArray]) -> FoldRows:
    """The same of every array."""
    return FoldRows(tuple(map(function, sheet.points)), tuple(map(function, sheet.ahead)), function(sheet.factors))


def _joined(first: FoldRows, second: FoldRows) -> FoldRows:
    def both(left: tuple[AnyArray, ...], right: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
        return tuple(np.concatenate(pair, axis=1) for pair in zip(left, right, strict=True))

    (factors,) = both((first.factors,), (second.factors,))
    return FoldRows(both(first.points, second.points), both(first.ahead, second.ahead), factors)
