"""Canonical rows in memory, by NumPy and Arrow alone: the same plan as ``sql``, computed another way.

The two must agree on every log; each is the other's oracle. Within an episode, rows are ordered by step and then by
row; the next observation of row i is the observation of the row after it, unless i ended the episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.logs.convert import column_of
from mixope.logs.schema import UNLABELLED

if TYPE_CHECKING:
    from mixope.arrays import BoolArray, IntArray
    from mixope.logs.draft import Plan
    from mixope.logs.schema import Schema


def table(plans: Sequence[Plan], schema: Schema, base: int, columns: Sequence[str]) -> Any:
    """The canonical rows of all sources as one Arrow table with these columns."""
    import pyarrow as pa

    return pa.concat_tables([_source_table(plan, base, columns) for plan in plans])


def _source_table(plan: Plan, base: int, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    data = _raw(plan, [name for name in _needed(plan, columns) if name in plan.columns])
    terminated, truncated = _bools(data["terminated"]), _bools(data["truncated"])
    if "episode_id" in plan.derived:
        data["episode_id"] = _cut(terminated | truncated, plan.columns["episode_id"].type)
    if "step" in plan.derived and "step" in _needed(plan, columns):
        data["step"] = pa.array(_count(_codes(data)))
    if "next_observation" in plan.derived:
        following = _following(_codes(data), data["step"], terminated | truncated)
        for now, after in zip(plan.observation, plan.next_observation, strict=True):
            data[after] = data[now].take(following)
    keep = terminated.copy()
    present = np.ones(len(keep), dtype=bool)
    for name in plan.next_observation:
        present &= _bools(data[name].is_valid())
        data[name] = _blank(data[name], terminated)
    keep |= present
    if "start" in columns:
        data["start"] = _starts(data["step"], base)
    data["source"] = pa.array(np.full(len(keep), plan.index, dtype=np.int32))
    chosen = pa.table({name: data[name] for name in columns})
    return chosen if keep.all() else chosen.filter(pa.array(keep))


def _needed(plan: Plan, columns: Sequence[str]) -> list[str]:
    """The columns asked for, and those that they and the filter are computed from."""
    needed = [*columns, "terminated", "truncated", *plan.next_observation]
    if "start" in columns:
        needed.append("step")
    if "next_observation" in plan.derived:
        needed += ["step", *plan.observation]
    if "step" in needed or "next_observation" in plan.derived:
        needed += ["policy_id", "episode_id"]
    return list(dict.fromkeys(needed))


def _raw(plan: Plan, names: Sequence[str]) -> dict[str, Any]:
    """The canonical columns that need no other row, of all pieces."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks: dict[str, list[Any]] = {name: [] for name in names}
    for piece in plan.source.pieces:
        wanted = dict.fromkeys(plan.columns[name].raw for name in names)
        raw = piece.table([name for name in wanted if name is not None and name in piece.fields])
        rows = raw.num_rows if raw.num_columns else sum(piece.counts())
        for name in names:
            chunks[name].append(column_of(plan.columns[name], piece, raw, rows))
    data = {name: pa.concat_arrays(parts) for name, parts in chunks.items()}
    if "policy_id" in data:
        data["policy_id"] = pc.fill_null(data["policy_id"], plan.source.label or UNLABELLED)
    if "propensity" in data and plan.log_propensity:
        data["propensity"] = pc.exp(data["propensity"])
    return data


def _bools(column: Any) -> BoolArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)


def _cut(ended: BoolArray, type_: str) -> Any:
    """Episode numbers: how many rows before this one ended an episode."""
    import pyarrow as pa

    numbers = pa.array(np.cumsum(ended, dtype=np.int64) - ended)
    return numbers.cast(pa.string()) if type_ == "string" else numbers


def _codes(data: dict[str, Any]) -> IntArray:
    """One number per (logger, episode)."""
    policy, episode = (_encode(data[name]) for name in ("policy_id", "episode_id"))
    return policy * (int(episode.max(initial=0)) + 2) + episode + 1


def _encode(column: Any) -> IntArray:
    encoded = column.dictionary_encode().indices
    return np.asarray(encoded.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _count(codes: IntArray) -> IntArray:
    """The position of each row among the rows of its episode, in row order."""
    order = np.argsort(codes, kind="stable")
    position = np.arange(len(codes))
    first = np.concatenate([[True], codes[order][1:] != codes[order][:-1]]) if len(codes) else np.zeros(0, bool)
    counts = np.empty(len(codes), dtype=np.int64)
    counts[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return counts


def _following(codes: IntArray, step: Any, ended: BoolArray) -> Any:
    """For each row the row after it in its episode; null for the last one and for one that ended the episode."""
    import pyarrow as pa

    late = np.iinfo(np.int64).max
    steps = np.asarray(step.fill_null(late).to_numpy(zero_copy_only=False))
    order = np.lexsort((steps, codes))
    after = np.full(len(codes), -1, dtype=np.int64)
    same = codes[order][1:] == codes[order][:-1]
    after[order[:-1]] = np.where(same, order[1:], -1)
    return pa.array(after, mask=(after < 0) | ended)


def _blank(column: Any, where: BoolArray) -> Any:
    """The column with nulls where told."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pa.array(where), pa.scalar(None, column.type), column) if where.any() else column


def _starts(step: Any, base: int) -> Any:
    import pyarrow.compute as pc

    return pc.fill_null(pc.equal(step, base), False)
