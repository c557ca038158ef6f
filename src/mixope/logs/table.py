"""The plan in memory: canonical rows by NumPy and Arrow alone, where ``view`` carries out the same plan as SQL.

The two must agree on every log; each is the other's oracle. Within an episode, rows are ordered by step and then by
row; the next observation of row i is the observation of the row after it, unless i ended the episode. Where it was
said so, the last row of an episode is the one that ended it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.logs.parts import ColumnPart
from mixope.logs.schema import UNFOLLOWED, UNLABELLED
from mixope.logs.sources import field_in
from mixope.logs.types import GREATEST, LEAST, SURE_DIGITS

if TYPE_CHECKING:
    from mixope.base.arrays import BoolArray, IntArray
    from mixope.logs.plan import Column, ReadingPlan
    from mixope.logs.schema import Type
    from mixope.logs.sources import Piece


LINKED = frozenset({"terminated", "next_observation"})
"""What is derived from the row after."""


def rows_of(plan: ReadingPlan, base: int, columns: Sequence[str], own: tuple[int, int] | None = None) -> Any:
    """The canonical rows of one source as an Arrow table; ``own``: only of raw rows from … to."""
    import pyarrow as pa

    every, used = marked_rows(plan, base, columns)
    keep = used
    if own:
        keep = np.zeros(len(used), dtype=bool)
        keep[slice(*own)] = used[slice(*own)]
    return every if keep.all() else every.filter(pa.array(keep))


def marked_rows(plan: ReadingPlan, base: int, columns: Sequence[str]) -> tuple[Any, BoolArray]:
    """All rows of one source, and which of them say something: the canonical ones."""
    import pyarrow as pa

    needed = _needed(plan, columns)
    data = raw_columns(plan, [name for name in needed if name in plan.columns])
    terminated = _bools(data["terminated"])
    ended = terminated | _bools(data["truncated"]) if plan.derived else terminated
    if "episode_id" in plan.derived:
        data["episode_id"] = _cut(ended, plan.columns["episode_id"].type)
    if "step" in plan.derived and "step" in needed:
        data["step"] = pa.array(_count(codes_of(data), data.get("time")))
    if plan.from_one and "step" in needed:
        data["step"] = _from_the_same(data["step"], data["policy_id"], plan.from_one)
    if LINKED & plan.derived:
        following = _following(codes_of(data), data["step"], ended)
    if "terminated" in plan.derived:
        terminated = _bools(following.is_null())
        data["terminated"] = pa.array(terminated)
    if "next_observation" in plan.derived:
        for now, after in zip(plan.observation, plan.next_observation, strict=True):
            data[after] = data[now].take(following)
    known = [] if plan.keeps_all else plan.next_observation
    followed = terminated | _all_valid(data, known)
    for name in (name for name in plan.next_observation if name in needed):
        data[name] = _blank(data[name], terminated)
    data[UNFOLLOWED] = pa.array(~followed)
    if "start" in columns:
        data["start"] = _starts(data["step"], base)
    data["source"] = pa.array(np.full(len(terminated), plan.index, dtype=np.int32))
    tells = np.ones(len(followed), dtype=bool) if followed.all() else _tells(plan, data)
    return pa.table({name: data[name] for name in columns}), followed | tells


def _all_valid(data: dict[str, Any], names: Sequence[str]) -> BoolArray:
    valid = np.ones(len(data["terminated"]), dtype=bool)
    for name in names:
        valid &= _bools(data[name].is_valid())
    return valid


def _tells(plan: ReadingPlan, data: dict[str, Any]) -> BoolArray:
    """Whether a row says something by itself: what was seen, done and earned."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = _all_valid(data, plan.told)
    for name in (name for name in plan.told if pa.types.is_floating(data[name].type)):
        found &= _bools(pc.fill_null(pc.is_finite(data[name]), False))
    return found


def least_step(plan: ReadingPlan) -> int | None:
    """The smallest explicit step of a source, over all rows; None where steps are derived or all are missing."""
    import pyarrow.compute as pc

    least = None if "step" in plan.derived else pc.min(raw_columns(plan, ["step"])["step"]).as_py()
    return None if least is None else int(least)


