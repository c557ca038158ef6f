"""Logs to a file: whole or not at all.

The rows go to a temporary file beside the target, renamed when it is complete: a reader never sees half a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mixope.base.cells import mark_column, marked
from mixope.base.errors import DataError
from mixope.base.files import replacing
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.endings import format_of

ROW_GROUP_SIZE = 122_880
"""Rows of a Parquet row group: what DuckDB reads as one unit of work."""


def write(columns: Mapping[str, Any], path: str | os.PathLike[str], *, row_group_size: int = ROW_GROUP_SIZE) -> Path:
    """Write arrays of one length ((n, k) ones as ``name.0 …``) to .parquet, .csv, .tsv or .arrow; returns the path."""
    target = Path(path)
    name = format_of(target.name)
    if name not in WRITERS or target.suffix == ".gz":
        raise DataError(
            "Unknown format to write", where=str(target), expected="a name ending in .parquet, .pq, .csv, .tsv, .arrow"
        )
    table = table_of_arrays(columns, str(target))
    with replacing(target) as temporary:
        WRITERS[name](table, str(temporary), row_group_size)
    return target


def _write_parquet(table: Any, path: str, row_group_size: int) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, row_group_size=row_group_size, compression="zstd")


def _write_delimited(table: Any, path: str, row_group_size: int, delimiter: str) -> None:
    """Text that a spreadsheet would run is marked; the readers of logs and policies take the mark away."""
    import pyarrow as pa
    from pyarrow import csv

    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            table = table.set_column(position, column.name, mark_column(table.column(position)))
    table = table.rename_columns([marked(name) for name in table.column_names])
    csv.write_csv(table, path, csv.WriteOptions(delimiter=delimiter))


def _write_arrow(table: Any, path: str, row_group_size: int) -> None:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table, max_chunksize=row_group_size)


WRITERS: dict[str | None, Callable[[Any, str, int], None]] = {
    "parquet": _write_parquet,
    "csv": partial(_write_delimited, delimiter=","),
    "tsv": partial(_write_delimited, delimiter="\t"),
    "arrow": _write_arrow,
}
