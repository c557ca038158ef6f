"""The parts of an observation or action: which raw columns it is made of, lists unpacked into their elements."""

from __future__ import annotations

from dataclasses import dataclass

from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.names import Assignment
from mixope.logs.sources import Source, quote, reading


@dataclass(frozen=True)
class ColumnPart:
    """One column of an observation or action: its name after the dot (None: whole), and where it is in the file.

    ``indicates``: it does not hold the values of the file's column, but 1 where they are missing and 0 elsewhere.
    """

    suffix: str | None
    raw: str
    item: int | None = None
    indicates: bool = False

    def name(self, notion: str, kind: str) -> str:
        """The canonical name; a vector always has dotted names."""
        suffix = "0" if self.suffix is None and kind == "vector" else self.suffix
        return notion if suffix is None else f"{notion}.{suffix}"

    @property
    def indicator(self) -> ColumnPart:
        """The column that says where this one is missing."""
        return ColumnPart(f"{self.suffix} missing", self.raw, self.item, indicates=True)


def expand(assignment: Assignment, notion: str, source: Source, width: int | None = None) -> list[ColumnPart]:
    """The parts of a notion, lists unpacked into their elements (``width``: of lists that do not say)."""
    parts: list[ColumnPart] = []
    for factor, raw in assignment.columns.items():
        lists = [field for _, field in source.fields_in(raw) if field.kind == "list"]
        if not lists:
            parts.append(ColumnPart(factor, raw))
            continue
        size = lists[0].width or width or _first_width(source, raw)
        if size == 1 and factor is None and lists[0].element != "float":
            parts.append(ColumnPart(None, raw, 0))
        else:
            parts += [ColumnPart(str(i) if factor is None else f"{factor}.{i}", raw, i) for i in range(size)]
    if not parts:
        raise DataError(f"The {notion} has no elements", where=source.name, expected="at least one number")
    return parts


def _first_width(source: Source, raw: str) -> int:
    for piece in source.pieces:
        if raw in piece.fields and piece.fields[raw].kind == "list":
            with reading(piece.files[0]), connect() as connection:
                rows = piece.relation(connection)
                query = f"SELECT len({quote(raw)}) FROM {rows} WHERE {quote(raw)} IS NOT NULL LIMIT 1"
                found = connection.execute(query).fetchall()
            if found:
                return int(found[0][0])
    return 0
