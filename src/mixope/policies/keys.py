"""What names a state or an action: an integer, a string, or several of these together (factors).

Ids arrive in many dresses: any integer width, whole floats, fixed-width or object strings, ``(n, k)`` factors. Here
they become :class:`Keys`, columns of ``int64`` or ``str``, so that the rest compares like with like. An action may also
be one of a few floats, a dose say: where they are not all whole, its column is ``float64``. :class:`KeyIndex` finds
keys by value; the functions at the end show the first offending rows, which every error about rows needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, IntArray, TupleIndex
from mixope.base.errors import DataError

SHOWN = 5
"""How many offending rows or values an error shows."""
_LARGEST = np.iinfo(np.int64).max
_AS_STRINGS = "store ids of this size as strings"


@dataclass(frozen=True)
class Keys:
    """``n`` keys as columns, each ``int64``, ``float64`` or fixed-width ``str``. Plain ids have one column."""

    columns: tuple[AnyArray, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def kinds(self) -> tuple[str, ...]:
        """``"integer"``, ``"float"`` or ``"string"``, for every column."""
        return tuple({"U": "string", "f": "float"}.get(column.dtype.kind, "integer") for column in self.columns)

    def take(self, rows: AnyArray) -> Keys:
        """Some of the keys, in the order asked for."""
        return Keys(tuple(column[rows] for column in self.columns))

    def array(self) -> AnyArray:
        """``(n,)`` ids, or ``(n, k)`` factors: integers where all factors are, objects otherwise."""
        if len(self.columns) == 1:
            return self.columns[0]
        if "string" not in self.kinds:
            return np.stack(self.columns, axis=1)
        return np.stack([column.astype(object) for column in self.columns], axis=1)

    def show(self, rows: AnyArray) -> list[str]:
        """Some keys in words."""
        return [plain(key) for key in self.take(rows).array()]


def as_keys(values: Any, what: str, *, floats: bool = False) -> Keys:
    """Read ids ``(n,)`` or factors ``(n, k)``. ``what`` names them in errors: "states of the policy".

    With ``floats`` they may be numbers that are not whole, as actions may.
    """
    array = as_array(values, what)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise DataError(
            f"the {what} have the wrong shape", expected="(n,) ids or (n, k) factors", got=f"shape {array.shape}"
        )
    columns = [array] if array.ndim == 1 else [array[:, j] for j in range(array.shape[1])]
    return Keys(tuple(_as_ids(column, what, floats) for column in columns))


def as_actions(values: Any, what: str) -> Keys:
    """Read actions, which may be floats of a few values."""
    return as_keys(values, what, floats=True)


def as_array(values: Any, what: str) -> AnyArray:
    """An array of ids. A list may mix integers and strings, which NumPy would turn into strings: kept as objects."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"the {what} have rows of different lengths", expected="k factors in every row") from None
    if array.dtype.kind == "U" and not hasattr(values, "dtype"):
        array = np.array(values, dtype=object)
    return array


def rows_of(values: Any, what: str) -> AnyArray:
    """An array with one entry or more per row."""
    array: AnyArray = values if isinstance(values, np.ndarray) else as_array(values, what)
    if array.ndim == 0:
        raise DataError(f"the {what} have the wrong shape", expected="one row each", got="a single value")
    return array


def _as_ids(column: AnyArray, what: str, floats: bool) -> AnyArray:
    """One column as ``int64`` or ``str``, or as ``float64`` where that is allowed and needed."""
    match column.dtype.kind:
        case "i" | "b":
            return column.astype(np.int64)
        case "u":
            return _from_unsigned(column, what)
        case "f":
            return _from_floats(column, what, floats)
        case "U":
            return column
        case "S":
            return _decoded(column, what)
        case "O" | "T":
            return _from_objects(column.astype(object), what, floats)
    raise DataError(
        f"the {what} are of type {column.dtype}, which cannot name anything",
        expected="integers or strings",
        hint="turn them into strings",
    )


