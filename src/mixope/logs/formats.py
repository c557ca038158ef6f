"""One reader a format: files to pieces. Only headers and footers are read here (CSV: see ``delimited``).

Neighbouring files with the same columns, types and folder constants form one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from mixope.errors import DataError, UnknownName
from mixope.logs.arrays import table_of_npz
from mixope.logs.delimited import DelimitedFiles, read_fields, read_header
from mixope.logs.failures import reading
from mixope.logs.files import FORMATS, Found, endings, format_of
from mixope.logs.kinds import Field
from mixope.logs.pieces import ArrowDataset, ArrowTable, ParquetFiles, fields_of
from mixope.logs.sources import Piece

MAX_CHUNKS = 200_000
"""Column chunks whose statistics are looked at; beyond, the view carries the checks that they would have saved."""


def open_files(found: Sequence[Found], format: str | None) -> tuple[Piece, ...]:
    """The pieces of some files, in file order."""
    if format is not None and format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    opened = [(_reader_of(file.path, format), file) for file in found]
    pieces: list[Piece] = []
    for (name, constants), group in groupby(opened, key=lambda pair: (pair[0], pair[1].constants)):
        pieces += READERS[name]([file.path for _, file in group], _typed(constants, found))
    return tuple(pieces)


def _reader_of(path: str, format: str | None) -> str:
    name = format or format_of(path)
    if name is None:
        raise DataError("Unknown format", where=path, expected=f"a name ending in {endings()}", hint="or pass format=…")
    return name


def _typed(constants: tuple[tuple[str, str], ...], found: Sequence[Found]) -> dict[str, str | int]:
    """Folder values as integers where all values of that key are."""
    every = [pair for file in found for pair in file.constants]
    whole = {key: all(v.isdecimal() for k, v in every if k == key) for key, _ in constants}
    return {key: int(value) if whole[key] else value for key, value in constants}


def _runs(paths: Sequence[str], schemas: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """Neighbours with equal schemas: (schema, positions)."""
    grouped = groupby(range(len(paths)), key=lambda i: schemas[i])
    return [(schema, list(positions)) for schema, positions in grouped]


def _without(constants: Mapping[str, str | int], fields: Mapping[str, Field]) -> dict[str, str | int]:
    """A column in the file wins over one in its path."""
    return {name: value for name, value in constants.items() if name not in fields}


def _parquet(paths: Sequence[str], constants: Mapping[str, str | int]) -> list[Piece]:
    import pyarrow.parquet as pq

    footers = []
    for path in paths:
        with reading(path), pq.ParquetFile(path) as file:
            footers.append((file.schema_arrow, file.metadata))
    _refuse_empty(paths, [metadata.num_rows for _, metadata in footers])
    pieces: list[Piece] = []
    for fields, positions in _runs(paths, [fields_of(schema) for schema, _ in footers]):
        metadata = [footers[i][1] for i in positions]
        facts = _facts(metadata)
        rows = tuple(m.num_rows for m in metadata)
        files = tuple(paths[i] for i in positions)
        pieces.append(ParquetFiles(files, fields, rows, _without(constants, fields), *facts))
    return pieces


def _facts(metadata: Sequence[Any]) -> tuple[frozenset[str], frozenset[str]]:
    """Columns without a null, and flags that are false throughout, as far as the footers tell."""
    if sum(m.num_row_groups * m.num_columns for m in metadata) > MAX_CHUNKS:
        return frozenset(), frozenset()
    nulls: dict[str, bool] = {}
    trues: dict[str, bool] = {}
    for chunk in (
        m.row_group(g).column(c) for m in metadata for g in range(m.num_row_groups) for c in range(m.num_columns)
    ):
        name, found = chunk.path_in_schema, chunk.statistics
        no_null = found is not None and found.has_null_count and found.null_count == 0
        nulls[name] = nulls.get(name, False) or not no_null
        false = found is not None and found.has_min_max and found.max is False
        trues[name] = trues.get(name, False) or not false
    return frozenset(n for n, any_ in nulls.items() if not any_), frozenset(n for n, any_ in trues.items() if not any_)


def _refuse_empty(paths: Sequence[str], rows: Sequence[int]) -> None:
    for path, number in zip(paths, rows, strict=True):
        if number == 0:
            raise DataError("The file has no rows", where=path, expected="at least one row")


def _delimited(paths: Sequence[str], constants: Mapping[str, str | int], *, tabs: bool) -> list[Piece]:
    headers = [read_header(path, tabs=tabs) for path in paths]
    fields = [read_fields(path, *header) for path, header in zip(paths, headers, strict=True)]
    pieces: list[Piece] = []
    for (header, delimiter, kinds), positions in _runs(paths, [(*h, f) for h, f in zip(headers, fields, strict=True)]):
        files = tuple(paths[i] for i in positions)
        pieces.append(DelimitedFiles(files, header, delimiter, kinds, _without(constants, kinds)))
    return pieces


def _arrow(paths: Sequence[str], constants: Mapping[str, str | int]) -> list[Piece]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    pieces: list[Piece] = []
    for path in paths:
        with reading(path), open(path, "rb") as file:
            stream = file.read(6) != b"ARROW1"
            if stream:
                file.seek(0)
                table = pa.ipc.open_stream(file).read_all()
                piece: Piece = ArrowTable(table, (path,), _without(constants, fields_of(table.schema)), in_memory=False)
            else:
                dataset = ds.dataset(path, format="ipc")
                piece = ArrowDataset(dataset, (path,), _without(constants, fields_of(dataset.schema)))
        _refuse_empty([path], piece.counts())
        pieces.append(piece)
    return pieces


def _npz(paths: Sequence[str], constants: Mapping[str, str | int]) -> list[Piece]:
    tables = [(path, table_of_npz(path)) for path in paths]
    return [ArrowTable(table, (path,), _without(constants, fields_of(table.schema))) for path, table in tables]


READERS: dict[str, Callable[[Sequence[str], Mapping[str, str | int]], list[Piece]]] = {
    "parquet": _parquet,
    "csv": lambda paths, constants: _delimited(paths, constants, tabs=False),
    "tsv": lambda paths, constants: _delimited(paths, constants, tabs=True),
    "arrow": _arrow,
    "npz": _npz,
}
"""Format → reader. A new format is one function and one line here and in ``FORMATS``."""
