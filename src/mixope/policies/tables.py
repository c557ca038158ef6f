"""Where the columns of a policy table come from: CSV, Parquet, Arrow files, data frames, dicts of columns.

Whatever the source, the rest of the package sees a :class:`Table`: names, and NumPy columns on demand. PyArrow is
imported only when a source needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixope.arrays import AnyArray
from mixope.errors import DataError
from mixope.policies.columns import Renaming, assign_roles
from mixope.policies.keys import as_array
from mixope.policies.rows import SHOWN


@dataclass(frozen=True)
class Table:
    """Named columns of equal length. ``column`` fetches one; ``where`` names the source in errors."""

    names: tuple[str, ...]
    column: Callable[[str], AnyArray]
    where: str


def from_mapping(columns: Mapping[str, Any], where: str = "dict of columns") -> Table:
    """A dict of columns."""
    arrays = {str(name): np.atleast_1d(as_array(values, f"values of {name!r}")) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            "the columns have different lengths",
            where=where,
            got=", ".join(f"{name}: {length}" for name, length in lengths.items()),
        )
    return Table(tuple(arrays), arrays.__getitem__, where)


def from_arrow(source: Any, where: str) -> Table:
    """A PyArrow table, or anything that speaks the Arrow PyCapsule interface (pandas, polars, …)."""
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else pa.RecordBatchReader.from_stream(source).read_all()
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise DataError("two columns have the same name", where=where, got=", ".join(repeated))
    return Table(tuple(table.column_names), lambda name: _to_numpy(table.column(name), name, where), where)


def _to_numpy(column: Any, name: str, where: str) -> AnyArray:
    """One Arrow column; strings become objects, decimals floats, dates their text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.types
    if column.null_count:
        rows = pc.indices_nonzero(column.is_null()).to_numpy()
        raise DataError(
            "the column has missing values",
            where=where,
            column=name,
            rows=rows[:SHOWN].tolist(),
            total=len(rows),
            hint="drop these rows or fill them in",
        )
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_nested(column.type):
        raise DataError(
            "the column holds lists or structs",
            where=where,
            column=name,
            expected="one integer or string a row",
            got=str(column.type),
            hint="write the parts of a state as several columns observation.x, observation.y, …",
        )
    if kinds.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif kinds.is_temporal(column.type):
        column = column.cast(pa.string())
    array: AnyArray = column.to_numpy()
    return array


def read_parquet(path: Path, columns: Renaming | None) -> Table:
    """A Parquet file."""
    import pyarrow.parquet as pq

    return from_arrow(pq.read_table(path), str(path))


def read_arrow(path: Path, columns: Renaming | None) -> Table:
    """An Arrow IPC file (.arrow, .feather) or stream."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    return from_arrow(table, str(path))


def read_csv(path: Path, columns: Renaming | None) -> Table:
    """A CSV file with a header. Ids that all look like integers are integers, otherwise text, dates included."""
    import pyarrow as pa
    from pyarrow import csv

    # Only an empty cell is missing ("NA" may be a state), and true and false are words like others.
    options = csv.ConvertOptions(null_values=[""], strings_can_be_null=True, true_values=[], false_values=[])
    table = csv.read_csv(path, convert_options=options)
    ids = assign_roles(table.column_names, columns, str(path)).ids
    dates = [name for name in ids if pa.types.is_temporal(table.schema.field(name).type)]
    if dates:
        options.column_types = dict.fromkeys(dates, pa.string())
        table = csv.read_csv(path, convert_options=options)
    return from_arrow(table, str(path))
