"""What names a state or an action: an integer, a string, or several of these together (factors).

Ids arrive in many dresses: any integer width, whole floats, fixed-width or object strings, ``(n, k)`` factors. Here
they become :class:`Keys`, columns of ``int64`` or ``str``, so that the rest compares like with like. ``index.py`` looks
them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.arrays import AnyArray, IntArray
from mixope.errors import DataError
from mixope.policies.rows import SHOWN, first_rows, plain

_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Keys:
    """``n`` keys as columns, each ``int64`` or fixed-width ``str``. Plain ids have one column."""

    columns: tuple[AnyArray, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def kinds(self) -> tuple[str, ...]:
        """``"integer"`` or ``"string"``, for every column."""
        return tuple("string" if column.dtype.kind == "U" else "integer" for column in self.columns)

    def take(self, rows: AnyArray) -> Keys:
        """Some of the keys, in the order asked for."""
        return Keys(tuple(column[rows] for column in self.columns))

    def array(self) -> AnyArray:
        """``(n,)`` ids, or ``(n, k)`` factors: integers where all factors are, objects otherwise."""
        if len(self.columns) == 1:
            return self.columns[0]
        if set(self.kinds) == {"integer"}:
            return np.stack(self.columns, axis=1)
        return np.stack([column.astype(object) for column in self.columns], axis=1)

    def show(self, rows: AnyArray) -> list[str]:
        """Some keys in words."""
        return [plain(key) for key in self.take(rows).array()]


def as_keys(values: Any, what: str) -> Keys:
    """Read ids ``(n,)`` or factors ``(n, k)``. ``what`` names them in errors: "states of the policy"."""
    array = as_array(values, what)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise DataError(
            f"the {what} have the wrong shape",
            expected="(n,) ids or (n, k) factors",
            got=f"shape {array.shape}",
        )
    columns = [array] if array.ndim == 1 else [array[:, j] for j in range(array.shape[1])]
    return Keys(tuple(_as_ids(column, what) for column in columns))


def as_array(values: Any, what: str) -> AnyArray:
    """An array of ids. A list may mix integers and strings, which NumPy would turn into strings: kept as objects."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"the {what} have rows of different lengths", expected="k factors in every row") from None
    if array.dtype.kind == "U" and not hasattr(values, "dtype"):
        array = np.array(values, dtype=object)
    return array


def _as_ids(column: AnyArray, what: str) -> AnyArray:
    """One column as ``int64`` or ``str``."""
    match column.dtype.kind:
        case "i" | "b":
            return column.astype(np.int64)
        case "u":
            return _from_unsigned(column, what)
        case "f":
            return _from_floats(column, what)
        case "U":
            return column
        case "S":
            return _decoded(column, what)
        case "O" | "T":
            return _from_objects(column.astype(object), what)
    raise DataError(
        f"the {what} are of type {column.dtype}, which cannot name anything",
        expected="integers or strings",
        hint="turn them into strings",
    )


def _from_unsigned(column: AnyArray, what: str) -> IntArray:
    over = column > _LARGEST
    if over.any():
        raise DataError(
            f"the {what} have integers above 2**63 - 1",
            rows=first_rows(over),
            total=int(over.sum()),
            got=int(column[over][0]),
            hint="store ids of this size as strings",
        )
    return column.astype(np.int64)


def _from_floats(column: AnyArray, what: str) -> IntArray:
    """Whole floats are integers that went through a float column; others are measurements, not names."""
    missing = np.isnan(column)
    if missing.any():
        _refuse_missing(missing, what)
    with np.errstate(invalid="ignore"):
        whole = (column == np.floor(column)) & (np.abs(column) < 2.0**53)
    if not whole.all():
        raise DataError(
            f"the {what} are real numbers; a table can only hold ids",
            rows=first_rows(~whole),
            total=int((~whole).sum()),
            expected="integers or strings",
            got=plain(column[~whole][0]),
            hint="discretise them into ids, or give the policy as a callable",
        )
    return column.astype(np.int64)


def _from_objects(column: AnyArray, what: str) -> AnyArray:
    """An object column, which must hold one sort of id. The passes below run in C, not once per row in Python."""
    values = column.tolist()
    sorts = set(map(type, values))
    if all(issubclass(sort, str) for sort in sorts):
        return np.array(values, dtype=np.str_) if values else np.zeros(0, dtype=np.str_)
    if all(issubclass(sort, int | np.integer | np.bool_) for sort in sorts):
        return _from_integers(values, what)
    _check_present(column, what)
    if all(issubclass(sort, int | np.integer | float | np.floating) for sort in sorts):
        return _from_floats(column.astype(np.float64), what)
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
            hint="store ids of this size as strings",
        ) from None


def _check_present(column: AnyArray, what: str) -> None:
    missing = np.array(
        [value is None or (isinstance(value, float | np.floating) and np.isnan(value)) for value in column]
    )
    if missing.any():
        _refuse_missing(missing, what)


def _refuse_missing(missing: AnyArray, what: str) -> None:
    raise DataError(
        f"the {what} have missing values",
        rows=first_rows(missing),
        total=int(missing.sum()),
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
