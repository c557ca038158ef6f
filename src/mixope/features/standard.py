"""Standardising: every column to mean 0 and standard deviation 1. A column that does not vary is left at 0.

Here, and nowhere else, is decided what the unit of a column is: a change of it changes nothing. A few values far beyond
all others (−999 for what was not measured, a decimal point that slipped) would make everything else one point: what
lies more than 25 quartile ranges outside the quartiles is held to that line, for the unit and for the state alike.
Columns without such values are not touched; one whose quartiles are equal has no such line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError
from mixope.features.protocol import as_vectors, namespace
from mixope.logs import LARGE

FAR = 25.0
"""Quartile ranges: of a normal column 34 standard deviations, of a lognormal one (σ = 1) what one row in 10⁴ passes."""
ROUNDING = 1e-13


@dataclass(frozen=True)
class Standardise:
    """z = (s − mean)/sd, s held to its lines."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedStandard:
        """Mean and standard deviation of a sample; NaN and infinity are refused."""
        values = np.asarray(as_vectors(observations), dtype=np.float64)
        if len(values) == 0:
            raise DataError("there are no states to fit features to", column="observation", expected="at least one")
        bad = np.flatnonzero(~(np.abs(values) < LARGE).all(axis=1))  # so is NaN
        if len(bad):
            raise DataError(
                "the state has values that are not finite numbers, or too large to compute with",
                column="observation",
                rows=bad[:5].tolist(),
                total=len(bad),
                expected=f"finite numbers below {LARGE:g}",
                got=values[bad[0]].tolist(),
                hint="fill or drop these rows before evaluating",
            )
        return FittedStandard(*units_of(values))


def units_of(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, scale and lines of every column of (n, d); the scale of a column that does not vary is 1.

    Spread that is rounding beside the size of the values is none.
    """
    first, third = np.quantile(values, (0.25, 0.75), axis=0)
    reach = np.where(third > first, FAR * (third - first), np.inf)
    low, high = first - reach, third + reach
    held = np.clip(values, low, high)
    spread = held.std(axis=0)
    varies = spread > ROUNDING * np.abs(held).max(axis=0)
    return held.mean(axis=0), np.where(varies, spread, 1.0), low, high


@dataclass(frozen=True)
class FittedStandard:
    """Mean and scale of every column, and the lines to which its values are held."""

    mean: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def size(self) -> int:
        """As many features as columns."""
        return len(self.mean)

    def transform(self, observations: AnyArray) -> FloatArray:
        """Standardised columns."""
        rows = as_vectors(observations, len(self.mean))
        xp = namespace(rows)
        kind = rows.dtype if "float" in str(rows.dtype) else np.float64  # integers have no halves
        rows = xp.clip(rows, xp.asarray(self.low, dtype=kind), xp.asarray(self.high, dtype=kind))
        result: FloatArray = (rows - xp.asarray(self.mean, dtype=kind)) / xp.asarray(self.scale, dtype=kind)
        return result
