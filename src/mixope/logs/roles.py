"""What the columns of a state are: each has a role, and columns of all roles may stand side by side.

    id          opaque: equal or not, and nothing else
    category    one of a few values
    number      a quantity: near and far mean something

A role is said by the user or by the record of a data set, or guessed: words are categories and floats are numbers.
Integers alone are categories, beside floats alone numbers; beside words, or where a role was said, they are numbers if
they have more than 20 values. An action of floats is a number too, unless it is said to be an id: a dose of 0, 0.5 or 1
is one of a few things to do.
Ids and categories alone make states that can be counted. Numbers alone make a vector. Both together are *mixed*.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from mixope.base.errors import Advice, DataError, Setting, UnknownName, UsageError
from mixope.logs.database import connect
from mixope.logs.parts import ColumnPart
from mixope.logs.schema import ObservationKind, Role
from mixope.logs.sources import Piece, Source, field_in, literal, quote, reading
from mixope.logs.types import settle

ROLES: tuple[Role, ...] = ("id", "category", "number")
MISSING = ("keep",)
"""What may be done about missing values of a state."""
MANY = 20
"""Integers beside words are numbers if they have more values than this."""
LOOKED = 100_000
"""Rows of each file that are looked at to count the values of an integer column."""

MOST_ACTIONS = 100
"""Floats of more values than this are no classes of actions, whatever is said."""

Kind = Literal["int", "float", "string"]
Count = Callable[[ColumnPart], int]


def check_roles(roles: Mapping[str, str] | None) -> dict[str, Role]:
    """The user's roles: known words only."""
    if not isinstance(roles, Mapping | None):
        raise UsageError(f"roles is a dict, such as {{'age': 'number'}}, got {roles!r}")
    for column, role in (roles or {}).items():
        if not isinstance(column, str):
            raise UsageError(f"roles has names of columns as its keys, got {column!r}")
        if role not in ROLES:
            raise UnknownName("role", role, ROLES)
    return dict(roles or {})  # type: ignore[arg-type]


def check_missing(missing: str | None) -> str | None:
    """``missing`` must say keep."""
    if missing not in (None, *MISSING):
        raise UnknownName("way with missing values", missing, MISSING)
    return missing


def action_classes(parts: Sequence[ColumnPart], source: Source) -> bool:
    """Whether an action is said to be one of a few classes, which matters where it is a float."""
    said = {role for part in parts for name in _action_names(part) if (role := source.roles.get(name)) is not None}
    if "number" in said and settle(source.fields_in(parts[0].raw, parts[0].item), parts[0].raw) != "float":
        raise DataError(
            "An action that is not a float cannot be a number",
            where=source.name,
            column=parts[0].raw,
            expected="floats for an action that is a quantity",
            hint="store it as floats, or leave its role out: integers and words are classes",
        )
    return len(parts) == 1 and bool(said & {"id", "category"})


def refuse_many_actions(layouts: Sequence[tuple[Source, Sequence[ColumnPart]]]) -> None:
    """Floats that were said to be classes of actions, and are too many for that."""
    for source, (part, *_) in layouts:
        if settle(source.fields_in(part.raw, part.item), part.raw) != "float":
            continue
        values: set[Any] = set()
        for piece in source.pieces:
            values |= _values(piece, part, MOST_ACTIONS)
        if len(values) > MOST_ACTIONS:
            raise DataError(
                "Actions that are floats of many values cannot be ids",
                where=source.name,
                column=part.raw,
                expected=f"at most {MOST_ACTIONS} different values",
                got=f"{len(values):,} or more, such as {min(values):g} and {max(values):g}",
                hint="leave the role out, so that the action is a number; or round it to a few values",
            )


def _action_names(part: ColumnPart) -> tuple[str, ...]:
    """What a user may call an action."""
    return (part.raw, "action") if part.suffix is None else (f"action.{part.suffix}", part.raw, "action")


def roles_of(
    parts: Sequence[ColumnPart], source: Source, count: Count, actions: Sequence[ColumnPart] = ()
) -> tuple[ObservationKind, tuple[Role, ...]]:
    """The kind of a source's observations and the role of every part; ``count`` gives how many values a part has.

    The ``actions`` may have roles too (:func:`action_classes`).
    """
    _refuse_strangers(parts, source, {name for part in actions for name in _action_names(part)})
    kinds = [settle(source.fields_in(part.raw, part.item), part.raw) for part in parts]
    said = [role_said(part, source) for part in parts]
    for part, kind, role in zip(parts, kinds, said, strict=True):
        if role == "number" and kind == "string":
            raise _words(part, source)
    beside = "string" in kinds or any(said)
    plain: Role = "number" if "float" in kinds else "category"

    def guess(part: ColumnPart, kind: Kind) -> Role:
        if kind != "int":
            return "number" if kind == "float" else "category"
        return plain if not beside else "number" if count(part) > MANY else "category"

    roles = tuple(role or guess(part, kind) for part, kind, role in zip(parts, kinds, said, strict=True))
    whole = len(parts) == 1 and parts[0].suffix is None
    if set(roles) == {"number"}:
        return "vector", roles
    if "number" in roles or "float" in kinds:
        return "mixed", roles
    return ("id", ("id",)) if whole else ("factors", roles)


