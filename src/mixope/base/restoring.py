"""From JSON back to records: the types of a record's fields say what its JSON must hold.

A number that did not exist was written as null; it comes back as NaN where the field is a number, and as None where the
field may be None. A record whose JSON is not simply its fields says how they follow from it, in a class method
``fields_of_json``. What does not fit is an error that names the place.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mixope.base.errors import DataError, clean

MOST_SHOWN = 60
"""Characters of a wrong value that a message shows."""
_PLAIN: Mapping[Any, tuple[tuple[type, ...], str]] = {
    float: ((int, float), "a number"),
    int: ((int,), "a whole number"),
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
}


def parsed(text: str | bytes) -> dict[str, Any]:
    """One JSON object; anything else is an error that says where it stops being one."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            "this is not JSON",
            where=f"line {error.lineno}, column {error.colno}",
            expected="what to_json() wrote, whole",
            got=f"{len(text):,} characters: {error.msg}",
            hint="perhaps the file was cut off, or edited by hand; write it again",
        ) from None
    except (UnicodeDecodeError, RecursionError, TypeError) as error:
        problem = "this is not JSON that can be read"
        raise DataError(problem, expected="what to_json() wrote, as UTF-8", got=clean(error)) from None
    if not isinstance(found, dict):
        raise DataError(
            "this JSON holds no record", expected="one object, {…}, as to_json() wrote it", got=_shown(found)
        )
    return found


def restore(kind: Any, value: Any, where: str) -> Any:
    """``value`` as a ``kind``: a record, an enumeration, a tuple, a mapping, a choice of these, or a plain value."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any or (isinstance(kind, type) and not _PLAIN.get(kind) and isinstance(value, kind)):
        return value
    if origin in (Union, types.UnionType):
        return _one_of(inside, value, where)
    if origin is Literal:
        return value if value in inside else _refuse(where, _listed(inside), value)
    if origin is tuple:
        return _tuple(inside, value, where)
    if origin is not None and issubclass(origin, Mapping):
        held = value if isinstance(value, Mapping) else _refuse(where, "an object, {…}", value)
        return {key: restore(inside[1], item, f"{where}.{key}") for key, item in held.items()}
    if kind in _PLAIN:
        return _plain(kind, value, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = [member.value for member in kind]
        return kind(value) if value in known else _refuse(where, _listed(known), value)
    return _record(kind, value, where) if is_dataclass(kind) else _refuse(where, "nothing: it is not written", value)


def _plain(kind: Any, value: Any, where: str) -> Any:
    """A number that did not exist is NaN; true and false are no numbers."""
    if kind is float and value is None:
        return math.nan
    accepted, words = _PLAIN[kind]
    fits = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
    return value if fits else _refuse(where, words, value)


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """The first that fits; where None is among them, null is None."""
    if value is None and types.NoneType in kinds:
        return None
    wrong: list[DataError] = []
    for kind in kinds:
        if kind is not types.NoneType:
            try:
                return restore(kind, value, where)
            except DataError as error:
                wrong.append(error)
    raise wrong[0]


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    """Of any length, or of one entry per kind."""
    if not isinstance(value, list | tuple):
        _refuse(where, "a list", value)
    every = [kinds[0]] * len(value) if kinds[-1] is ... else kinds
    if len(every) != len(value):
        _refuse(where, f"a list of {len(every)}", value)
    return tuple(restore(kind, item, f"{where}[{k}]") for k, (kind, item) in enumerate(zip(every, value, strict=True)))


def _record(kind: Any, value: Any, where: str) -> Any:
    """A dataclass from its fields; what is not written has its default."""
    if not isinstance(value, Mapping):
        _refuse(where, "an object, {…}", value)
    known = kind.fields_of_json(value) if hasattr(kind, "fields_of_json") else value
    hints, found = _hints(kind), {}
    for each in fields(kind):
        if each.name in known:
            found[each.name] = restore(hints[each.name], known[each.name], f"{where}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise DataError(
                f"the JSON of this record lacks {each.name!r}",
                where=where,
                expected="all that to_json() wrote",
                got=f"only {_listed(value)}",
            )
    return kind(**found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _refuse(where: str, expected: str, value: Any) -> Any:
    raise DataError("the JSON holds something else than was written", where=where, expected=expected, got=_shown(value))


def _shown(value: Any) -> str:
    words = clean(json.dumps(value, ensure_ascii=False, default=str))
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}…"


def _listed(names: Iterable[Any]) -> str:
    words = clean(", ".join(map(repr, names)))
    return words if len(words) <= 4 * MOST_SHOWN else f"{words[: 4 * MOST_SHOWN]}…"
