"""Encoding: the columns of a state as numbers for a learner, each by its role.

    number     (x − mean)/sd over the rows where it is known (:mod:`mixope.features.standard`); a missing one is 0
    missing    1 where the number before it is missing, else 0
    category   one column per level; levels that few rows have share one, and so do those never seen

Columns that do not vary are left out. A state without roles is all numbers where it is floats, all categories where it
is ids or factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, positions
from mixope.base.errors import DataError
from mixope.features.protocol import FeatureMap, FittedMap, as_rows
from mixope.features.standard import ROUNDING, Standardise
from mixope.logs import Role

MOST_LEVELS = 64
"""A category has a column for each of so many levels, the most frequent ones."""
FEWEST_ROWS = 5
"""A level that fewer rows have shares a column with others like it."""


@dataclass(frozen=True)
class StateEncoding:
    """What ``fit`` took from a sample: centre and scale of the numbers, the levels of the categories."""

    roles: tuple[Role, ...]
    mean: FloatArray
    scale: FloatArray
    """Not a number where a number does not vary: it has no column."""
    low: FloatArray
    high: FloatArray
    """Lines to which numbers are held."""
    levels: tuple[AnyArray, ...]
    """Of each category, those with a column of their own, the most frequent first; of other columns none."""
    pooled: tuple[bool, ...]
    """Whether a category has a column for all other levels."""

    @classmethod
    def fit(cls, observations: AnyArray, roles: Sequence[Role] | None = None) -> StateEncoding:
        """From the states of a sample; ``roles`` says what each column is, where floats are more than numbers."""
        columns, known = _columns(observations), _roles(observations, roles)
        mean, scale = np.zeros(len(known)), np.full(len(known), np.nan)
        low, high = np.full(len(known), -np.inf), np.full(len(known), np.inf)
        levels: list[AnyArray] = []
        pooled = []
        for k, role in enumerate(known):
            kept, rest = _frequent(columns[k]) if role in {"category", "id"} else (np.zeros(0), False)
            levels.append(kept)
            pooled.append(rest)
            if role == "number":
                mean[k], scale[k], low[k], high[k] = _moments(columns[k], present(columns, known, k))
            elif role == "missing":
                scale[k] = 1.0 if np.ptp(columns[k]) > 0 else np.nan
        return cls(known, mean, scale, low, high, tuple(levels), tuple(pooled))

    @property
    def size(self) -> int:
        """How many columns the encoding has."""
        return sum(self._width(k) for k in range(len(self.roles)))

    @property
    def source(self) -> tuple[int, ...]:
        """The column of the state from which each column of the encoding is made."""
        return tuple(k for k in range(len(self.roles)) for _ in range(self._width(k)))

    def transform(self, observations: AnyArray) -> FloatArray:
        """The encoded states, shape (n, size)."""
        columns = _columns(observations)
        if len(columns) != len(self.roles):
            expected = f"{len(self.roles)} columns"
            raise DataError("the states have another shape", expected=expected, got=f"{len(columns)}")
        parts = [np.zeros((len(observations), 0)), *(self._part(columns, k) for k in range(len(columns)))]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def _width(self, k: int) -> int:
        if self.roles[k] in {"category", "id"}:
            return len(self.levels[k]) + self.pooled[k]
        return int(np.isfinite(self.scale[k]))

    def _part(self, columns: Sequence[AnyArray], k: int) -> FloatArray:
        n = len(columns[k])
        if self._width(k) == 0:
            return np.zeros((n, 0))
        if self.roles[k] in {"category", "id"}:
            order = np.argsort(self.levels[k])
            code = positions(columns[k], self.levels[k][order])
            code = np.where(code < 0, len(order), np.append(order, 0)[code])
            return np.asarray(code[:, None] == np.arange(self._width(k)), dtype=np.float64)
        known = present(columns, self.roles, k)
        values = np.clip(columns[k].astype(np.float64), self.low[k], self.high[k])
        standard = (values - self.mean[k]) / self.scale[k]
        return np.where(known, standard, 0.0)[:, None]


@dataclass(frozen=True)
class FittedEncoded:
    """A fitted map of encoded states."""

    encoding: StateEncoding
    inner: FittedMap

    @property
    def size(self) -> int:
        """Of the map."""
        return self.inner.size

    def transform(self, observations: AnyArray) -> FloatArray:
        """φ of every row."""
        return self.inner.transform(self.encoding.transform(observations))


def fit_encoded(features: FeatureMap, observations: AnyArray, roles: Sequence[Role] | None, seed: int = 0) -> FittedMap:
    """Features of the states as they are, or of their encoding where their columns have roles."""
    if roles is None:
        return features.fit(observations, seed)
    encoding = StateEncoding.fit(observations, roles)
    return FittedEncoded(encoding, features.fit(encoding.transform(observations), seed))


def standardised(observations: AnyArray, roles: Sequence[Role] | None) -> FittedMap:
    """The columns of a state on a common scale, one-hot where they are categories."""
    return Standardise().fit(observations) if roles is None else StateEncoding.fit(observations, roles)


def present(columns: Sequence[AnyArray], roles: Sequence[Role], k: int) -> BoolArray:
    """Where column k has a value: everywhere, unless the column after it says that some are missing."""
    if k + 1 < len(roles) and roles[k + 1] == "missing":
        return np.asarray(columns[k + 1] == 0)
    return np.ones(len(columns[k]), dtype=bool)


def _columns(observations: AnyArray) -> list[AnyArray]:
    """The columns of a state; words as text of fixed width, which can be sorted and hashed."""
    rows = np.asarray(as_rows(observations))
    if rows.dtype.kind != "O":
        return list(rows.T)
    plain = [np.array(column.tolist()) for column in rows.T]
    return [column if column.dtype.kind in "iufbU" else column.astype(str) for column in plain]


def _roles(observations: AnyArray, roles: Sequence[Role] | None) -> tuple[Role, ...]:
    if roles is not None:
        return tuple(roles)
    rows = as_rows(observations)
    role: Role = "number" if rows.dtype.kind == "f" else "category"
    return (role,) * int(rows.shape[1])


def _moments(column: AnyArray, known: BoolArray) -> tuple[float, float, float, float]:
    """Mean, scale and lines of the values that are known; the scale is not a number where nothing varies."""
    if not known.any():
        return 0.0, np.nan, -np.inf, np.inf
    fitted = Standardise().fit(column[known])
    mean, scale, low, high = (float(each[0]) for each in (fitted.mean, fitted.scale, fitted.low, fitted.high))
    varies = float(np.ptp(column[known])) > ROUNDING * float(np.abs(column[known]).max())
    return mean, scale if varies else np.nan, low, high


def _frequent(column: AnyArray) -> tuple[AnyArray, bool]:
    """The levels with a column of their own, and whether others share one; none where all rows are alike.

    The most frequent come first, so that what is made of them does not depend on how levels are called.
    """
    levels, count = np.unique(column, return_counts=True)
    if len(levels) < 2:
        return levels[:0], False
    often = np.argsort(-count, kind="stable")[:MOST_LEVELS]
    kept = often[count[often] >= FEWEST_ROWS]
    return levels[kept], len(kept) < len(levels)
