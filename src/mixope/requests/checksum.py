"""Checksums: sums that every scan of the same rows must give again, whatever else it adds up.

Files are stamped (:mod:`mixope.logs.sources.stamps`), and a stamp can be forged, or a store of objects may say nothing
of a new version. So the rows are asked too: their number, Σ r, and Σ h(s) and Σ h(s′) for a random signature h. They
come with a scan that is made anyhow; the order in which rows are added changes rounding, and nothing else.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError
from mixope.requests.request import Batch, RowRequest

ROUNDING = 1e-9
"""Sums over the same rows differ by less than this share of what they add up."""
OF = ("rows", "rewards", "states", "next states")


@dataclass(frozen=True)
class Sums:
    """Of the rows, in the order of ``OF``, and of their sizes."""

    total: FloatArray
    size: FloatArray

    def merge(self, other: Sums) -> Sums:
        """Of both."""
        return Sums(self.total + other.total, self.size + other.size)

    def refuse_other(self, again: Sums, where: str) -> None:
        """An error where another scan gave other sums."""
        same = np.abs(self.total - again.total) <= ROUNDING * np.maximum(self.size, again.size)
        if not same.all():
            first = int(np.argmin(same))
            raise DataError(
                "The rows of this scan are not those of the one before",
                where=where,
                expected="the same content in every scan",
                got=f"{OF[first]} that sum to {again.total[first]:,.12g}, before {self.total[first]:,.12g}",
                hint="wait until nothing writes to these inputs (or copy them), and read them again",
            )


@dataclass(frozen=True)
class Checksum(RowRequest):
    """The request for these sums, beside others that read whole episodes or rows in any pieces."""

    seed: int = 0
    whole_episodes: bool = False

    joins_episodes = True
    sees_unfollowed = True

    def of(self, batch: Batch) -> Sums:
        """The sums of some rows."""
        rows = batch.rows
        here = signature(rows.observation, self.seed)
        there = np.where(batch.follows, signature(rows.next_observation, self.seed), 0.0)
        columns = (np.ones(len(rows)), rows.reward, here, there)
        return Sums(*(np.array([float(f(column).sum()) for column in columns]) for f in (np.asarray, np.abs)))


def signature(observations: AnyArray, seed: int) -> FloatArray:
    """A number for every state: w·s for numbers, else the sum of hashes of its columns."""
    columns = observations if observations.ndim == 2 else observations[:, None]
    if columns.dtype.kind == "f":
        weights = np.random.default_rng([seed, 31]).normal(size=columns.shape[1])
        return np.asarray(columns @ weights)
    total = np.zeros(len(columns))
    for k, column in enumerate(columns.T):
        values, inverse = np.unique(column.astype(str), return_inverse=True)
        codes = [zlib.crc32(f"{seed} {k} {value}".encode()) >> 1 for value in values.tolist()]
        total += np.array(codes, dtype=np.float64)[inverse]
    return total
