"""Parquet files: what their footers say is known without reading a row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from mixope.errors import DataError
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, file_list, outside, plain, reading, unique
from mixope.logs.sources.footers import Footers, join
from mixope.logs.types import Field, Kind, fields_of

NUMBER = "file_row_number"
"""What DuckDB calls the column of row numbers that it adds."""
MAX_CHUNKS = 200_000
"""Column chunks whose statistics are looked at; beyond, the view carries the checks that they would have saved."""


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with the same columns, or some row groups of one of them.

    ``groups`` has the rows of each row group of each file; ``chosen`` are the row groups to read, None for all.
    """

    files: tuple[str, ...]
    fields: Mapping[str, Field]
    groups: tuple[tuple[int, ...], ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    chosen: tuple[int, ...] | None = None
    first_row: int | None = None
    """Of the chosen row groups, counted from the beginning of the file."""
    in_memory: bool = False
    footers: Footers | None = field(default=None, repr=False, compare=False)
    """Of all files that were opened together; they do not travel."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"footers": None}

    def relation(self, connection: Any) -> str:
        """The files, matched by column name; some row groups of one by the numbers of their rows."""
        if self.chosen is None:
            return f"read_parquet({file_list(self.files)}, hive_partitioning=false)"
        if self.first_row is not None and NUMBER not in self.fields:
            low, high = self.first_row, self.first_row + sum(self.counts()) - 1
            numbered = f"read_parquet({file_list(self.files)}, hive_partitioning=false, {NUMBER}=true)"
            return f"(SELECT * EXCLUDE ({NUMBER}) FROM {numbered} WHERE {NUMBER} BETWEEN {low} AND {high})"
        name = unique("row_groups")
        connection.register(name, self.table([name for name, field in self.fields.items() if field.kind != "other"]))
        return name

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all files, or of the chosen row groups."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for name in self.files:
            with reading(name), pq.ParquetFile(name) as file:
                chosen = range(file.num_row_groups) if self.chosen is None else self.chosen
                tables.append(plain(file.read_row_groups(list(chosen), columns=list(columns))))
        return pa.concat_tables(tables)

    def counts(self) -> tuple[int, ...]:
        """From the footers."""
        return tuple(sum(rows) for rows in self.groups)

    def known_rows(self) -> int | None:
        """From the footers."""
        return sum(self.counts())

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """Runs of row groups of one file."""
        parts: list[tuple[str, Piece]] = []
        for name, sizes in zip(self.files, self.groups, strict=True):
            for low, high in runs(sizes, rows):
                chosen = tuple(range(low, high)) if self.chosen is None else self.chosen[low:high]
                piece = replace(
                    self,
                    files=(os.path.abspath(name),),
                    groups=(sizes[low:high],),
                    chosen=chosen,
                    first_row=(0 if self.chosen is None else self.first_row or 0) + sum(sizes[:low]),
                )
                first, last = (chosen[0], chosen[-1] + 1) if chosen else (0, 0)  # a file may have no row group
                parts.append((f"{name}[{first}:{last}]", piece))
        return parts

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """From the statistics in the footers."""
        footers, whole = self.footers or Footers(self.files), self.fields[column].kind == "int"
        found = []
        for name, sizes in zip(self.files, self.groups, strict=True):
            chosen = range(len(sizes)) if self.chosen is None else self.chosen
            found.append(footers.bounds(column, name, chosen, whole=whole))
        return join(found)

    def digests(self) -> tuple[str, ...]:
        """Of the files."""
        return tuple(hash_file(name) for name in self.files)

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """Columns have types."""
        return None


def runs(sizes: Sequence[int], rows: int) -> Iterator[tuple[int, int]]:
    """Neighbouring row groups together up to ``rows`` rows, each run as (first, after the last)."""
    low, total = 0, 0
    for position, size in enumerate(sizes):
        if total and total + size > rows:
            yield low, position
            low, total = position, 0
        total += size
    yield low, len(sizes)


def bounds_of(metadata: Any, groups: Sequence[int], column: str) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column in some row groups; None where the footer does not say."""
    places = [c for c in range(metadata.num_columns) if metadata.row_group(0).column(c).path_in_schema == column]
    if len(places) != 1:
        return None
    found = []
    for group in groups:
        said = metadata.row_group(group).column(places[0]).statistics
        sure = said is not None and said.has_min_max and said.has_null_count and said.null_count == 0
        try:
            found.append((said.min, said.max) if sure else None)
        except UnicodeDecodeError:  # some writers cut long strings in the middle of a character
            return None
    return join(found)


def open_parquet(paths: Sequence[str], constants: Mapping[str, str | int]) -> Iterator[Piece]:
    """Neighbouring files with the same columns and types are one piece."""
    import pyarrow.parquet as pq

    opened = []
    for path in paths:
        with reading(path), pq.ParquetFile(path) as file:
            opened.append((path, fields_of(file.schema_arrow), file.metadata))
        if opened[-1][2].num_rows == 0:
            raise DataError("The file has no rows", where=path, expected="at least one row")
    for fields, group in groupby(opened, key=lambda each: each[1]):
        files, _, metadata = zip(*group, strict=True)
        groups = tuple(tuple(m.row_group(g).num_rows for g in range(m.num_row_groups)) for m in metadata)
        footers, chunks = Footers(files), sum(m.num_row_groups * m.num_columns for m in metadata)
        full, no_true = footers.facts() if chunks <= MAX_CHUNKS else (frozenset[str](), frozenset[str]())
        yield ParquetFiles(files, fields, groups, outside(constants, fields), full, no_true, footers=footers)
