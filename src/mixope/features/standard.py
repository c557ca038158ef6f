"""Standardising: every column to mean 0 and standard deviation 1. A column that does not vary is left at 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.errors import DataError
from mixope.features.protocol import namespace


@dataclass(frozen=True)
class Standardise:
    """z = (s − mean)/sd."""

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedStandard:
        """Mean and standard deviation of a sample; NaN and infinity are refused."""
        values = np.asarray(observations, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise DataError(
                "the state has values that are not finite numbers",
                column="observation",
                rows=bad[:5].tolist(),
                total=len(bad),
                expected="finite numbers",
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
        xp = namespace(observations)
        kind = observations.dtype if "float" in str(observations.dtype) else np.float64  # integers have no halves
        result: FloatArray = (observations - xp.asarray(self.mean, dtype=kind)) / xp.asarray(self.scale, dtype=kind)
        return result
