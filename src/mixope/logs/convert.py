"""A raw Arrow column as a canonical one: the counterpart of ``sql.cast``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.logs.acceptance import field_in
from mixope.logs.kinds import field_of

if TYPE_CHECKING:
    from mixope.logs.draft import Column
    from mixope.logs.schema import Type
    from mixope.logs.sources import Piece


def arrow_type(type_: Type) -> Any:
    """int64, float64, string or bool."""
    import pyarrow as pa

    return {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}[type_]


def column_of(column: Column, piece: Piece, raw: Any, rows: int) -> Any:
    """The canonical array of one piece, whose raw columns are ``raw``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    field = None if column.raw is None else field_in(piece, column.raw, column.item)
    to = arrow_type(column.type)
    if field is None or column.raw is None or field.kind == "null":
        return pa.repeat(pa.scalar(False), rows) if column.type == "bool" else pa.nulls(rows, to)
    if column.raw in piece.fields:
        array = _one(raw.column(column.raw))
        array = array if column.item is None else element(array, column.item)
    else:
        array = pa.repeat(pa.scalar(piece.constants[column.raw]), rows)
    array = _plain(array)
    if column.type == "bool":
        return pc.fill_null(_flag(array), False)
    return cast(array, column.type)


def _one(column: Any) -> Any:
    import pyarrow as pa

    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _plain(array: Any) -> Any:
    """The values of a dictionary array. String views are cast first: Arrow cannot take from them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        return array
    values = array.dictionary
    return (values.cast(pa.string()) if field_of(values.type).kind == "string" else values).take(array.indices)


def element(array: Any, item: int) -> Any:
    """Element ``item`` of every list; null where the list is null or too short."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = np.asarray(array.offsets, dtype=np.int64)
    short = np.diff(offsets) <= item
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    return array.values.take(pa.array(offsets[:-1] + item, mask=short | null))


def cast(array: Any, to: Type) -> Any:
    """A plain array as int64, float64 or string; what does not fit is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    target = arrow_type(to)
    if array.type == target:
        return array
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
    if pa.types.is_floating(array.type):
        numbers = array.cast(pa.float64())
        return pc.and_(pc.not_equal(numbers, 0.0), pc.is_finite(numbers))
    return pc.not_equal(array.cast(pa.int64(), safe=False), 0)
