"""Where rows come from: runs of rows that share one physical schema, each readable by SQL and by Arrow.

A *source* is one argument of ``read``; it has one or more *pieces* (the Parquet files of a folder, a table …).
A piece offers the same rows twice: ``relation`` for DuckDB, which never holds them all, and ``table`` for Arrow.
The kinds of pieces are in ``pieces`` and ``delimited``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from mixope.logs.kinds import Field

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
