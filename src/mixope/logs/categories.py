"""States whose columns have roles of their own, as rows of numbers, and back.

A category is coded by a number that depends on its value alone, so that any process, batch or engine codes it alike:
1 + h/2⁴⁸, h the first 48 bits of a hash of its text. A code is exact in double precision, and as large as what stands
beside it, so that sums over states remain what they are for vectors. :class:`StateColumns` knows which value is behind
every code: with it the rows become columns by name again, which is how policies see them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray
from mixope.base.errors import Advice, DataError, Setting
from mixope.logs.schema import MISSING_NUMBER, Role, Schema

BYTES = 6
"""Of the hash: 48 bits, so that among ten thousand values two share a code once in five million logs."""
Value = str | int | float
_FEW = 20
"""A log of fewer rows says nothing on whether a category is an id."""


def codes_of(column: Any) -> FloatArray:
    """The codes of an Arrow column; not a number where it is null."""
    encoded = column.combine_chunks().dictionary_encode() if hasattr(column, "combine_chunks") else column
    encoded = encoded.dictionary_encode() if not hasattr(encoded, "indices") else encoded
    codes = np.array([*map(code_of, encoded.dictionary.to_pylist()), np.nan])
    return codes[np.asarray(encoded.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False), dtype=np.int64)]


@lru_cache(maxsize=100_000, typed=True)  # True and 1 are equal, and are not called the same
def code_of(value: Value) -> float:
    """1 + h/2⁴⁸; a float that is whole has the code of the integer."""
    whole = isinstance(value, float) and value.is_integer()
    text = str(int(value)) if whole else str(value)
    found = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=BYTES).digest(), "big")
    return 1.0 + found / float(1 << (8 * BYTES))


@dataclass(frozen=True)
class StateColumns:
    """The columns of a mixed state: name, role, and for a category the value behind every code."""

    names: tuple[str, ...]
    roles: tuple[Role, ...]
    values: tuple[Mapping[float, Value], ...]

    @classmethod
    def of(cls, schema: Schema, values: Sequence[Mapping[float, Value]]) -> StateColumns:
        """Of some logs, with the values of their categories in order."""
        names = tuple(name.partition(".")[2] or name for name in schema.observation)
        found = iter(values)
        each = tuple(next(found) if role in CODED else {} for role in schema.roles)
        return cls(names, schema.roles, each)

    def first(self, width: int) -> StateColumns:
        """The first of the columns alone."""
        return StateColumns(self.names[:width], self.roles[:width], self.values[:width])

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that policies see."""
        return tuple(name for name, role in zip(self.names, self.roles, strict=True) if role != "missing")

    @property
    def categories(self) -> tuple[str, ...]:
        """Those of them that are ids or categories."""
        return tuple(name for name, role in zip(self.names, self.roles, strict=True) if role in CODED)

    def named(self, observations: AnyArray) -> AnyArray:
        """Rows of numbers as a structured array: ``found["age"]``, ``found["ward"]``; a missing number is NaN."""
        columns = {name: self.column(observations, name) for name in self.shown}
        found = np.empty(len(observations), dtype=[(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            found[name] = column
        return found

    def column(self, observations: AnyArray, name: str) -> AnyArray:
        """One column as it was logged."""
        k = self.names.index(name)
        if self.roles[k] in CODED:
            return self._tables[k][1][self._places(observations[:, k], k)]
        column = np.array(observations[:, k], dtype=np.float64)
        if k + 1 < len(self.roles) and self.roles[k + 1] == "missing":
            column[observations[:, k + 1] != 0] = np.nan
        return column

    @cached_property
    def _tables(self) -> dict[int, tuple[FloatArray, AnyArray]]:
        """Sorted codes and their values, by the place of the column."""
        return {k: _table(self.values[k]) for k, role in enumerate(self.roles) if role in CODED}

    def _places(self, codes: FloatArray, k: int) -> IntArray:
        known = self._tables[k][0]
        place = np.clip(np.searchsorted(known, codes), 0, len(known) - 1)
        if (known[place] != codes).any():
            raise DataError(
                "A category has a value that the first scan of the logs did not find",
                column=self.names[k],
                hint="wait until nothing writes to these inputs (or copy them), and read them again",
            )
        return np.asarray(place, dtype=np.int64)

    def refuse_ids(self, n_rows: int) -> None:
        """A category that has as many values as there are rows tells no state from another."""
        for name, role, values in zip(self.names, self.roles, self.values, strict=True):
            if role == "category" and n_rows >= _FEW and len(values) >= 0.9 * n_rows:
                raise DataError(
                    "A category has a value of its own on nearly every row; it looks like an id",
                    column=name,
                    expected="a category, which several rows share",
                    got=f"{len(values):,} values on {n_rows:,} rows",
                    hint=Advice(
                        "leave the column out of the state: ",
                        Setting("columns", {"observation": [...]}),
                        ", or say that it is an id: ",
                        Setting("roles", {name: "id"}),
                    ),
                )


CODED: tuple[Role, ...] = ("category", "id")
"""The roles whose values are coded."""


def _table(values: Mapping[float, Value]) -> tuple[FloatArray, AnyArray]:
    """Codes in order, and the values: words as text, whole numbers as integers, or floats where some are missing."""
    codes = np.array(sorted(values))
    found = [values[code] for code in codes.tolist()]
    if all(isinstance(value, str) for value in found):
        return codes, np.array(found, dtype=np.str_)
    gaps = [value == MISSING_NUMBER for value in found]
    plain = np.array([np.nan if gap else value for value, gap in zip(found, gaps, strict=True)]) if any(gaps) else found
    return codes, np.asarray(plain)


def coded(values: Sequence[Value], column: str) -> dict[float, Value]:
    """Values by their codes."""
    found: dict[float, Value] = {}
    for value in values:
        code = code_of(value)
        _refuse_same(found.get(code, value), value, column)
        found[code] = value
    return found


def merge_values(mine: Mapping[float, Value], other: Mapping[float, Value], column: str) -> dict[float, Value]:
    """The values of both."""
    for code in mine.keys() & other.keys():
        _refuse_same(mine[code], other[code], column)
    return {**mine, **other}


def _refuse_same(one: Value, other: Value, column: str) -> None:
    """Two values with the same code cannot be told apart."""
    if one != other:
        raise DataError(
            "Two categories of the state cannot be told apart",
            column=column,
            got=f"{one!r} and {other!r}, whose codes are the same",
            hint="rename one of them",
        )
