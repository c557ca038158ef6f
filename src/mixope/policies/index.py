"""Finding keys by value, many at once, without a Python loop over rows.

Every column is ranked among its sorted distinct values by binary search. Factors are combined one column at a time:
``code ← code · m_j + rank_j``, then ranked again among the combinations that exist, so that codes stay below (distinct
keys) × (distinct values of one column) and never overflow, however many factors there are. Ranks follow the sorted
order of the keys, so they do not depend on the order in which the keys were given.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mixope.arrays import AnyArray, BoolArray, IntArray
from mixope.errors import DataError
from mixope.policies.keys import Keys
from mixope.policies.rows import plain


@final
class Levels:
    """The sorted distinct values of one column; ``rank`` finds values among them."""

    def __init__(self, values: AnyArray) -> None:
        self.values = np.unique(values)
        self._dense = self.values.dtype.kind == "i" and _is_range(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def rank(self, values: AnyArray) -> IntArray:
        """Position of every value among the levels; −1 where it is none of them."""
        if len(self.values) == 0:
            return np.full(len(values), -1, dtype=np.int64)
        if self._dense:
            low, high = self.values[0], self.values[-1]
            return np.where((values >= low) & (values <= high), values - low, -1)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, place, -1).astype(np.int64, copy=False)


def _is_range(values: IntArray) -> bool:
    """Whether sorted distinct integers have no hole; Python integers, because the span may exceed 64 bits."""
    return len(values) > 0 and int(values[-1]) - int(values[0]) + 1 == len(values)


@final
class KeyIndex:
    """Distinct keys and where each one first stood. ``noun`` ("state", "action") is used in errors."""

    def __init__(self, keys: Keys, noun: str) -> None:
        self.noun = noun
        self.kinds = keys.kinds
        self._levels = [Levels(column) for column in keys.columns]
        self._joint: list[Levels] = []
        self.codes = self._learn(keys)
        _, self.first = np.unique(self.codes, return_index=True)

    def __len__(self) -> int:
        return len(self.first)

    def _learn(self, keys: Keys) -> IntArray:
        """Rank of every key among the distinct keys, building the joint levels of factors on the way."""
        codes = self._levels[0].rank(keys.columns[0])
        for levels, column in zip(self._levels[1:], keys.columns[1:], strict=True):
            wide = codes * len(levels) + levels.rank(column)
            self._joint.append(Levels(wide))
            codes = self._joint[-1].rank(wide)
        return codes

    def repeated(self) -> BoolArray:
        """Which of the keys given had stood before."""
        repeated = np.ones(len(self.codes), dtype=bool)
        repeated[self.first] = False
        return repeated

    def encode(self, keys: Keys) -> IntArray:
        """Rank among the distinct keys for every key asked for; −1 where there is none."""
        if len(keys) == 0:
            return np.zeros(0, dtype=np.int64)
        self._check_same_kind(keys)
        codes = self._levels[0].rank(keys.columns[0])
        for levels, joint, column in zip(self._levels[1:], self._joint, keys.columns[1:], strict=True):
            rank = levels.rank(column)
            known = (codes >= 0) & (rank >= 0)
            codes = np.where(known, joint.rank(codes * len(levels) + rank), -1)
        return codes

    def find(self, keys: Keys) -> IntArray:
        """Position, in the order given at construction, of every key asked for; −1 where there is none."""
        codes = self.encode(keys)
        return np.where(codes >= 0, self.first[codes], -1) if len(self.first) else codes

    def _check_same_kind(self, keys: Keys) -> None:
        if len(keys.kinds) != len(self.kinds):
            raise DataError(
                f"the policy names {self.noun}s by {_width(self.kinds)}, the logs by {_width(keys.kinds)}",
                expected=f"{len(self.kinds)} column(s)",
                got=f"{len(keys.kinds)} column(s)",
                hint=f"give the policy the same {self.noun} columns as the logs",
            )
        for position, (here, there) in enumerate(zip(self.kinds, keys.kinds, strict=True)):
            if here != there:
                raise self._mismatch(position, here, there)

    def _mismatch(self, position: int, here: str, there: str) -> DataError:
        of = f" in factor {position}" if len(self.kinds) > 1 else ""
        recast = "int" if here == "integer" else "str"
        return DataError(
            f"the policy has {here} {self.noun}s{of}, the logs have {there}s",
            expected=f"{here}s, such as {plain(self._levels[position].values[0])}",
            hint=f"convert the logs with .astype({recast}), or build the policy with {there} {self.noun}s",
        )


def _width(kinds: tuple[str, ...]) -> str:
    return "one id" if len(kinds) == 1 else f"{len(kinds)} factors"