def _from_unsigned(column: AnyArray, what: str) -> IntArray:
    refuse(column > _LARGEST, f"the {what} have integers above 2**63 - 1", column, hint=_AS_STRINGS)
    return column.astype(np.int64)


def _from_floats(column: AnyArray, what: str, floats: bool) -> AnyArray:
    """Whole floats are integers that went through a float column; others are measurements, and name actions at most."""
    with np.errstate(over="ignore"):  # from longer floats; shorter ones cannot be compared with 2⁵³
        column = column.astype(np.float64)
    _refuse_missing(np.isnan(column), what)
    with np.errstate(invalid="ignore"):
        whole = (column == np.floor(column)) & (np.abs(column) < 2.0**53)
    if floats and np.isfinite(column).all() and not whole.all():
        return column + 0.0  # −0 is 0
    refuse(
        ~whole,
        f"the {what} are real numbers; a table can only hold ids",
        column,
        expected="integers or strings",
        hint="discretise them into ids, or give the policy as a callable",
    )
    return column.astype(np.int64)


def _from_objects(column: AnyArray, what: str, floats: bool) -> AnyArray:
    """An object column, which must hold one sort of id. The passes below run in C, not once per row in Python."""
    values = column.tolist()
    sorts = set(map(type, values))
    if all(issubclass(sort, str) for sort in sorts):
        return np.array(values, dtype=np.str_) if values else np.zeros(0, dtype=np.str_)
    if all(issubclass(sort, int | np.integer | np.bool_) for sort in sorts):
        return _from_integers(values, what)
    numbers = (float, np.floating)
    _refuse_missing(np.array([v is None or (isinstance(v, numbers) and np.isnan(v)) for v in values]), what)
    if all(issubclass(sort, int | np.integer | float | np.floating) for sort in sorts):
        return _from_floats(column.astype(np.float64), what, floats)
    if all(issubclass(sort, bytes) for sort in sorts):
        return _decoded(column.astype(np.bytes_), what)
    raise _mixed(column, sorts, what)


def _decoded(column: AnyArray, what: str) -> AnyArray:
    try:
        return np.char.decode(column, "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the {what} are bytes that are not UTF-8 text", expected="UTF-8", got=str(error)) from None


def _from_integers(values: list[int], what: str) -> IntArray:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        over = np.array([abs(value) > _LARGEST for value in values])
        raise DataError(
            f"the {what} have integers that do not fit in 64 bits",
            rows=first_rows(over),
            total=int(over.sum()),
            hint=_AS_STRINGS,
        ) from None


def _refuse_missing(missing: BoolArray, what: str) -> None:
    refuse(
        missing,
        f"the {what} have missing values",
        expected="an integer or a string in every row",
        hint="drop these rows, or give the missing ones an id of their own",
    )


def _mixed(column: AnyArray, sorts: set[type], what: str) -> DataError:
    names = sorted(sort.__name__ for sort in sorts)
    first = {type(value).__name__: row for row, value in reversed(list(enumerate(column)))}
    return DataError(
        f"the {what} mix values of different types" if len(names) > 1 else f"the {what} are of type {names[0]}",
        rows=sorted(first.values())[:SHOWN],
        expected="all integers or all strings",
        got=", ".join(f"{name} ({plain(column[first[name]])})" for name in names[:SHOWN]),
        hint="convert the column to strings",
    )


