"""A piece some of whose columns are read as something else: lists and times that are written as text, say.

The expression is SQL, for DuckDB and for Arrow alike, so that both see the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.sources import Piece, quote, reading, unique
from mixope.logs.types import Field, Kind


class Conversion(NamedTuple):
    """What a column is read as, and by which expression. ``total``: it has a value wherever the column has one."""

    field: Field
    sql: str
    total: bool = True


@dataclass(frozen=True)
class Converted:
    """A piece some of whose columns are read as something else."""

    inner: Piece
    read: Mapping[str, Conversion]

    @property
    def files(self) -> tuple[str, ...]:
        """Those of the piece, and so for all that follows."""
        return self.inner.files

    @property
    def fields(self) -> Mapping[str, Field]:
        """With what is read instead."""
        read = {name: conversion.field for name, conversion in self.read.items()}
        return {name: read.get(name, field) for name, field in self.inner.fields.items()}

    @property
    def constants(self) -> Mapping[str, str | int]:
        """Nothing changes."""
        return self.inner.constants

    @property
    def in_memory(self) -> bool:
        """Nothing changes."""
        return self.inner.in_memory

    @property
    def null_free(self) -> frozenset[str]:
        """A value that is there is read as one that is there, if the conversion says so."""
        return self.inner.null_free - {name for name, conversion in self.read.items() if not conversion.total}

    @property
    def all_false(self) -> frozenset[str]:
        """Nothing changes."""
        return self.inner.all_false

    def relation(self, connection: Any) -> str:
        """The same rows with what is read."""
        return f"(SELECT * REPLACE ({self._expressions(self.inner.fields)}) FROM {self.inner.relation(connection)})"

    def table(self, columns: Sequence[str]) -> Any:
        """The same columns with what is read."""
        found = self.inner.table(columns)
        if not any(name in self.read for name in columns):
            return found
        name = unique("converted")
        with reading(self.files[0]), connect() as connection:
            connection.register(name, found)
            return connection.sql(f"SELECT * REPLACE ({self._expressions(columns)}) FROM {name}").to_arrow_table()

    def _expressions(self, names: Iterable[str]) -> str:
        """The conversions among some columns as SQL."""
        return ", ".join(f"{self.read[name].sql} AS {quote(name)}" for name in names if name in self.read)

    def counts(self) -> tuple[int, ...]:
        """Nothing changes."""
        return self.inner.counts()

    def known_rows(self) -> int | None:
        """Nothing changes."""
        return self.inner.known_rows()

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """The parts of the piece, each converted."""
        return [(name, replace(self, inner=part)) for name, part in self.inner.split(rows)]

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """Of what is converted, none are known."""
        return None if column in self.read else self.inner.bounds(column)

    def digests(self) -> tuple[str, ...]:
        """Nothing changes."""
        return self.inner.digests()

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """Of the other columns."""
        return self.inner.explain_text({name: kind for name, kind in kinds.items() if name not in self.read})
