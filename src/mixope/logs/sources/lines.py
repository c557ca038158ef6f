"""JSON lines: one object per line, whose keys are columns.

Types are found by looking at all lines. What looks like a time or a UUID remains text, as it is written: it is an id.
The rows are written once as Parquet (:mod:`mixope.logs.sources.scratch`), because every scan would parse them anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixope.errors import DataError
from mixope.logs.database import connect
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, arrow_batches, file_list, literal, reading
from mixope.logs.sources.parquet import open_stored
from mixope.logs.sources.scratch import ROWS, written_once
from mixope.logs.sources.stores import Store, here

TEXT = ("DATE", "TIME", "UUID", "JSON", "INTERVAL")
"""How types begin that DuckDB reads into text."""


def open_lines(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """One piece per file."""
    for path in paths:
        place = here(path, store)
        with reading(path), connect() as connection:
            rows = _reader(connection, place, path)
            copy = written_once(arrow_batches(connection.sql(f"SELECT * FROM {rows}"), ROWS), path)
        for piece in open_stored([path], constants, copy):
            yield replace(piece, known=(hash_file(place),))


def _reader(connection: Any, place: str, path: str) -> str:
    """FROM-able rows with a type for every column."""
    import duckdb

    lines = f"format='newline_delimited', records=true, hive_partitioning=false, maximum_object_size={1 << 26}"
    given = f"read_json({file_list([place])}, {lines}"
    try:
        found = connection.sql(f"DESCRIBE SELECT * FROM {given}, auto_detect=true, sample_size=-1)").fetchall()
    except duckdb.BinderException as error:
        said = str(error).splitlines()[0]
        raise DataError(f"The log cannot be read: {said}", where=path, expected="one object per line") from error
    columns = {name: "VARCHAR" if str(kind).startswith(TEXT) else str(kind) for name, kind, *_ in found}
    if not columns:
        raise DataError("The file has no rows", where=path, expected="one object per line")
    typed = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    return f"{given}, columns={{{typed}}})"
