"""Row quantities: the numbers a row contributes to sums, each defined once for SQL and once for NumPy.

Nulls and impossible values become NaN instead of being skipped, so a sum over bad rows is NaN and bad data is
noticed in the scan that had to be made anyway; :mod:`mixope.logs.checks` then finds the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.arrays import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Quantity:
    """A derived number of a row: which canonical column it reads, as SQL, and as a function of the column."""

    reads: str
    sql: str
    of: Callable[[FloatArray], FloatArray]


def _inverse(propensity: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
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
    "step": Quantity("step", "coalesce(CAST(step AS DOUBLE), 'nan'::DOUBLE)", _same),
}


def quantity_values(name: str, table: pa.Table) -> FloatArray:
    """The quantity of every row; a name that is not registered is a column (of a lookup) taken as it is."""
    quantity = QUANTITIES.get(name)
    column = table.column(quantity.reads if quantity else name)
    values = np.asarray(column.to_numpy(), dtype=np.float64)
    return quantity.of(values) if quantity else values


def quantity_sql(name: str) -> str:
    """The quantity as an SQL expression over canonical rows joined with a lookup."""
    quantity = QUANTITIES.get(name)
    return quantity.sql if quantity else f'"{name}"'
