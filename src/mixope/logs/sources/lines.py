"""JSON lines: one object per line, whose keys are columns; or lines that another tool wrote, known from the first one.

    Vowpal Wabbit   {"_label_cost": …, "c": {…}}        :mod:`mixope.formats.vowpal`
    RLlib           {"type": "SampleBatch", …}          :mod:`mixope.formats.rllib`

Types are found by looking at all lines. What looks like a time or a UUID remains text, as it is written: it is an id.
The rows are written once as Parquet (:mod:`mixope.logs.sources.scratch`), because every scan would parse them anew.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, arrow_batches, file_list, literal, reading
from mixope.logs.sources.formats import reader
from mixope.logs.sources.marks import is_batch, is_decision
from mixope.logs.sources.parquet import open_stored
from mixope.logs.sources.scratch import ROWS, written_once
from mixope.logs.sources.stores import Store, here

TEXT = ("DATE", "TIME", "UUID", "JSON", "INTERVAL")
"""How types begin that DuckDB reads into text."""
GZIP = b"\x1f\x8b"
LONGEST = 1 << 26
"""Bytes of a line."""


def open_lines(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """One piece per file; files of one tool that follow one another are read together."""
    for tool, group in groupby(paths, key=lambda path: _tool_of(here(path, store), path)):
        if tool is not None:
            yield from reader(tool)(list(group), constants, store)
            continue
        for path in group:
            yield from _plain(path, here(path, store), constants)


def _tool_of(place: str, path: str) -> str | None:
    """The format of the tool that wrote the lines, by the first of them; None for plain objects."""
    first = _first(place, path)
    return "dsjson" if is_decision(first) else "rllib" if is_batch(first) else None


def _plain(path: str, place: str, constants: Mapping[str, str | int]) -> Iterator[Piece]:
    with reading(path), connect() as connection:
        rows = _reader(connection, place, path)
        copy = written_once(arrow_batches(connection.sql(f"SELECT * FROM {rows}"), ROWS), path)
    for piece in open_stored([path], constants, copy):
        yield replace(piece, known=(hash_file(place),))


def _first(place: str, path: str) -> Mapping[str, Any]:
    """The object of the first line; an empty one where that is none, which whoever reads the lines will say."""
    with closing(objects_of(place, path)) as objects, suppress(DataError):
        return next(objects, (0, {}))[1]
    return {}


def objects_of(place: str, path: str) -> Generator[tuple[int, Mapping[str, Any]]]:
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
