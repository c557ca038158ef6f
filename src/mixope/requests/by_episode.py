"""Sums by episode: columns that a function gives for every row, added up over the rows of each episode.

What is by episode carries its keys: the result is a table with one row per episode (or per piece of an episode), in
the order of the keys, whatever the pieces the rows came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.logs import EPISODE_KEYS
from mixope.requests.grouping import Aggregate, Grouping, GroupSums

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = "piece"


def sum_by_episode(
    table: pa.Table, columns: dict[str, FloatArray], belongs_to: str, piece_steps: int | None = None
) -> GroupSums:
    """Sum ``columns`` over the rows of every episode, or of every ``piece_steps`` steps of it."""
    import pyarrow as pa

    keys = (*EPISODE_KEYS, PIECE) if piece_steps else EPISODE_KEYS
    grouping = Grouping(keys, tuple(Aggregate(n, "sum", (n,)) for n in columns), belongs_to)
    keyed = table.select(list(EPISODE_KEYS))
    if piece_steps:
        step = np.asarray(table.column("step").to_numpy(), dtype=np.int64)
        keyed = keyed.append_column(PIECE, pa.array(step // piece_steps))
    for name, values in columns.items():
        keyed = keyed.append_column(name, pa.array(np.ascontiguousarray(values)))
    return GroupSums.zero(grouping).update(keyed)


def pieces_of_episodes(sums: GroupSums) -> IntArray:
    """How many pieces every episode has, from sums by piece."""
    table = sums.table
    if table is None:
        return np.zeros(0, dtype=np.int64)
    return np.diff(np.append(first_of_runs(table, EPISODE_KEYS), table.num_rows)).astype(np.int64)


def first_of_runs(table: pa.Table, keys: Sequence[str]) -> IntArray:
    """The first row of every run of equal keys."""
    if table.num_rows == 0:
        return np.zeros(0, dtype=np.int64)
    changed = np.zeros(table.num_rows - 1, dtype=bool)
    for key in keys:
        values = table.column(key).to_numpy()
        changed |= values[1:] != values[:-1]
    return np.concatenate([[0], np.flatnonzero(changed) + 1]).astype(np.int64)