def _needed(plan: ReadingPlan, columns: Sequence[str]) -> list[str]:
    """The columns asked for, and those that they and the filter are computed from."""
    needed = [*columns, "terminated"]
    if not plan.keeps_all:
        needed += (*plan.next_observation, *plan.told)
    if "start" in columns:
        needed.append("step")
    if LINKED & plan.derived:
        needed += ["step", "policy_id", "episode_id"]
    if "next_observation" in plan.derived:
        needed += plan.observation
    if "step" in needed and "step" in plan.derived:
        needed += ["policy_id", "episode_id", *(["time"] if plan.clock is not None else [])]
    if "step" in needed and plan.from_one:
        needed.append("policy_id")
    if plan.derived:
        needed.append("truncated")
    return list(dict.fromkeys(needed))


def raw_names(plan: ReadingPlan, columns: Sequence[str]) -> list[str]:
    """The columns of the files behind some canonical columns, and behind what decides which rows are kept."""
    needed = (name for name in _needed(plan, columns) if name in plan.columns)
    found = (raw for name in needed for raw in _raws_of(plan.columns[name]))
    return [raw for raw in dict.fromkeys(found) if raw is not None]


def raw_columns(plan: ReadingPlan, names: Sequence[str]) -> dict[str, Any]:
    """The canonical columns that need no other row, of all pieces."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks: dict[str, list[Any]] = {name: [] for name in names}
    for piece in plan.source.pieces:
        wanted = dict.fromkeys(raw for name in names for raw in _raws_of(plan.columns[name]))
        raw = piece.table([name for name in wanted if name is not None and name in piece.fields])
        rows = raw.num_rows if raw.num_columns else sum(piece.counts())
        for name in names:
            chunks[name].append(_column_of(plan.columns[name], piece, raw, rows))
    data = {name: pa.concat_arrays(parts) for name, parts in chunks.items()}
    if "policy_id" in data:
        data["policy_id"] = pc.fill_null(data["policy_id"], plan.source.label or UNLABELLED)
    if "propensity" in data and plan.log_propensity:
        data["propensity"] = pc.exp(data["propensity"])
    return data


def _bools(column: Any) -> BoolArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)


def _cut(ended: BoolArray, type_: str) -> Any:
    """Episode numbers: how many rows before this one ended an episode."""
    import pyarrow as pa

    numbers = pa.array(np.cumsum(ended, dtype=np.int64) - ended)
    return numbers.cast(pa.string()) if type_ == "string" else numbers


def codes_of(data: dict[str, Any]) -> IntArray:
    """One number per (logger, episode)."""
    policy, episode = (_encode(data[name]) for name in ("policy_id", "episode_id"))
    return policy * (int(episode.max(initial=0)) + 2) + episode + 1


def _encode(column: Any) -> IntArray:
    encoded = column.dictionary_encode().indices
    return np.asarray(encoded.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _count(codes: IntArray, times: Any = None) -> IntArray:
    """The position of each row among the rows of its episode, in row order or in that of their times."""
    keys = (codes,) if times is None else (np.asarray(times.to_numpy(zero_copy_only=False)), codes)
    order = np.lexsort(keys)
    position = np.arange(len(codes))
    first = np.concatenate([[True], codes[order][1:] != codes[order][:-1]]) if len(codes) else np.zeros(0, bool)
    counts = np.empty(len(codes), dtype=np.int64)
    counts[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return counts


def _following(codes: IntArray, step: Any, ended: BoolArray) -> Any:
    """For each row the row after it in its episode; null for the last one and for one that ended the episode."""
    import pyarrow as pa

    late = np.iinfo(np.int64).max
    steps = np.asarray(step.fill_null(late).to_numpy(zero_copy_only=False))
    order = np.lexsort((steps, codes))
    after = np.full(len(codes), -1, dtype=np.int64)
    same = codes[order][1:] == codes[order][:-1]
    after[order[:-1]] = np.where(same, order[1:], -1)
    return pa.array(after, mask=(after < 0) | ended)


def _blank(column: Any, where: BoolArray) -> Any:
    """The column with nulls where told."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(where), pa.scalar(None, column.type), column) if where.any() else column


