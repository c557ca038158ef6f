"""Row quantities: the numbers a row contributes to sums, each defined once for SQL and once for NumPy.

Nulls and impossible values become NaN instead of being skipped, so a sum over bad rows is NaN and bad data is
noticed in the scan that had to be made anyway; :mod:`mixope.logs.checks` then finds the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.logs import UNFOLLOWED

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Quantity:
    """A derived number of a row: which canonical column it reads, as SQL, and as a function of the column."""

    reads: str
    sql: str
    of: Callable[[FloatArray], FloatArray]


def _inverse(propensity: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where((propensity > 0) & (propensity <= 1), 1.0 / propensity, np.nan)


def _missing(propensity: FloatArray) -> FloatArray:
    return np.isnan(propensity).astype(np.float64)


def _same(values: FloatArray) -> FloatArray:
    return values


QUANTITIES: dict[str, Quantity] = {
    "reward": Quantity("reward", "coalesce(reward, 'nan'::DOUBLE)", _same),
    "inverse": Quantity(
        "propensity",
        "CASE WHEN propensity > 0 AND propensity <= 1 THEN 1.0 / propensity ELSE 'nan'::DOUBLE END",
        _inverse,
    ),
    "no_propensity": Quantity(
        "propensity", "CASE WHEN propensity IS NULL OR isnan(propensity) THEN 1.0 ELSE 0.0 END", _missing
    ),
    "start": Quantity("start", "CAST(start AS DOUBLE)", _same),
    UNFOLLOWED: Quantity(UNFOLLOWED, f"CAST({UNFOLLOWED} AS DOUBLE)", _same),
    "step": Quantity("step", "coalesce(CAST(step AS DOUBLE), 'nan'::DOUBLE)", _same),
}


MARK = "mark"
"""The quantity that is a random number below ``MARKS`` for every step, by which sums depend on the order of rows."""
MARKS = 65_536
_STRETCH = 314.1592653589793


def _marks(step: FloatArray) -> FloatArray:
    """Digits of a square root: no sum of some of them is the sum of others."""
    x = np.sqrt(np.abs(step) + 1.0) * _STRETCH
    return np.asarray(np.floor((x - np.floor(x)) * MARKS))


_ROOT = f"(sqrt(abs(coalesce(CAST(step AS DOUBLE), 'nan'::DOUBLE)) + 1.0) * {_STRETCH!r}::DOUBLE)"
QUANTITIES[MARK] = Quantity("step", f"floor(({_ROOT} - floor({_ROOT})) * {float(MARKS)})", _marks)


_DISCOUNT, _WITHIN, _ABOVE = "discount", "within", "above"


def discount(gamma: float, base: int) -> str:
    """The name of the quantity γᵗ, t being the steps since ``base``."""
    return f"{_DISCOUNT} {gamma!r} {base}"


def within(horizon: int, base: int) -> str:
    """The name of the quantity that is 1 on the first ``horizon`` steps from ``base``, and 0 later."""
    return f"{_WITHIN} {horizon} {base}"


def above(least: float) -> str:
    """The name of the quantity (r − least)⁺: what a reward is more than that."""
    return f"{_ABOVE} {least!r}"


def quantity(name: str) -> Quantity | None:
    """What a name stands for; one that stands for nothing is a column (of a lookup)."""
    family, *given = name.split(" ")
    if family == _DISCOUNT and len(given) == 2:
        gamma, base = float(given[0]), int(given[1])
        return Quantity("step", f"pow({gamma!r}::DOUBLE, {_steps(base)})", lambda step: gamma ** (step - base))
    if family == _WITHIN and len(given) == 2:
        last = int(given[0]) + int(given[1])
        sql = f"CASE WHEN step IS NULL THEN 'nan'::DOUBLE WHEN step < {last} THEN 1.0 ELSE 0.0 END"
        return Quantity("step", sql, lambda step: np.where(np.isnan(step), np.nan, step < last))
    if family == _ABOVE and len(given) == 1:
        least = float(given[0])
        more = f"reward - ({least!r}::DOUBLE)"
        sql = f"CASE WHEN reward > {least!r}::DOUBLE THEN {more} WHEN reward IS NULL THEN 'nan'::DOUBLE ELSE 0.0 END"
        return Quantity("reward", sql, lambda reward: np.maximum(reward - least, 0.0))
    return QUANTITIES.get(name)


def _steps(base: int) -> str:
    return f"(coalesce(CAST(step AS DOUBLE), 'nan'::DOUBLE) - ({base}))"


def quantity_values(name: str, table: pa.Table) -> FloatArray:
    """The quantity of every row; a name that is not registered is a column (of a lookup) taken as it is."""
    found = quantity(name)
    column = table.column(found.reads if found else name)
    values = np.asarray(column.to_numpy(), dtype=np.float64)
    return found.of(values) if found else values


def quantity_sql(name: str) -> str:
    """The quantity as an SQL expression over canonical rows joined with a lookup."""
    found = quantity(name)
    return found.sql if found else f'"{name}"'
