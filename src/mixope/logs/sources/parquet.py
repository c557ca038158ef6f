"""Parquet files: what their footers say is known without reading a row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mixope.base.errors import DataError
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, file_list, outside, plain, reading, unique
from mixope.logs.sources.checksums import VERIFIED, carries_checksums, verify
from mixope.logs.sources.footers import Footers, StoredFooters, join, runs, summed_up
from mixope.logs.sources.stores import Store, all_at_once
from mixope.logs.types import Field, Kind, fields_of

if TYPE_CHECKING:
    from mixope.logs.sources.arrow import ArrowDataset

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
    footers: Footers | StoredFooters | None = field(default=None, repr=False, compare=False)
    """Of all files that were opened together; they do not travel."""
    store: Store | None = None
    """Where the files lie; None for this machine."""
    known: tuple[str, ...] = field(default=(), repr=False)
    """Hashes of files of a store."""
    checksums: bool = False
    """Whether pages of a file carry checksums."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"footers": None}

    def relation(self, connection: Any) -> str:
        """The files, matched by column name; some row groups of one by the numbers of their rows."""
        on_disk = self.store is None or self.store.on_disk
        if on_disk and self.checksums:
            self._verify()
        if self.chosen is None:
            files = f"read_parquet({file_list(self._paths())}, hive_partitioning=false)"
            return files if on_disk else self._dataset().relation(connection)
        if on_disk and self.first_row is not None and NUMBER not in self.fields:
            low, high = self.first_row, self.first_row + sum(self.counts()) - 1
            numbered = f"read_parquet({file_list(self._paths())}, hive_partitioning=false, {NUMBER}=true)"
            return f"(SELECT * EXCLUDE ({NUMBER}) FROM {numbered} WHERE {NUMBER} BETWEEN {low} AND {high})"
        name = unique("row_groups")
        connection.register(name, self.table([name for name, field in self.fields.items() if field.kind != "other"]))
        return name

    def _verify(self) -> None:
        """Of the columns that can have a meaning, as DuckDB reads them."""
        columns = [name for name, field in self.fields.items() if field.kind != "other"]
        for name, path in zip(self.files, self._paths(), strict=True):
            verify(name, path, self.chosen, columns)

    def _paths(self) -> list[str]:
        return [name if self.store is None else self.store.path(name) for name in self.files]

    def _open(self, name: str) -> Any:
        return nullcontext(name) if self.store is None else self.store.open(name)

    def _dataset(self) -> ArrowDataset:
        """The files of a store as a dataset, which pyarrow scans."""
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        from mixope.logs.sources.arrow import ArrowDataset

        options = ds.ParquetFragmentScanOptions(**VERIFIED)
        format_ = ds.ParquetFileFormat(default_fragment_scan_options=options)
        filesystem = self.store.filesystem if self.store else None
        with reading(self.files[0]), self._open(self.files[0]) as stored, pq.ParquetFile(stored) as file:
            schema = file.schema_arrow.remove_metadata()
        parts = [format_.make_fragment(path, filesystem) for path in self._paths()]
        return ArrowDataset(ds.FileSystemDataset(parts, schema, format_, filesystem), self.files)

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all files, or of the chosen row groups."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for name in self.files:
            with reading(name), self._open(name) as stored, pq.ParquetFile(stored, **VERIFIED) as file:
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
        """Runs of small files, and runs of row groups of a large one."""
        parts: list[tuple[str, Piece]] = []
        for low, high in runs([sum(sizes) for sizes in self.groups], rows):
            parts += self._row_groups(low, rows) if high - low == 1 else [self._together(low, high)]
        return parts

    def _together(self, low: int, high: int) -> tuple[str, Piece]:
        """Some files, whole."""
        names = self.files[low:high]
        piece = replace(self, files=tuple(map(self._anywhere, names)), groups=self.groups[low:high])
        return f"{names[0]} … {names[-1]}", piece

    def _row_groups(self, position: int, rows: int) -> list[tuple[str, Piece]]:
        """Runs of row groups of one file."""
        parts: list[tuple[str, Piece]] = []
        name, sizes = self.files[position], self.groups[position]
        for low, high in runs(sizes, rows):
            chosen = tuple(range(low, high)) if self.chosen is None else self.chosen[low:high]
            piece = replace(
                self,
                files=(self._anywhere(name),),
                groups=(sizes[low:high],),
                chosen=chosen,
                first_row=(0 if self.chosen is None else self.first_row or 0) + sum(sizes[:low]),
            )
            first, last = (chosen[0], chosen[-1] + 1) if chosen else (0, 0)  # a file may have no row group
            parts.append((f"{name}[{first}:{last}]", piece))
        return parts

    def _anywhere(self, name: str) -> str:
        """The name of a file for a process that works in another folder."""
        return name if self.store else os.path.abspath(name)

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """From the statistics in the footers."""
        made = Footers(self.files) if self.store is None else StoredFooters(self.files, self.store)
        footers, whole = self.footers or made, self.fields[column].kind == "int"
        found = []
        for name, sizes in zip(self.files, self.groups, strict=True):
            chosen = range(len(sizes)) if self.chosen is None else self.chosen
            found.append(footers.bounds(column, name, chosen, whole=whole))
        return join(found)

    def digests(self) -> tuple[str, ...]:
        """Of the files; of those of a store, of what was known when they were opened."""
        return self.known or tuple(hash_file(path) for path in self._paths())

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """Columns have types."""
        return None


