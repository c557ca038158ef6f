"""Array types used in signatures, so that a reader sees what an array holds, and what every room does with arrays."""

import hashlib
import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from numbers import Integral, Real
from typing import IO, Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from mixope.base.errors import MOST_BYTES, DataError

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


def is_number(value: object) -> bool:
    """Whether it is one real number, and neither true nor false."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Whether it is one whole number, and neither true nor false."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def short_seed(seed: int) -> int:
    """A seed of 64 bits as scikit-learn takes it, which has 32; shorter ones as they are."""
    return seed % 2**32


def batches(items: IntArray, width: int, entries: int = 4_000_000) -> list[IntArray]:
    """Items in batches small enough for a table of that width."""
    step = max(1, entries // max(width, 1))
    return [items[i : i + step] for i in range(0, len(items), step)]


def sum_by(group: IntArray, values: FloatArray, n_groups: int = 0) -> FloatArray:
    """Σ values over the members of every group 0, 1, …; at least ``n_groups`` of them."""
    return np.asarray(np.bincount(group, weights=values, minlength=n_groups), dtype=np.float64)


def distinct(codes: IntArray, n_codes: int) -> tuple[IntArray, IntArray]:
    """The codes that occur, rising, and the place of every code among them: without sorting where that saves time.

    Codes are 0 … ``n_codes`` − 1.
    """
    if n_codes > _MOST_ABSENT * len(codes):
        found, place = np.unique(codes, return_inverse=True)
        return found, place.astype(np.int64)
    occurs = np.zeros(n_codes, dtype=np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


_MOST_ABSENT = 4
"""Times as many codes as there are members, above which a table of all codes is not worth its memory."""


def runs(values: AnyArray) -> tuple[AnyArray, IntArray]:
    """The first value of every run of equal ones, and the run of every value: rows of an episode follow each other."""
    begins = np.ones(len(values), dtype=np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return values[begins], np.cumsum(begins) - 1


def square(left: AnyArray) -> AnyArray:
    """leftᵀ left: one triangle is computed, the other is its mirror image."""
    m = left.shape[1]
    if m < _SMALL_SQUARE:
        return np.asarray(left.T @ left)
    from scipy.linalg import blas

    upper = (blas.ssyrk if left.dtype == np.float32 else blas.dsyrk)(1.0, left.T)
    lower = np.tril_indices(m, -1)
    upper[lower] = upper.T[lower]
    return np.asarray(upper)


_SMALL_SQUARE = 64
"""Below so many columns, computing one triangle alone saves nothing."""


def number_tuples(columns: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """The number of every row's tuple among the distinct tuples in sorted order, and the first row of each number."""
    index = TupleIndex(columns)
    return index.codes, index.first


@final
class TupleIndex:
    """The distinct tuples of several columns of equal length, numbered in sorted order; finds others among them.

    Every column is ranked among its sorted distinct values. Columns are combined one at a time: ``code · m + rank``,
    then ranked again among the combinations that exist, so that codes stay below (distinct tuples) × (distinct values
    of one column) and never overflow, however many columns there are.
    """

    def __init__(self, columns: Sequence[AnyArray]) -> None:
        self._levels = [np.unique(column) for column in columns]
        self._joint: list[IntArray] = []
        codes = positions(columns[0], self._levels[0])
        for levels, column in zip(self._levels[1:], columns[1:], strict=True):
            wide = codes * len(levels) + positions(column, levels)
            self._joint.append(np.unique(wide))
            codes = positions(wide, self._joint[-1])
        self.codes = codes
        self.first: IntArray = np.unique(codes, return_index=True)[1].astype(np.int64, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        """The tuples alone travel, not the numbers of the rows that they were read from."""
        return {**self.__dict__, "codes": np.zeros(0, dtype=np.int64)}

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self._levels)

    def fingerprint(self) -> str:
        """Of the distinct tuples."""
        return digest_arrays([*self._levels, *self._joint])

    def find(self, columns: Sequence[AnyArray]) -> IntArray:
        """The number of every tuple asked for; −1 where there is none. Columns must be of the types indexed."""
        codes = positions(columns[0], self._levels[0])
        for levels, joint, column in zip(self._levels[1:], self._joint, columns[1:], strict=True):
            rank = positions(column, levels)
            codes = np.where((codes >= 0) & (rank >= 0), positions(codes * len(levels) + rank, joint), -1)
        return codes


def positions(values: AnyArray, levels: AnyArray) -> IntArray:
    """Position of every value among sorted distinct levels; −1 where it is none of them."""
    if len(levels) == 0 or (values.dtype.kind == "U") != (levels.dtype.kind == "U"):
        return np.full(len(values), -1, dtype=np.int64)
    # Python integers, because the span of 64-bit ones may exceed 64 bits.
    if levels.dtype.kind == "i" and int(levels[-1]) - int(levels[0]) + 1 == len(levels):
        return np.where((values >= levels[0]) & (values <= levels[-1]), values - levels[0], -1)
    place = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
    return np.where(levels[place] == values, place, -1).astype(np.int64, copy=False)


DAMAGED: tuple[type[Exception], ...] = (
    *(OSError, EOFError, MemoryError, NotImplementedError, RuntimeError),  # of files, and of packing nobody knows
    *(ValueError, TypeError, KeyError, SyntaxError, tokenize.TokenError, struct.error),  # of headers, which are text
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What NumPy and the modules under it raise when an .npy or .npz file is not what it should be."""


def check_claims(path: str | os.PathLike[str]) -> None:
    """Refuse an .npy or .npz file whose headers claim more bytes than there are, before room is made for them."""
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            _check_claim(file, os.path.getsize(path), str(path))
            return
        with zipfile.ZipFile(file) as members:
            _refuse_bomb(sum(member.file_size for member in members.infolist()), os.path.getsize(path), str(path))
            for member in members.infolist():
                with members.open(member) as content:
                    _check_claim(content, member.file_size, f"{path}, {member.filename}")


MOST_TIMES = 100
"""An archive that is too large for one table may unpack to at most so many times its size."""


def _refuse_bomb(unpacked: int, packed: int, where: str) -> None:
    if unpacked > max(MOST_BYTES, MOST_TIMES * packed):
        raise DataError(
            "the archive unpacks to far more than it holds",
            where=where,
            expected=f"at most {MOST_BYTES / 1024**2:,.0f} MB, or {MOST_TIMES} times its size",
            got=f"{packed:,} bytes that unpack to {unpacked / 1024**2:,.0f} MB",
            hint="if the arrays are yours, store them with np.savez, which does not compress",
        )


def _check_claim(file: IO[bytes], size: int, where: str) -> None:
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    reader = readers.get(np.lib.format.read_magic(file))
    if reader is None:
        return
    shape, _, dtype = reader(file)
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size and not dtype.hasobject:
        sides = " × ".join(map(str, shape))
        raise DataError(
            "the header of an array claims more than the file holds",
            where=where,
            expected=f"{sides} entries of type {dtype}, {claimed / 1024**2:,.0f} MB",
            got=f"{size:,} bytes",
            hint="the file is damaged or was cut short; write it again",
        )
