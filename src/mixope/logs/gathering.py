"""Rows brought together by episode, where the files do not keep them so.

A *load* is a run of rows that lie together, whatever their episodes. It falls apart into as many *buckets* as there
are, by a hash of the episode's id; a bucket is then made of its share of every load, in the order of the loads, and has
all rows of its episodes. Shares are rows as they are in the files: what is derived from other rows of an episode (its
steps, its next observations) can only be derived in the bucket.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mixope.logs.plan import ReadingPlan
from mixope.logs.sources import Piece, reading
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.stamps import refuse_changed
from mixope.logs.table import raw_columns, raw_names, rows_of


@dataclass(frozen=True)
class Share:
    """What a load has for a bucket: rows of one piece of one source."""

    source: int
    piece: ArrowTable


@dataclass(frozen=True, eq=False)
class Load:
    """Some rows of one source: small, picklable, and complete in itself. ``key`` names it and no other.

    ``names`` are the columns of the files that are wanted of it.
    """

    key: str
    buckets: int
    names: tuple[str, ...] = field(repr=False)
    plan: ReadingPlan = field(repr=False)

    def shares(self) -> list[Share]:
        """For every bucket the rows that belong to it."""
        import pyarrow as pa

        (piece,) = self.plan.source.pieces
        refuse_changed(self.plan.source.stamps)
        with reading(piece.files[0]):
            wanted = [name for name in self.names if name in piece.fields]
            rows = piece.table(wanted)
            bucket = bucket_of(raw_columns(self.plan, ["episode_id"])["episode_id"], self.buckets)
        refuse_changed(self.plan.source.stamps)
        order = np.argsort(bucket, kind="stable")
        cuts = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        sorted_rows = rows.take(pa.array(order)).combine_chunks()
        fields = {name: piece.fields[name] for name in wanted}
        return [
            Share(
                self.plan.index,
                ArrowTable(sorted_rows.slice(low, high - low), piece.files[:1], piece.constants, known=fields),
            )
            for low, high in pairwise(cuts.tolist())
        ]


@dataclass(frozen=True, eq=False)
class Bucket:
    """Where the rows of some episodes come together."""

    number: int
    columns: tuple[str, ...] = field(repr=False)
    plans: tuple[ReadingPlan, ...] = field(repr=False)
    step_base: int = 0

    def table(self, shares: Sequence[Share]) -> Any:
        """The canonical rows of the bucket's share of every load, given in the order of the loads."""
        import pyarrow as pa

        found = []
        for plan in self.plans:
            pieces = tuple(share.piece for share in shares if share.source == plan.index)
            mine = replace(plan, source=replace(plan.source, pieces=pieces))
            found.append(rows_of(mine, self.step_base, self.columns))
        return pa.concat_tables(found)


def bucket_of(episode: Any, buckets: int) -> Any:
    """The bucket of every row, from the id of its episode alone: a hash that no process or machine changes."""
    import pyarrow as pa

    coded = pa.chunked_array([episode]).combine_chunks().dictionary_encode(null_encoding="encode")
    values = coded.dictionary.cast(pa.string()).to_pylist()
    hashes = np.array([_hash(value) for value in values], dtype=np.int64)
    return hashes[np.asarray(coded.indices.to_numpy(), dtype=np.int64)] % buckets


def _hash(value: str | None) -> int:
    return zlib.crc32(f"bucket {value}".encode())  # not the hash that deals episodes into folds


def loads_of(
    plans: Sequence[ReadingPlan], columns: tuple[str, ...], step_base: int, buckets: int, rows: int
) -> tuple[tuple[Load, ...], tuple[Bucket, ...]]:
    """Some canonical columns of some sources as loads, in row order, and the buckets that they fall into."""
    names = {plan.index: tuple(raw_names(plan, (*columns, "episode_id"))) for plan in plans}
    loads = tuple(
        Load(f"{plan.index}.{number}:{name}", buckets, names[plan.index], _alone(plan, piece))
        for plan in plans
        for number, (name, piece) in enumerate(part for whole in plan.source.pieces for part in whole.split(rows))
    )
    bare = tuple(replace(plan, source=replace(plan.source, pieces=(), stamps=())) for plan in plans)
    return loads, tuple(Bucket(number, columns, bare, step_base) for number in range(buckets))


def _alone(plan: ReadingPlan, piece: Piece) -> ReadingPlan:
    """The plan for one piece, with the stamps of its files."""
    names = set(piece.files)
    stamps = tuple(stamp for stamp in plan.source.stamps if names & {stamp.name, stamp.path})
    return replace(plan, source=replace(plan.source, pieces=(piece,), stamps=stamps))
