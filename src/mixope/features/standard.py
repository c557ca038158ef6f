"""Standardising: every column to mean 0 and standard deviation 1. A column that does not vary is left at 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import DataError
from mixope.features.protocol import as_vectors, namespace
from mixope.logs import LARGE


@dataclass(frozen=True)
class Standardise:
    """z = (s − mean)/sd."""

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
        spread = values.std(axis=0)
        return FittedStandard(values.mean(axis=0), np.where(spread > 1e-12, spread, 1.0))


@dataclass(frozen=True)
class FittedStandard:
    """Mean and scale of every column."""

    mean: FloatArray
    scale: FloatArray

    @property
    def size(self) -> int:
        """As many features as columns."""
        return len(self.mean)

    def transform(self, observations: AnyArray) -> FloatArray:
        """Standardised columns."""
        rows = as_vectors(observations, len(self.mean))
        xp = namespace(rows)
        kind = rows.dtype if "float" in str(rows.dtype) else np.float64  # integers have no halves
        result: FloatArray = (rows - xp.asarray(self.mean, dtype=kind)) / xp.asarray(self.scale, dtype=kind)
        return result
