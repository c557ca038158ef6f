"""Array types used in signatures, so that a reader sees what an array holds."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


def sum_by(group: IntArray, values: FloatArray, n_groups: int = 0) -> FloatArray:
    """Σ values over the members of every group 0, 1, …; at least ``n_groups`` of them."""
    return np.asarray(np.bincount(group, weights=values, minlength=n_groups), dtype=np.float64)
