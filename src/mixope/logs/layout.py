"""The shape of observations and actions: one id, named factors, or a vector.

one column of ints or strings          id        observation
several, or lists of ints              factors   observation.cell, observation.taxi
floats: one column, several, or lists  vector    observation.0, observation.1, …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mixope.errors import DataError
from mixope.logs.acceptance import fields_in, unknown
from mixope.logs.failures import reading
from mixope.logs.kinds import Field
from mixope.logs.mapping import Assignment
from mixope.logs.schema import ObservationKind
from mixope.logs.sources import Source, quote


@dataclass(frozen=True)
class Part:
    """One column of an observation or action: its name after the dot (None: whole), and where it is in the file."""

    suffix: str | None
    raw: str
    item: int | None = None

    def name(self, notion: str, kind: str) -> str:
        """The canonical name; a vector always has dotted names."""
        suffix = "0" if self.suffix is None and kind == "vector" else self.suffix
        return notion if suffix is None else f"{notion}.{suffix}"


def expand(assignment: Assignment, notion: str, source: Source, width: int | None = None) -> list[Part]:
    """The parts of a notion, lists unpacked into their elements (``width``: of lists that do not say)."""
    parts: list[Part] = []
    for factor, raw in assignment.columns.items():
        lists = [field for _, field in fields_in([source], raw) if field.kind == "list"]
        if not lists:
            parts.append(Part(factor, raw))
            continue
        size = lists[0].width or width or _first_width(source, raw)
        if size == 1 and factor is None and lists[0].element != "float":
            parts.append(Part(None, raw, 0))
        else:
            parts += [Part(str(i) if factor is None else f"{factor}.{i}", raw, i) for i in range(size)]
    if not parts:
        raise DataError(f"The {notion} has no elements", where=source.name, expected="at least one number")
    return parts


def _first_width(source: Source, raw: str) -> int:
    import duckdb

    for piece in source.pieces:
        if raw in piece.fields and piece.fields[raw].kind == "list":
            with reading(piece.files[0]), duckdb.connect() as connection:
                rows = piece.relation(connection)
                query = f"SELECT len({quote(raw)}) FROM {rows} WHERE {quote(raw)} IS NOT NULL LIMIT 1"
                found = connection.execute(query).fetchall()
            if found:
                return int(found[0][0])
    return 0


def observation_kind(parts: Sequence[Part], source: Source) -> ObservationKind:
    """Any float makes a vector; then all must be numbers."""
    kinds = {part.raw: settle(fields_in([source], part.raw, part.item), part.raw) for part in parts}
    if "float" not in kinds.values():
        return "id" if len(parts) == 1 and parts[0].suffix is None else "factors"
    words = [raw for raw, kind in kinds.items() if kind == "string"]
    if words:
        raise DataError(
            "The observation mixes numbers and words",
            where=source.name,
            column=words[0],
            expected="all floats (a vector), or all integers and strings (factors)",
            hint="turn the float columns into classes, or leave this one out: columns={'observation': […]}",
        )
    return "vector"


def settle(entries: Sequence[tuple[str, Field]], column: str) -> Literal["int", "float", "string"]:
    """The common kind of a column over files; ints beside strings are refused, naming a file of each."""
    words = {field.kind: where for where, field in reversed(entries)}
    for where, field in entries:
        if field.kind in {"other", "list"}:
            raise unknown(where, column, field, "integers, strings or floats")
    numbers = [kind for kind in ("int", "float", "bool") if kind in words]
    if "string" in words and numbers:
        raise DataError(
            f"{column!r} is a string in one file and a number in another",
            where=f"{words['string']} (string) and {words[numbers[0]]} ({numbers[0]})",
            column=column,
            hint="store the ids with one type in all files",
        )
    if "string" in words:
        return "string"
    if not numbers:
        raise DataError("The column holds nothing but nulls", where=entries[0][0] if entries else None, column=column)
    return "float" if "float" in words else "int"


def check_factors(now: Sequence[Part], after: Sequence[Part], kind: ObservationKind, source: Source) -> None:
    """Observation and next observation have the same factors."""
    mine = {part.name("observation", kind).partition(".")[2] for part in now}
    theirs = {part.name("next_observation", kind).partition(".")[2] for part in after}
    if mine != theirs:
        raise DataError(
            "observation and next_observation have different factors",
            where=source.name,
            column=", ".join(sorted(mine ^ theirs)),
            expected="next_observation: " + (", ".join(sorted(mine)) if mine != {""} else "one column"),
            got=", ".join(sorted(theirs)) if theirs != {""} else "one column",
            hint="map both with lists of the same length: columns={'observation': […], 'next_observation': […]}",
        )
