"""Where rows come from: runs of rows that share one physical schema, each readable by SQL and by Arrow.

A *source* is one argument of ``read``; it has one or more *pieces* (the Parquet files of a folder, a table …).
A piece offers the same rows twice: ``relation`` for DuckDB, which never holds them all, and ``table`` for Arrow.
Text files are in ``delimited``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from mixope.logs.failures import reading
from mixope.logs.kinds import Field, field_of

_numbers = count()


def unique(stem: str) -> str:
    """A name that this process gives once."""
    return f"mixope_{stem}_{next(_numbers)}"


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | None) -> str:
    """An SQL constant."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def file_list(files: Sequence[str]) -> str:
    """An SQL list of file names, none of them taken for a pattern."""
    escape = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})
    return "[" + ", ".join(literal(name.translate(escape)) for name in files) + "]"


class Piece(Protocol):
    """Rows with one physical schema."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names for messages, in row order."""

    @property
    def fields(self) -> Mapping[str, Field]:
        """The raw columns."""

    @property
    def constants(self) -> Mapping[str, str | int]:
        """Columns that the path holds (``policy_id=a/…``): one value throughout."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held already."""

    @property
    def null_free(self) -> frozenset[str]:
        """Columns known to hold no null."""

    @property
    def all_false(self) -> frozenset[str]:
        """Boolean columns known to hold false only."""

    def relation(self, connection: Any) -> str:
        """What to write after FROM, valid for this connection."""

    def table(self, columns: Sequence[str]) -> Any:
        """These raw columns as an Arrow table, in row order."""

    def counts(self) -> tuple[int, ...]:
        """Rows of each file."""


@dataclass(frozen=True)
class Source:
    """One argument of ``read``: its name for messages, its pieces, and what the user said of it."""

    name: str
    pieces: tuple[Piece, ...]
    label: str | None = None
    columns: Mapping[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    done: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The raw columns of all pieces, in order of appearance."""
        return tuple(dict.fromkeys(n for piece in self.pieces for n in (*piece.fields, *piece.constants)))

    @property
    def files(self) -> tuple[str, ...]:
        """All files, in row order."""
        return tuple(name for piece in self.pieces for name in piece.files)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are held already."""
        return all(piece.in_memory for piece in self.pieces)

    def counts(self) -> tuple[int, ...]:
        """Rows of each file."""
        return tuple(rows for piece in self.pieces for rows in piece.counts())

    def locate(self, piece: int, rows: Sequence[int]) -> tuple[str, list[int]]:
        """The file of the first of some rows of a piece, and those rows of it, counted from 0 within the file."""
        found, counts = self.pieces[piece], self.pieces[piece].counts()
        if len(counts) != len(found.files):
            return found.files[0], list(rows)
        before = 0
        for name, size in zip(found.files, counts, strict=True):
            if rows[0] < before + size:
                return name, [row - before for row in rows if row < before + size]
            before += size
        return found.files[-1], list(rows)


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files; what their footers say is known without reading a row."""

    files: tuple[str, ...]
    fields: Mapping[str, Field]
    rows: tuple[int, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False

    def relation(self, connection: Any) -> str:
        """The files, matched by column name."""
        return f"read_parquet({file_list(self.files)}, hive_partitioning=false)"

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for name in self.files:
            with reading(name), pq.ParquetFile(name) as file:
                tables.append(_plain(file.read(columns=list(columns))))
        return pa.concat_tables(tables)

    def counts(self) -> tuple[int, ...]:
        """From the footers."""
        return self.rows


def _plain(table: Any) -> Any:
    """The table without dictionaries, which cannot always be unified across files."""
    import pyarrow as pa

    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            plain = table.column(position).cast(column.type.value_type)
            table = table.set_column(position, column.name, plain)
    return table


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory: given as such, from arrays, or from an .npz file."""

    content: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    all_false: frozenset[str] = frozenset()
    in_memory: bool = True

    @property
    def fields(self) -> Mapping[str, Field]:
        """From the table's schema."""
        return fields_of(self.content.schema)

    @property
    def null_free(self) -> frozenset[str]:
        """Arrow counts nulls."""
        named = zip(self.content.schema.names, self.content.columns, strict=True)
        return frozenset(name for name, column in named if column.null_count == 0)

    def relation(self, connection: Any) -> str:
        """The table, lent to the connection without a copy."""
        name = unique("table")
        connection.register(name, self.content)
        return name

    def table(self, columns: Sequence[str]) -> Any:
        """A selection of columns."""
        return self.content.select(list(columns))

    def counts(self) -> tuple[int, ...]:
        """One entry."""
        return (self.content.num_rows,)


@dataclass(frozen=True)
class ArrowDataset:
    """A pyarrow dataset: Arrow IPC files, or whatever the user built."""

    dataset: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False

    @property
    def fields(self) -> Mapping[str, Field]:
        """From the dataset's schema."""
        return fields_of(self.dataset.schema)

    def relation(self, connection: Any) -> str:
        """The dataset, scanned by the connection batch by batch."""
        name = unique("dataset")
        connection.register(name, self.dataset)
        return name

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all fragments."""
        with reading(self.files[0]):
            return self.dataset.to_table(columns=list(columns))

    def counts(self) -> tuple[int, ...]:
        """Rows of each fragment, or one entry where fragments are not the files."""
        with reading(self.files[0]):
            rows = tuple(fragment.count_rows() for fragment in self.dataset.get_fragments())
        return rows if len(rows) == len(self.files) else (sum(rows),)


def fields_of(schema: Any) -> dict[str, Field]:
    """The fields of an Arrow schema."""
    return {column.name: field_of(column.type) for column in schema}
