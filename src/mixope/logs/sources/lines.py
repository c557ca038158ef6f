"""JSON lines: one object per line, whose keys are columns; or lines that another tool wrote, known from the first one.

    Vowpal Wabbit   {"_label_cost": …, "c": {…}}        :mod:`mixope.logs.sources.dsjson`
    RLlib           {"type": "SampleBatch", …}          :mod:`mixope.logs.sources.rllib`

Types are found by looking at all lines. What looks like a time or a UUID remains text, as it is written: it is an id.
The rows are written once as Parquet (:mod:`mixope.logs.sources.scratch`), because every scan would parse them anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, arrow_batches, file_list, literal, outside, reading
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.dsjson import is_decision, read_decisions
from mixope.logs.sources.parquet import open_stored
from mixope.logs.sources.rllib import is_batch, table_of_batches
from mixope.logs.sources.scratch import ROWS, written_once
from mixope.logs.sources.stores import Store, here

TEXT = ("DATE", "TIME", "UUID", "JSON", "INTERVAL")
"""How types begin that DuckDB reads into text."""
GZIP = b"\x1f\x8b"
LONGEST = 1 << 26
"""Bytes of a line."""


def open_lines(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """One piece per file."""
    before = 0
    for path in paths:
        place = here(path, store)
        first = _first(place, path)
        if is_decision(first):
            for piece in open_decisions([path], constants, store, before):
                before += sum(piece.counts())
                yield piece
        elif is_batch(first):
            table = table_of_batches(_objects(place, path), path)
            yield ArrowTable(table, (path,), outside(constants, table.column_names), hash_file(place))
        else:
            yield from _plain(path, place, constants)


def open_decisions(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None, before: int = 0
) -> Iterator[Piece]:
    """Logs of Vowpal Wabbit, one piece per file; decisions without a name are numbered on from file to file."""
    for path in paths:
        place = here(path, store)
        found = read_decisions(_objects(place, path), path)
        table = found.table(before)
        before += table.num_rows
        missing = outside(constants, table.column_names)
        yield ArrowTable(table, (path,), missing, hash_file(place), notes=found.notes())


def _plain(path: str, place: str, constants: Mapping[str, str | int]) -> Iterator[Piece]:
    with reading(path), connect() as connection:
        rows = _reader(connection, place, path)
        copy = written_once(arrow_batches(connection.sql(f"SELECT * FROM {rows}"), ROWS), path)
    for piece in open_stored([path], constants, copy):
        yield replace(piece, known=(hash_file(place),))


def _first(place: str, path: str) -> Mapping[str, Any]:
    """The object of the first line; an empty one where that is none, which whoever reads the lines will say."""
    with closing(_objects(place, path)) as objects, suppress(DataError):
        return next(objects, (0, {}))[1]
    return {}


def _objects(place: str, path: str) -> Generator[tuple[int, Mapping[str, Any]]]:
    """The objects of all lines that are not empty, with the numbers of these lines, counted from 1."""
    with reading(path), open(place, "rb") as start:
        packed = start.read(2) == GZIP
    with reading(path), gzip.open(place, "rb") if packed else open(place, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
            if len(line) > LONGEST:
                where = f"{path}, line {number}"
                raise DataError("A line is far too long", where=where, expected=f"at most {LONGEST >> 20} MB")
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                where = f"{path}, line {number}"
                raise DataError(f"A line is not JSON: {error}", where=where, expected="one object per line") from error
            if not isinstance(found, dict):
                raise DataError("A line is no object", where=f"{path}, line {number}", expected="one object per line")
            yield number, found


def _reader(connection: Any, place: str, path: str) -> str:
    """FROM-able rows with a type for every column."""
    import duckdb

    lines = f"format='newline_delimited', records=true, hive_partitioning=false, maximum_object_size={LONGEST}"
    given = f"read_json({file_list([place])}, {lines}"
    look = f"DESCRIBE SELECT * FROM {given}, auto_detect=true, sample_size=-1"
    try:
        try:
            found = connection.sql(f"{look})").fetchall()
        except duckdb.BinderException:  # lines whose many keys are mostly absent pass for maps, unless told otherwise
            found = connection.sql(f"{look}, map_inference_threshold=-1)").fetchall()
    except duckdb.BinderException as error:
        said = str(error).splitlines()[0]
        raise DataError(f"The log cannot be read: {said}", where=path, expected="one object per line") from error
    columns = {name: "VARCHAR" if str(kind).startswith(TEXT) else str(kind) for name, kind, *_ in found}
    if not columns:
        raise DataError("The file has no rows", where=path, expected="one object per line")
    typed = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    return f"{given}, columns={{{typed}}})"