def notes_on_roles(parts: Sequence[ColumnPart], roles: Sequence[Role], source: Source) -> list[str]:
    """A word on integers that were taken for numbers beside words."""
    kinds = [settle(source.fields_in(part.raw, part.item), part.raw) for part in parts]
    return [
        Advice(
            f"{source.name}: column {part.raw!r} has integers of more than {MANY} values and is taken as a number;"
            " if they are classes, say so: ",
            Setting("roles", {part.raw: "category"}),
        )
        for part, role, kind in zip(parts, roles, kinds, strict=True)
        if "string" in kinds and kind == "int" and role == "number" and role_said(part, source) is None
    ]


def _names(part: ColumnPart) -> tuple[str, ...]:
    """What a user may call a part."""
    return (part.raw, "observation") if part.suffix is None else (part.suffix, f"observation.{part.suffix}", part.raw)


def role_said(part: ColumnPart, source: Source) -> Role | None:
    """By the user, or else by the record of the data set."""
    return next((said[name] for said in (source.roles, source.recorded) for name in _names(part) if name in said), None)


def _refuse_strangers(parts: Sequence[ColumnPart], source: Source, actions: Collection[str]) -> None:
    known = {name: part for part in parts for name in _names(part)}
    for name in source.roles:
        if name not in known and name not in actions:
            shown = [part.suffix or part.raw for part in parts]
            near = difflib.get_close_matches(name, known, n=1)
            raise DataError(
                f"{name!r} has a role, but is no column of the observation, nor the action",
                where=source.name,
                column=name,
                expected=f"one of {', '.join(shown)}",
                hint=f"did you mean {near[0]!r}?"
                if near
                else Advice("say which columns the state has: ", Setting("columns", {"observation": [...]})),
            )


def _words(part: ColumnPart, source: Source) -> DataError:
    return DataError(
        "A column of words cannot be a number",
        where=source.name,
        column=part.raw,
        expected="integers or floats",
        got="strings",
        hint=Advice("store it as numbers, or say ", Setting("roles", {part.raw: "category"})),
    )


def counter(layouts: Sequence[tuple[Source, Sequence[ColumnPart]]]) -> Count:
    """How many values a part has in all sources together, as far as their first rows tell; counted when asked."""
    found: dict[str | None, int] = {}

    def count(part: ColumnPart) -> int:
        if part.suffix not in found:
            values: set[Any] = set()
            for source, parts in layouts:
                mine = next((other for other in parts if other.suffix == part.suffix), None)
                for piece in source.pieces if mine else ():
                    values |= _values(piece, mine)
            found[part.suffix] = len(values)
        return found[part.suffix]

    return count


def _values(piece: Piece, part: ColumnPart | None, most: int = MANY) -> set[Any]:
    """A few more values than matter, of the first rows of a piece."""
    if part is None or field_in(piece, part.raw, part.item) is None:
        return set()
    with reading(piece.files[0]), connect() as connection:
        rows = f"SELECT {raw_value(piece, part)} AS x FROM {piece.relation(connection)} LIMIT {LOOKED}"
        query = f"SELECT DISTINCT x FROM ({rows}) WHERE x IS NOT NULL ORDER BY x LIMIT {most + 1}"
        return {value for (value,) in connection.execute(query).fetchall()}


def missing_in(parts: Sequence[ColumnPart], source: Source) -> dict[str | None, int]:
    """How many rows have no value of each part though they have one of another; parts without such rows are left out.

    A state of which nothing is known is none: its missing values are not counted.
    """
    total: dict[str | None, int] = {}
    for piece in source.pieces if parts else ():
        nulls = [is_null(piece, part) for part in parts]
        known = " AND ".join(nulls)
        counts = ", ".join(f"count(*) FILTER (WHERE {null} AND NOT ({known}))" for null in nulls)
        with reading(piece.files[0]), connect() as connection:
            (found,) = connection.execute(f"SELECT {counts} FROM {piece.relation(connection)}").fetchall()
        for part, n in zip(parts, found, strict=True):
            total[part.suffix] = total.get(part.suffix, 0) + int(n)
    return {suffix: n for suffix, n in total.items() if n}


def raw_value(piece: Piece, part: ColumnPart) -> str:
    """The raw value of a part as SQL."""
    if part.raw not in piece.fields:
        return literal(piece.constants.get(part.raw))
    return quote(part.raw) + (f"[{part.item + 1}]" if part.item is not None else "")


def is_null(piece: Piece, part: ColumnPart) -> str:
    """Whether a part has no value, as SQL: a float that is not a number is none."""
    field, value = field_in(piece, part.raw, part.item), raw_value(piece, part)
    if field is None or field.kind == "null":
        return "true"
    if field.kind == "float" and not field.decimal:
        # The least and greatest value in a Parquet footer leave NaN out, and DuckDB would conclude from them that there
        # is none; it concludes nothing about nextafter(x, x), which is x.
        return f"({value} IS NULL OR isnan(nextafter({value}, {value})))"
    return f"({value} IS NULL)"
