"""What a raw column holds, in five words: int, float, string, bool or null; or a list of one of them.

Widths, dictionaries and views are details of storage and vanish here, and so do decimals, which databases write where
others write integers and floats. A ``time`` orders rows (:mod:`mixope.logs.sources.times`). Everything else (structs,
nested lists) is ``other``: neither has a meaning as an id or as a number, and the reader refuses it by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mixope.base.errors import Advice, DataError, Setting
from mixope.logs.schema import Type

Kind = Literal["int", "float", "string", "bool", "null", "list", "time", "other"]

LEAST, GREATEST = -(2**63), 2**63 - 1
AS_STRINGS = "store such ids as strings, or number them anew"
SURE_DIGITS = 18
"""Every whole number of so many digits fits into 64 bits."""

ACCEPTED: dict[Type, tuple[Kind, ...]] = {
    "int": ("int", "bool", "float", "null"),
    "float": ("float", "int", "bool", "null"),
    "string": ("string", "null"),
    "bool": ("bool", "int", "float", "null"),
}
"""Canonical type → the kinds that turn into it without loss (a float that holds whole numbers is an int with gaps)."""

EXPECTED: dict[Type, str] = {
    "int": "integers",
    "float": "numbers",
    "string": "strings, as the observations are",
    "bool": "true/false or 0/1",
}
"""Canonical type → what a message says was expected."""


@dataclass(frozen=True)
class Field:
    """A raw column: its kind, the stored type in words, and for lists the element's kind and the width (None: ragged).

    ``exact``: the stored type already is the canonical one (int64, float64, string, bool), so no cast is needed.
    ``text``: read from a text file, so a value can fail to be what its column is.
    ``decimal``: stored digit by digit. ``wide``: integers that may be beyond 64 bits, which no id can be.
    """

    kind: Kind
    words: str
    exact: bool = False
    text: bool = False
    element: Kind | None = None
    width: int | None = None
    decimal: bool = False
    wide: bool = False


def field_of(arrow_type: Any) -> Field:
    """The field of an Arrow type."""
    from pyarrow import types

    words = str(arrow_type)
    if types.is_dictionary(arrow_type):
        inner = field_of(arrow_type.value_type)
        return Field(inner.kind if inner.kind not in {"list", "time"} else "other", words)
    if _is_list(arrow_type):
        inner = field_of(arrow_type.value_type)
        nested = inner.kind in {"list", "time", "other", "null"}
        width = arrow_type.list_size if types.is_fixed_size_list(arrow_type) else None
        return Field("other", words) if nested else Field("list", words, element=inner.kind, width=width)
    kind = _scalar_kind(arrow_type)
    exact = kind in {"string", "bool"} or types.is_int64(arrow_type) or types.is_float64(arrow_type)
    decimal = types.is_decimal(arrow_type)
    wide = kind == "int" and (types.is_uint64(arrow_type) or (decimal and arrow_type.precision > SURE_DIGITS))
    return Field(kind, words, exact=exact, decimal=decimal, wide=wide)


def _is_list(arrow_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type))


def _scalar_kind(arrow_type: Any) -> Kind:
    from pyarrow import types

    string_view = getattr(types, "is_string_view", lambda _: False)
    if types.is_boolean(arrow_type):
        return "bool"
    if types.is_integer(arrow_type):
        return "int"
    if types.is_floating(arrow_type):
        return "float"
    if types.is_decimal(arrow_type) and not types.is_decimal256(arrow_type):  # DuckDB has none of so many digits
        return "float" if arrow_type.scale > 0 else "int"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or string_view(arrow_type):
        return "string"
    if types.is_timestamp(arrow_type) or types.is_date(arrow_type):
        return "time"
    return "null" if types.is_null(arrow_type) else "other"


def fields_of(schema: Any) -> dict[str, Field]:
    """The fields of an Arrow schema; a name that occurs twice has no usable field."""
    fields: dict[str, Field] = {}
    for column in schema:
        twice = column.name in fields
        fields[column.name] = Field("other", "several columns of this name") if twice else field_of(column.type)
    return fields


def settle(entries: Sequence[tuple[str, Field]], column: str) -> Literal["int", "float", "string"]:
    """The common kind of a column over (file, field); ints beside strings are refused, naming a file of each."""
    words = {field.kind: where for where, field in reversed(entries)}
    for where, field in entries:
        if field.kind == "float" and field.wide:
            raise beyond(where, column)
        if field.kind in {"other", "list", "time"}:
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


def unknown(where: str, column: str, field: Field, expected: str, notion: str | None = None) -> DataError:
    """A stored type that has no meaning here; ``notion``: what could do without the column."""
    leave = (", or leave it out: ", Setting("columns", {notion: None})) if notion else ()
    return DataError(
        f"unknown dtype {field.words!r}",
        where=where,
        column=column,
        expected=expected,
        got=field.words,
        hint=Advice("cast the column before it is read", *leave),
    )


def beyond(where: str, column: str) -> DataError:
    """Ids of a text file that no integer of 64 bits can be: as floats, two of them could become one."""
    return DataError(
        "The ids are whole numbers beyond 64 bits",
        where=where,
        column=column,
        expected=f"integers from {LEAST} to {GREATEST}, or strings",
        hint=AS_STRINGS,
    )
