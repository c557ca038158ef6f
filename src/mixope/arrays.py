"""Array types used in signatures, so that a reader sees what an array holds."""

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


def digest_arrays(arrays: Sequence[AnyArray]) -> str:
    """A short hash of the content of some arrays, to tell statistics of different questions apart."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def sum_by(group: IntArray, values: FloatArray, n_groups: int = 0) -> FloatArray:
    """Σ values over the members of every group 0, 1, …; at least ``n_groups`` of them."""
    return np.asarray(np.bincount(group, weights=values, minlength=n_groups), dtype=np.float64)