@final
class KeyIndex:
    """Distinct keys and where each one first stood. ``noun`` ("state", "action") is used in errors.

    ``codes`` number the keys given, ``first`` has the position of each number; numbers follow the sorted order of the
    keys, so they do not depend on the order in which the keys were given.
    """

    def __init__(self, keys: Keys, noun: str) -> None:
        self.noun, self.kinds = noun, keys.kinds
        self._tuples = TupleIndex(keys.columns)
        self.codes, self.first = self._tuples.codes, self._tuples.first
        self._example = keys.take(self.first[:1]).columns

    def __len__(self) -> int:
        return len(self.first)

    def repeated(self) -> BoolArray:
        """Which of the keys given had stood before."""
        repeated = np.ones(len(self.codes), dtype=bool)
        repeated[self.first] = False
        return repeated

    def find(self, keys: Keys) -> IntArray:
        """Position, in the order given at construction, of every key asked for; −1 where there is none."""
        if len(keys) == 0 or len(self) == 0:
            return np.full(len(keys), -1, dtype=np.int64)
        self._check_same_kind(keys)
        columns = [_as_kind(column, kind) for column, kind in zip(keys.columns, self.kinds, strict=True)]
        codes = self._tuples.find(columns)
        same = [found == column for found, column in zip(columns, keys.columns, strict=True)]
        return np.where((codes >= 0) & np.all(same, axis=0), self.first[codes], -1)

    def _check_same_kind(self, keys: Keys) -> None:
        if len(keys.kinds) != len(self.kinds):
            raise DataError(
                f"the policy names {self.noun}s by {_width(self.kinds)}, the logs by {_width(keys.kinds)}",
                expected=f"{len(self.kinds)} column(s)",
                got=f"{len(keys.kinds)} column(s)",
                hint=f"give the policy the same {self.noun} columns as the logs",
            )
        for position, (here, there) in enumerate(zip(self.kinds, keys.kinds, strict=True)):
            if "string" in (here, there) and here != there:
                raise self._mismatch(position, here, there)

    def _mismatch(self, position: int, here: str, there: str) -> DataError:
        of = f" in factor {position}" if len(self.kinds) > 1 else ""
        recast = "int" if here == "integer" else "str"
        return DataError(
            f"the policy has {here} {self.noun}s{of}, the logs have {there}s",
            expected=f"{here}s, such as {plain(self._example[position][0])}",
            hint=f"convert the logs with .astype({recast}), or build the policy with {there} {self.noun}s{self._how()}",
        )

    def _how(self) -> str:
        """A function of states says nowhere what its columns are called."""
        return "; of a function: CallablePolicy(function, actions=[…])" if self.noun == "action" else ""


def _as_kind(column: AnyArray, kind: str) -> AnyArray:
    """Numbers as the kind of those that they are looked up among: 1 is 1.0; 0.5 is cut, and then no longer the same."""
    if kind == "float" and column.dtype.kind == "i":
        return column.astype(np.float64)
    if kind != "integer" or column.dtype.kind != "f":
        return column
    whole = np.abs(column) < MOST_WHOLE  # neither is nan or infinity, and 0 is none of these
    return np.where(whole, column, 0.0).astype(np.int64)


MOST_WHOLE = 2.0**63
"""Integers of 64 bits are below."""


def _width(kinds: tuple[str, ...]) -> str:
    return "one id" if len(kinds) == 1 else f"{len(kinds)} factors"


def first_rows(offending: BoolArray) -> tuple[int, ...]:
    """Positions of the first few True values."""
    return tuple(int(row) for row in np.flatnonzero(offending)[:SHOWN])


def refuse(wrong: BoolArray, problem: str, values: AnyArray | None = None, **facts: Any) -> None:
    """An error about the rows that are ``wrong``, if there are any; it shows the first of their ``values``."""
    if wrong.any():
        if values is not None:
            value = values[wrong][0]
            facts["got"] = f"{value:.6g}" if isinstance(value, np.floating) else plain(value)
        raise DataError(problem, rows=first_rows(wrong), total=int(wrong.sum()), **facts)


def listed(values: Iterable[object] | AnyArray) -> str:
    """The first few values, comma separated, with an ellipsis where more follow."""
    values = list(values)
    more = ", …" if len(values) > SHOWN else ""
    return ", ".join(plain(value) for value in values[:SHOWN]) + more


def plain(value: object) -> str:
    """A value as a user would type it: ``3``, ``'left'``, ``(0, 'door')``, without NumPy's type names."""
    if isinstance(value, np.ndarray | tuple | list):
        return "(" + ", ".join(plain(part) for part in value) + ")"
    return repr(value.item() if isinstance(value, np.generic) else value)
