"""A sample of the rows: those whose hash of (seed, episode, step) is smallest.

The same rows are chosen whatever the pieces, the workers or the order in which the logs came, and whatever the loggers
are called. Merging keeps the smallest hashes of both sides: a commutative monoid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray
from mixope.requests.request import Batch, RowRequest
from mixope.requests.rows import Rows, episode_hash

SAMPLE_ROWS = 40_000


@dataclass(frozen=True)
class Chosen:
    """Rows with their hashes; ``size`` rows are wanted."""

    rows: Rows
    hashes: AnyArray
    size: int

    def merge(self, other: Chosen) -> Chosen:
        """The smallest of both."""
        both = Chosen(Rows.concatenate([self.rows, other.rows]), np.concatenate([self.hashes, other.hashes]), self.size)
        return both.smallest()

    def smallest(self) -> Chosen:
        """No more than are wanted; rows that tie with the last one stay too."""
        if len(self.hashes) <= self.size:
            return self
        border = np.partition(self.hashes, self.size - 1)[self.size - 1]
        kept = np.flatnonzero(self.hashes <= border)
        return Chosen(self.rows.take(kept), self.hashes[kept], self.size)

    @property
    def in_order(self) -> Rows:
        """Sorted by what the rows hold, so that the order in which they were logged does not matter to a fit.

        Codes of categories have no order; such rows are sorted by their hashes first.
        """
        rows = self.rows
        columns = [rows.reward, *rows.observation.reshape(len(rows), -1).T, *rows.action.reshape(len(rows), -1).T]
        codes = [
            np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)[1]
            for column in columns
        ]
        return rows.take(np.lexsort(codes if rows.roles is None else [*codes, self.hashes]))


@dataclass(frozen=True)
class Sample(RowRequest):
    """The request for about ``size`` rows, all of them if there are fewer."""

    size: int = SAMPLE_ROWS
    seed: int = 0

    def of(self, batch: Batch) -> Chosen:
        """The smallest hashes of some rows."""
        episode = episode_hash(batch.table, ("episode_id",)).astype(np.uint64)
        known = batch.table.column("step").fill_null(-1)  # rows without a step are refused once they are seen
        step = np.asarray(known.to_numpy()).astype(np.int64).astype(np.uint64)
        hashes = mixed(mixed(episode ^ mixed(np.uint64(self.seed & 0xFFFFFFFF))) ^ step)
        return Chosen(batch.rows, hashes, self.size).smallest()


def mixed(value: AnyArray | np.uint64) -> AnyArray:
    """The finaliser of SplitMix64: every bit of the input moves half of the bits of the output."""
    with np.errstate(over="ignore"):
        x = np.asarray(value, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