def open_parquet(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """Neighbouring files with the same columns and types are one piece."""
    if store is not None:
        yield from open_stored(paths, constants, store)
        return
    import pyarrow.parquet as pq

    opened = []
    for path in paths:
        with reading(path), open(path, "rb") as stored, pq.ParquetFile(stored) as file:
            carries = carries_checksums(file.metadata, stored)
            opened.append((path, fields_of(file.schema_arrow), file.metadata, carries))
        if opened[-1][2].num_rows == 0:
            raise _empty(path)
    for fields, group in groupby(opened, key=lambda each: each[1]):
        files, _, metadata, checksums = zip(*group, strict=True)
        groups = tuple(tuple(m.row_group(g).num_rows for g in range(m.num_row_groups)) for m in metadata)
        footers, chunks = Footers(files), sum(m.num_row_groups * m.num_columns for m in metadata)
        full, no_true = footers.facts() if chunks <= MAX_CHUNKS else (frozenset[str](), frozenset[str]())
        columns = outside(constants, fields)
        yield ParquetFiles(files, fields, groups, columns, full, no_true, footers=footers, checksums=any(checksums))


def open_stored(paths: Sequence[str], constants: Mapping[str, str | int], store: Store) -> Iterator[ParquetFiles]:
    """The same of a store: footers are fetched side by side, and what they say is kept in a few words."""
    opened = all_at_once(lambda path: summed_up(path, store), paths)
    empty = next((path for path, footer in zip(paths, opened, strict=True) if sum(footer.groups) == 0), None)
    if empty is not None:
        raise _empty(empty)
    for fields, group in groupby(zip(paths, opened, strict=True), key=lambda each: each[1].fields):
        files, footers = zip(*group, strict=True)
        yield ParquetFiles(
            files,
            fields,
            tuple(footer.groups for footer in footers),
            outside(constants, fields),
            frozenset.intersection(*(footer.full for footer in footers)),
            frozenset.intersection(*(footer.no_true for footer in footers)),
            footers=StoredFooters(files, store),
            store=store,
            known=tuple(footer.digest for footer in footers) if not store.on_disk else (),
            checksums=any(footer.checksums for footer in footers),
        )


def _empty(path: str) -> DataError:
    return DataError("The file has no rows", where=path, expected="at least one row")