def _from_the_same(step: Any, logger: Any, from_one: Sequence[str]) -> Any:
    """Steps of which one is taken off where the logger counts from one more than the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.subtract(step, pc.is_in(logger, pa.array(from_one, logger.type)).cast(pa.int64()))


def _starts(step: Any, base: int) -> Any:
    import pyarrow.compute as pc

    return pc.fill_null(pc.equal(step, base), False)


def _arrow_type(type_: Type) -> Any:
    """int64, float64, string or bool."""
    import pyarrow as pa

    return {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}[type_]


def _raws_of(column: Column) -> list[str | None]:
    """The raw columns that a canonical one is made from: of a filled one, all of its state."""
    return [column.raw, *(part.raw for part in column.state)]


def _column_of(column: Column, piece: Piece, raw: Any, rows: int) -> Any:
    """The canonical array of one piece, whose raw columns are ``raw``; missing values filled where that was asked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    value = _value_of(column, piece, raw, rows)
    if not column.state:
        return value
    null = _is_null(ColumnPart(None, column.raw or "", column.item), piece, raw, rows)
    unknown = np.logical_and.reduce([_is_null(part, piece, raw, rows) for part in column.state])
    to = _arrow_type(column.type)
    if column.indicates:
        return pa.array(null.astype(np.float64), to, mask=unknown)
    return pc.if_else(
        pa.array(null), pc.if_else(pa.array(unknown), pa.scalar(None, to), _scalar(column.fill, to)), value
    )


def _scalar(value: Any, to: Any) -> Any:
    import pyarrow as pa

    return pa.scalar(float(value) if pa.types.is_floating(to) else value, to)


def _is_null(part: ColumnPart, piece: Piece, raw: Any, rows: int) -> BoolArray:
    """Where a part has no value: a float that is not a number is none."""
    import pyarrow.compute as pc

    field = field_in(piece, part.raw, part.item)
    if field is None or field.kind == "null" or part.raw not in piece.fields:
        return np.full(rows, part.raw not in piece.constants)
    array = _one(raw.column(part.raw))
    array = array if part.item is None else _element(array, part.item)
    return _bools(pc.is_null(array, nan_is_null=True))


def _value_of(column: Column, piece: Piece, raw: Any, rows: int) -> Any:
    """The raw column as the canonical type; an absent flag is false, another absent column null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    field = None if column.raw is None else field_in(piece, column.raw, column.item)
    to = _arrow_type(column.type)
    if field is None or column.raw is None or field.kind == "null":
        return pa.repeat(pa.scalar(False), rows) if column.type == "bool" else pa.nulls(rows, to)
    if column.raw in piece.fields:
        array = _one(raw.column(column.raw))
        array = array if column.item is None else _element(array, column.item)
    else:
        array = pa.repeat(pa.scalar(piece.constants[column.raw]), rows)
    if column.type == "bool":
        return pc.fill_null(_flag(array), False)
    return _cast(array, column.type)


def _one(column: Any) -> Any:
    import pyarrow as pa

    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _element(array: Any, item: int) -> Any:
    """Element ``item`` of every list; null where the list is null or too short."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = np.asarray(array.offsets, dtype=np.int64)
    short = np.diff(offsets) <= item
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    return array.values.take(pa.array(offsets[:-1] + item, mask=short | null))


def _cast(array: Any, to: Type) -> Any:
    """A plain array as int64, float64 or string; what does not fit is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    target = _arrow_type(to)
    if array.type == target:
        return array
    if pa.types.is_decimal(array.type):
        return _cast(_plain(array), to)
    if to == "int" and pa.types.is_floating(array.type):
        return _whole(array)
    if to == "int" and pa.types.is_uint64(array.type):
        fits = pc.less_equal(array, pa.scalar(2**63 - 1, pa.uint64()))
        return pc.if_else(fits, array, pa.scalar(None, array.type)).cast(target)
    if to == "string" and pa.types.is_floating(array.type):
        return pc.coalesce(_whole(array).cast(target), array.cast(target))
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    return array.cast(target, safe=False)


def _plain(array: Any) -> Any:
    """Decimals as the integers or floats that they stand for; a whole number beyond 64 bits is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if array.type.scale > 0:
        return array.cast(pa.float64())
    if array.type.precision > SURE_DIGITS:
        least, greatest = (pa.scalar(Decimal(bound), array.type) for bound in (LEAST, GREATEST))
        fits = pc.and_(pc.greater_equal(array, least), pc.less_equal(array, greatest))
        array = pc.if_else(fits, array, pa.scalar(None, array.type))
    return array.cast(pa.int64())


def _whole(array: Any) -> Any:
    """Whole numbers of a float array; anything else is null."""
    import pyarrow as pa

    numbers = np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
    return pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole)


def _flag(array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(array.type):
        return array
    if pa.types.is_decimal(array.type):
        array = _plain(array)
    if pa.types.is_floating(array.type):
        numbers = array.cast(pa.float64())
        return pc.and_(pc.not_equal(numbers, 0.0), pc.is_finite(numbers))
    return pc.not_equal(array.cast(pa.int64(), safe=False), 0)
