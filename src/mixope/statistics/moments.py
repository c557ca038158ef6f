"""Moments: named arrays that add up over rows. A commutative monoid: merging adds, ``zero`` has nothing in it.

Everything a feature estimator needs of the logs is such a sum (C − γB, e, g, h, calibration and LSTD moments), so the
same code runs batch by batch in memory, out of core and on a GPU, with memory that does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError


@dataclass(frozen=True)
class Moments:
    """Sums over ``n_rows`` rows; ``belongs_to`` names the pass, features, target and behaviour behind them."""

    arrays: Mapping[str, FloatArray] = field(default_factory=dict)
    n_rows: int = 0
    belongs_to: str = ""

    def __getitem__(self, name: str) -> FloatArray:
        return self.arrays[name]

    def merge(self, other: Moments) -> Moments:
        """Add arrays of the same name, in float64."""
        if self.n_rows == 0 or other.n_rows == 0:
            return self if other.n_rows == 0 else other
        if self.belongs_to != other.belongs_to or self.arrays.keys() != other.arrays.keys():
            raise UsageError("these moments belong to different features, targets or behaviours and cannot be merged")
        added = {name: _wide(self.arrays[name]) + _wide(other.arrays[name]) for name in self.arrays}
        return Moments(added, self.n_rows + other.n_rows, self.belongs_to)


def _wide(array: FloatArray) -> FloatArray:
    return np.asarray(array, dtype=np.float64)
