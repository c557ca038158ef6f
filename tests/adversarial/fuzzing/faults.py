"""What can be wrong with a log: a column of other values, type or shape; a table of other rows or names.

A fault of a column takes its values and a generator and returns what stands there instead, which need not be an array.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

Draw = np.random.Generator


def _rows(values: Any) -> int:
    try:
        return len(values)
    except TypeError:
        return 1


def axes(values: Any) -> int:
    """How many axes; none where the rows have different lengths."""
    try:
        return int(np.ndim(values))
    except ValueError:
        return 0


def _some(values: Any, draw: Draw, put: Any) -> Any:
    """The value at one row, or at several; floats become able to hold it, anything else holds objects."""
    array = np.array(values) if isinstance(put, float) and _is_number(values) else np.array(values, dtype=object)
    array = array.astype(float) if array.dtype.kind in "iubf" else array
    if array.ndim and len(array):
        array[draw.integers(0, len(array), draw.integers(1, 4))] = put
    return array


def _is_number(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iubf"


def _put(value: Any) -> Callable[[Any, Draw], Any]:
    return lambda values, draw: _some(values, draw, value)


def _full(value: Any) -> Callable[[Any, Draw], Any]:
    return lambda values, draw: np.array([value] * _rows(values))


def _objects(value: Any) -> Callable[[Any, Draw], Any]:
    return lambda values, draw: [value] * _rows(values)


def _cast(dtype: str) -> Callable[[Any, Draw], Any]:
    def cast(values: Any, draw: Draw) -> Any:
        try:
            return np.asarray(values).astype(dtype)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return np.zeros(_rows(values), dtype=dtype)

    return cast


def _masked(values: Any, draw: Draw) -> Any:
    array = np.asarray(values)
    return np.ma.masked_array(array, mask=draw.random(array.shape) < 0.3)


def _ragged(values: Any, draw: Draw) -> Any:
    return [list(range(int(k))) for k in draw.integers(0, 4, _rows(values))]


def _strided(values: Any, draw: Draw) -> Any:
    return np.repeat(np.asarray(values), 2, axis=0)[::2] if axes(values) else values


def _swapped(values: Any, draw: Draw) -> Any:
    array = np.asarray(values)
    return array.astype(array.dtype.newbyteorder(">")) if array.dtype.kind in "iuf" else array


def _categories(values: Any, draw: Draw) -> Any:
    import pandas as pd

    plain = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iubfU"
    return pd.Categorical(values.tolist()) if plain else values


def _nullable(values: Any, draw: Draw) -> Any:
    import pandas as pd

    return pd.array([None if draw.random() < 0.3 else int(i) for i in range(_rows(values))], dtype="Int64")


def _structured(values: Any, draw: Draw) -> Any:
    return np.zeros(_rows(values), dtype=[("x", "i8"), ("y", "f8")])


def _shuffled(values: Any, draw: Draw) -> Any:
    return draw.permutation(np.asarray(values)) if axes(values) else values


LIMITS = (2**63 - 1, -(2**63), 2**53 + 1, 2**31, -1, 0)

FAULTS: dict[str, Callable[[Any, Draw], Any]] = {
    **{f"some {v!r}": _put(v) for v in (np.nan, np.inf, -np.inf, 1e308, -1e308, 9e59, 1e-300, 5e-324, 0.5, -1.0)},
    **{f"some {name}": _put(v) for name, v in {"None": None, "text": "text", "nothing": "", "true": True}.items()},
    **{f"all {v!r}": _full(v) for v in (np.nan, np.inf, 0.0, 1.0, -1.0, 1e200, 1e-70, 0.5, True, False)},
    **{f"all {v}": _full(v) for v in LIMITS},
    **{f"text {v!r}": _full(v) for v in ("", "nan", "1", "a\0b", "\ud800", "'; DROP", "\u202ex", "x" * 3000, "é")},
    **{f"cast to {t}": _cast(t) for t in ("i1", "u1", "u8", "f2", "f4", "g", "c16", "?", "U1", "S3", "O", "V4")},
    **{f"cast to {t}": _cast(t) for t in ("M8[s]", "m8[s]")},
    "objects None": _objects(None),
    "objects dates": _objects(date(2026, 11, 16)),
    "objects times": _objects(datetime(2026, 11, 16)),
    "objects decimals": _objects(Decimal("0.5")),
    "objects fractions": _objects(Fraction(1, 2)),
    "objects huge integers": _objects(2**70),
    "objects bytes": _objects(b"\xff\x00"),
    "objects tuples": _objects((1, "a")),
    "objects sets": _objects({1}),
    "objects dicts": _objects({"a": 1}),
    "objects functions": _objects(len),
    "objects lists": _objects([0.5, 1.5]),
    "objects empty lists": _objects([]),
    "objects lists of lists": _objects([[1], [2]]),
    "objects lists with None": _objects([1.0, None]),
    "objects NumPy scalars": _objects(np.float32(1.5)),
    "objects NaT": _objects(np.datetime64("NaT")),
    "objects complex": _objects(1j),
    "no array": lambda values, draw: None,
    "one number": lambda values, draw: 3,
    "one text": lambda values, draw: "abc",
    "a function": lambda values, draw: len,
    "a generator": lambda values, draw: (i for i in range(_rows(values))),
    "a range": lambda values, draw: range(_rows(values)),
    "a dict": lambda values, draw: {"x": values},
    "an empty dict": lambda values, draw: {},
    "empty": lambda values, draw: np.asarray(values)[:0] if axes(values) else [],
    "an empty list": lambda values, draw: [],
    "one short": lambda values, draw: values[:-1] if axes(values) else values,
    "one long": lambda values, draw: np.concatenate([values, values[:1]]) if axes(values) else values,
    "a column": lambda values, draw: np.asarray(values).reshape(-1, 1),
    "a row": lambda values, draw: np.asarray(values)[None],
    "two columns": lambda values, draw: np.stack([np.ravel(np.asarray(values))] * 2, axis=1),
    "no columns": lambda values, draw: np.zeros((_rows(values), 0)),
    "three axes": lambda values, draw: np.zeros((_rows(values), 2, 2)),
    "no axes": lambda values, draw: np.array(1.0),
    "masked": _masked,
    "masked whole": lambda values, draw: np.ma.masked_all(_rows(values)),
    "ragged": _ragged,
    "strided": _strided,
    "backwards": lambda values, draw: values[::-1] if axes(values) else values,
    "other bytes first": _swapped,
    "shuffled": _shuffled,
    "categories": _categories,
    "nullable": _nullable,
    "structured": _structured,
    "a matrix": lambda values, draw: draw.normal(size=(_rows(values), 3)),
    "random floats": lambda values, draw: draw.normal(size=_rows(values)),
    "random integers": lambda values, draw: draw.integers(-3, 4, _rows(values)),
    "random flags": lambda values, draw: draw.random(_rows(values)) < 0.5,
    "far apart": lambda values, draw: 10.0 ** draw.integers(-58, 59, _rows(values)),
    "offset": lambda values, draw: np.asarray(values) + 1e6 if _is_number(values) else values,
}


def spoil(values: Any, name: str, seed: int) -> Any:
    """The values after a fault; as they are, where NumPy or pandas do not let it happen to them."""
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore")
        return FAULTS[name](values, np.random.default_rng(seed))
    return values


# --- faults of the whole table

Columns = dict[Any, Any]


def _each(take: Callable[[Any, Draw, int], Any]) -> Callable[[Columns, Draw], Columns]:
    """The same rows of every column that has rows."""

    def change(columns: Columns, draw: Draw) -> Columns:
        seed = int(draw.integers(2**32))
        return {
            name: take(values, np.random.default_rng(seed), len(values))
            if isinstance(values, np.ndarray) and values.ndim
            else values
            for name, values in columns.items()
        }

    return change


def _renamed(old: str, new: Any) -> Callable[[Columns, Draw], Columns]:
    return lambda columns, draw: {new if name == old else name: values for name, values in columns.items()}


def _without(name: str) -> Callable[[Columns, Draw], Columns]:
    return lambda columns, draw: {key: v for key, v in columns.items() if not str(key).startswith(name)}


def _added(name: Any, like: str = "reward") -> Callable[[Columns, Draw], Columns]:
    return lambda columns, draw: {**columns, name: columns.get(like, next(iter(columns.values()), None))}


TABLE_FAULTS: dict[str, Callable[[Columns, Draw], Columns]] = {
    "rows shuffled": _each(lambda values, draw, n: values[draw.permutation(n)]),
    "rows repeated": _each(lambda values, draw, n: np.concatenate([values, values])),
    "rows dropped": _each(lambda values, draw, n: values[draw.random(n) < 0.7]),
    "rows backwards": _each(lambda values, draw, n: values[::-1]),
    "no rows": _each(lambda values, draw, n: values[:0]),
    "one row": _each(lambda values, draw, n: values[:1]),
    **{f"without {name}": _without(name) for name in ("observation", "action", "reward", "episode_id", "step")},
    "without anything": lambda columns, draw: {},
    "alias of the reward": _renamed("reward", "R"),
    "alias of the state": _renamed("observation", "obs"),
    "a lone done": _renamed("terminated", "done"),
    "ends under each other's names": lambda columns, draw: {
        {"terminated": "truncated", "truncated": "terminated"}.get(name, name): v for name, v in columns.items()
    },
    "two rewards": _added("rewards"),
    "two states": _added("state", "action"),
    "plain prob": _added("prob", "action"),
    "times": _added("timestamp", "step"),
    "a column of no name": _added(""),
    "a column of a number": _added(3),
    "a column None": _added(None),
    "a quoted column": _added('a"b'),
    "a column of a control character": _added("re\x1b[31mward"),
    "a column of a lone surrogate": _added("\ud800"),
    "half a factor": _added("observation.", "action"),
    "a factor of a factor": _added("observation.x.y", "action"),
    "a factor beside the state": _added("observation.z", "action"),
    "a next factor alone": _added("next_observation.z", "action"),
    "names in capitals": lambda columns, draw: {str(name).upper(): v for name, v in columns.items()},
    "names doubled by case": lambda columns, draw: {**columns, "REWARD": columns.get("reward")},
    "all rewards one": lambda columns, draw: {**columns, "reward": np.ones(_rows(columns.get("reward", [1])))},
}
