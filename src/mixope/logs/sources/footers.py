"""What the footers of Parquet files say of their columns: nulls, and the least and the greatest value of a row group.

DuckDB reads those of files on this disk. Arrow would, too, but where the statistics of a damaged footer contradict its
schema, it ends the process. It reads those of files in a store, which DuckDB cannot reach.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mixope.logs.database import connect
from mixope.logs.sources import file_list, literal, reading
from mixope.logs.sources.checksums import carries_checksums
from mixope.logs.sources.stamps import version_in
from mixope.logs.sources.stores import Store, all_at_once
from mixope.logs.types import Field, fields_of

Span = tuple[Any, Any]
CHUNKS = """SELECT file_name, row_group_id, path_in_schema AS name, type = 'BOOLEAN' AS flag, stats_null_count AS nulls,
    coalesce(stats_min_value, stats_min) AS least, coalesce(stats_max_value, stats_max) AS most
    FROM parquet_metadata({files})"""


@dataclass(frozen=True)
class Footers:
    """The footers of some files; those of a column are read when they are first asked for, all at once."""

    files: tuple[str, ...]
    _spans: dict[str, dict[tuple[str, int], Span]] = field(default_factory=dict, repr=False, compare=False)

    def facts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Columns without a null, and flags that are false throughout, as far as the footers tell."""
        found = self._ask(
            "SELECT name, bool_and(coalesce(nulls = 0, false)), bool_and(coalesce(flag AND most = 'false', false))"
            " FROM ({chunks}) GROUP BY name"
        )
        full = frozenset(name for name, no_null, _ in found if no_null)
        return full, frozenset(name for name, _, no_true in found if no_true)

    def bounds(self, column: str, file: str, groups: Sequence[int], *, whole: bool) -> Span | None:
        """The least and the greatest value of a column in some row groups, ``whole`` numbers or text.

        None where a footer does not say, or has counted nulls.
        """
        if column not in self._spans:
            to = "BIGINT" if whole else "VARCHAR"
            rows = self._ask(
                f"SELECT file_name, row_group_id, TRY_CAST(least AS {to}), TRY_CAST(most AS {to}) FROM ({{chunks}})"
                f" WHERE name = {literal(column)} AND nulls = 0 AND least IS NOT NULL AND most IS NOT NULL"
            )
            self._spans[column] = {(os.path.abspath(name), group): (low, high) for name, group, low, high in rows}
        spans = [self._spans[column].get((os.path.abspath(file), group)) for group in groups]
        return join([span if span and None not in span else None for span in spans])

    def _ask(self, query: str) -> list[Any]:
        with reading(self.files[0]), connect() as connection:
            chunks = CHUNKS.format(files=file_list(self.files))
            found: list[Any] = connection.execute(query.format(chunks=chunks)).fetchall()
        return found


def join(found: Sequence[Span | None]) -> Span | None:
    """The bounds of several parts together; None if those of one are not known."""
    known = [pair for pair in found if pair is not None]
    if len(known) < len(found) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


@dataclass(frozen=True)
class Summary:
    """What is kept of the footer of a stored file: its columns, the rows of each row group, and facts as above."""

    fields: Mapping[str, Field]
    groups: tuple[int, ...]
    full: frozenset[str]
    no_true: frozenset[str]
    digest: str
    checksums: bool
    """Whether its pages carry checksums; only of a file on this disk, others are held against them as they are read."""


def summed_up(name: str, store: Store) -> Summary:
    """Of one file; its ``digest`` is that of its version, columns and row groups."""
    import pyarrow.parquet as pq

    with reading(name), store.open(name) as stored, pq.ParquetFile(stored) as file:
        metadata, schema, version = file.metadata, file.schema_arrow, version_in(stored)
        checksums = store.on_disk and carries_checksums(metadata, stored)
    with reading(name):
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(metadata.num_columns)]
        said = [(chunk.path_in_schema, chunk.physical_type, chunk.statistics) for chunk in chunks]
    gaps = {column for column, _, known in said if known is None or not known.has_null_count or known.null_count}
    true = {c for c, type_, known in said if type_ != "BOOLEAN" or known is None or not known.has_min_max or known.max}
    columns, rows = frozenset(column for column, _, _ in said), tuple(int(group.num_rows) for group in groups)
    digest = hashlib.sha256(repr((os.path.basename(name), version, str(schema), rows)).encode()).hexdigest()
    return Summary(fields_of(schema), rows, columns - gaps, columns - true, digest, checksums)


def _metadata(name: str, store: Store) -> Any:
    import pyarrow.parquet as pq

    with reading(name), store.open(name) as stored, pq.ParquetFile(stored) as file:
        return file.metadata


@dataclass(frozen=True)
class StoredFooters:
    """The footers of some files of a store; the bounds of a column are fetched when they are first asked for."""

    files: tuple[str, ...]
    store: Store
    _spans: dict[str, dict[str, list[Span | None]]] = field(default_factory=dict, repr=False, compare=False)

    def bounds(self, column: str, file: str, groups: Sequence[int], *, whole: bool) -> Span | None:
        """As for files of this machine."""
        if column not in self._spans:
            found = all_at_once(lambda name: self._of(column, name), self.files)
            self._spans[column] = dict(zip(self.files, found, strict=True))
        return join([self._spans[column][file][group] for group in groups])

    def _of(self, column: str, name: str) -> list[Span | None]:
        metadata = _metadata(name, self.store)
        with reading(name):
            return [bounds_of(metadata, [group], column) for group in range(metadata.num_row_groups)]


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
