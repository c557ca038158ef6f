"""Whether a raw column can become the canonical type it is meant for, and the error if not."""

from __future__ import annotations

from collections.abc import Sequence

from mixope.errors import DataError
from mixope.logs.delimited import DelimitedFiles, unreadable
from mixope.logs.kinds import ACCEPTED, Field
from mixope.logs.schema import Type
from mixope.logs.sources import Piece, Source

OPTIONAL = ("policy_id", "propensity")
"""Notions that some files of a source may lack: null there."""

EXPECTED: dict[Type, str] = {
    "int": "integers",
    "float": "numbers",
    "string": "strings or integers",
    "bool": "true/false or 0/1",
}


def fields_in(sources: Sequence[Source], raw: str, item: int | None = None) -> list[tuple[str, Field]]:
    """(file, field) of a raw column in every piece that has it; of its elements where ``item`` is given."""
    found = []
    for source in sources:
        for piece in source.pieces:
            field = field_in(piece, raw, item)
            if field is not None:
                found.append((piece.files[0], field))
    return found


def field_in(piece: Piece, raw: str, item: int | None = None) -> Field | None:
    """The field of a raw column in one piece: from its schema, or from the path."""
    if raw in piece.fields:
        field = piece.fields[raw]
        return Field(field.element or "other", field.words) if item is not None and field.kind == "list" else field
    if raw in piece.constants:
        return Field("string" if isinstance(piece.constants[raw], str) else "int", "path", exact=True)
    return None


def check(source: Source, raw: str, item: int | None, type_: Type, name: str) -> None:
    """Every piece has the column (or may lack it), with a kind that turns into the type."""
    for piece in source.pieces:
        field = field_in(piece, raw, item)
        if field is None:
            if name not in OPTIONAL:
                raise DataError(
                    "A file of the source lacks a column that others have",
                    where=piece.files[0],
                    column=raw,
                    hint="read the files as separate sources, or drop the column from all of them",
                )
            continue
        if field.kind in ACCEPTED[type_] or (name == "policy_id" and field.kind not in {"list", "other"}):
            continue
        if isinstance(piece, DelimitedFiles) and field.kind == "string":
            raise unreadable(piece, raw, "int" if type_ == "int" else type_)
        raise unknown(piece.files[0], raw, field, EXPECTED[type_])


def unknown(where: str, column: str, field: Field, expected: str) -> DataError:
    """A stored type that has no meaning here."""
    return DataError(
        f"unknown dtype {field.words!r}",
        where=where,
        column=column,
        expected=expected,
        got=field.words,
        hint="cast the column before it is read, or leave it out: columns={…: None}",
    )
