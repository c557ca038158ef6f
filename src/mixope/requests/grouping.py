"""Sums over groups of rows: the one statistic that every tabular estimator stands on.

A :class:`Grouping` names the key columns and what to add up. A :class:`GroupSums` holds the result for some rows.
For a fixed grouping these form a commutative monoid: ``zero`` has no groups, ``merge`` adds groups with equal keys,
and ``update(batch)`` is ``merge`` with the sums of one batch; so rows may come in any order, in any pieces, from any
engine. Groups are kept on raw values, never on encoded rows; see :mod:`mixope.requests.transitions` for the encoding.

Statistics carry the fingerprint of what they belong to (a schema, and a target where one is baked in), and
refuse to merge with strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.logs import Schema
from mixope.requests.quantities import quantity, quantity_values
from mixope.requests.request import Batch, content_key

if TYPE_CHECKING:
    import pyarrow as pa

_LIMIT = 1 << 62
MOST_WAITING = 8
"""Sums wait to be added up while they are no more than so many times the largest of them."""

Operation = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True)
class Aggregate:
    """One column of the result: an operation over the product of some row quantities (``count`` has none)."""

    name: str
    operation: Operation
    factors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """What to group by and what to add up. ``belongs_to`` is the fingerprint that keeps strangers apart."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    belongs_to: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the result, keys first."""
        return (*self.keys, *(a.name for a in self.aggregates))

    @property
    def quantities(self) -> tuple[str, ...]:
        """The row quantities that the aggregates multiply."""
        return tuple(dict.fromkeys(f for a in self.aggregates for f in a.factors))


@dataclass(frozen=True)
class Lookup:
    """A small table joined to the rows on raw keys before they are added up (scores, signatures, log-probabilities)."""

    table: pa.Table
    keys: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the join adds to a row."""
        return tuple(name for name in self.table.column_names if name not in self.keys)

    def fingerprint(self) -> str:
        """Of its content, computed once."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return content_key([self.keys, *self.table.column_names, *self.table.itercolumns()])


@dataclass(frozen=True)
class Grouped:
    """The request for sums by key; an engine that speaks SQL pushes it down instead of reading the rows."""

    grouping: Grouping
    lookup: Lookup | None = None

    whole_episodes = False
    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Keys, quantities, and the keys of the lookup."""
        extra = self.lookup.columns if self.lookup else ()
        names = (n for n in (*self.grouping.keys, *self.grouping.quantities) if n not in extra)
        reads = (found.reads if (found := quantity(n)) else n for n in names)
        return tuple(dict.fromkeys((*reads, *(self.lookup.keys if self.lookup else ()))))

    def of(self, batch: Batch) -> GroupSums:
        """The sums of some rows."""
        table = batch.table if self.lookup is None else joined(batch.table, self.lookup)
        return GroupSums.zero(self.grouping).update(table)


@dataclass(frozen=True)
class GroupSums:
    """The sums of some rows under one grouping: a commutative monoid with ``zero`` and ``merge``.

    Merging is lazy: ``tables`` wait side by side until there is much to add up, or until somebody looks at ``table``.
    Many small parts then cost one pass over their groups instead of one pass each.
    """

    grouping: Grouping
    tables: tuple[pa.Table, ...] = field(default=())

    @classmethod
    def zero(cls, grouping: Grouping) -> GroupSums:
        """No rows: the neutral element."""
        return cls(grouping)

    def update(self, batch: pa.Table) -> GroupSums:
        """Add a batch of canonical rows (with the columns of a lookup where the aggregates use them)."""
        return self.merge(GroupSums(self.grouping, (_sum_batch(self.grouping, batch),)))

    def merge(self, other: GroupSums) -> GroupSums:
        """Add groups with equal keys; the order of merging does not matter."""
        if self.grouping != other.grouping:
            raise UsageError("these statistics belong to different logs, targets or groupings and cannot be merged")
        both = GroupSums(self.grouping, (*self.tables, *other.tables))
        sizes = [table.num_rows for table in both.tables]
        if sum(sizes) <= MOST_WAITING * max(sizes, default=0):
            return both
        return GroupSums(self.grouping, () if both.table is None else (both.table,))

    @cached_property
    def table(self) -> pa.Table | None:
        """One row per group, in the order of the keys; None where nothing was summed."""
        if len(self.tables) < 2:
            return self.tables[0] if self.tables else None
        found = _regroup(self.grouping, self.tables)
        self.__dict__["tables"] = (found,)  # the same sums, held once
        return found

    def __getstate__(self) -> dict[str, object]:
        """What waits is added up before it travels."""
        return {"grouping": self.grouping, "tables": () if self.table is None else (self.table,)}

    @property
    def n_groups(self) -> int:
        """How many distinct keys were seen."""
        return 0 if self.table is None else int(self.table.num_rows)

    def column(self, name: str) -> FloatArray:
        """One column of sums."""
        return np.asarray(self.values(name), dtype=np.float64)

    def values(self, name: str) -> AnyArray:
        """One column as it is, such as a key."""
        return np.zeros(0) if self.table is None else np.asarray(self.table.column(name).to_numpy())

    def keyed_by(self, keys: Sequence[str]) -> pa.Table:
        """The keys alone, one row per group."""
        if self.table is None:
            raise UsageError("nothing was summed, so there are no keys")
        return self.table.select(list(keys))


def _sum_batch(grouping: Grouping, batch: pa.Table) -> pa.Table:
    """One ``bincount`` per aggregate over combined key codes."""
    import pyarrow as pa

    group, first = combine_keys([key_codes(batch.column(key)) for key in grouping.keys], batch.num_rows)
    columns = {key: batch.column(key).take(pa.array(first)) for key in grouping.keys}
    for aggregate in grouping.aggregates:
        columns[aggregate.name] = pa.array(_reduce(aggregate, batch, group, len(first)))
    return sort_by_keys(pa.table(columns), grouping.keys)


def _reduce(aggregate: Aggregate, batch: pa.Table, group: IntArray, n_groups: int) -> FloatArray:
    if aggregate.operation == "count":
        return np.bincount(group, minlength=n_groups).astype(np.float64)
    return _added(aggregate.operation, row_values(aggregate, batch), group, n_groups)


def row_values(aggregate: Aggregate, batch: pa.Table) -> FloatArray:
    """What one row adds to an aggregate: the product of its factors, one for a count."""
    product = np.ones(batch.num_rows)
    with np.errstate(over="ignore", invalid="ignore"):  # whoever reads the sums says so
        for factor in aggregate.factors:
            product = product * quantity_values(factor, batch)
    return product


def _regroup(grouping: Grouping, tables: Sequence[pa.Table]) -> pa.Table:
    """Groups of several tables added up, in the order of their keys: column by column, for there may be no room for a
    second copy of all of them. Of equal keys, numbers are added in the order of the tables."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pa.concat_tables([table.select(grouping.keys) for table in tables], promote_options="permissive")
    n_rows = sum(table.num_rows for table in tables)
    group, first = combine_keys([key_codes(keys.column(key)) for key in grouping.keys], n_rows)
    found = keys.take(pa.array(first)) if grouping.keys else keys
    if grouping.keys:
        order = pc.sort_indices(found, sort_keys=[(key, "ascending") for key in grouping.keys]).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        group, found = rank[group], found.take(pa.array(order))
    columns = {key: found.column(key) for key in grouping.keys}
    for aggregate in grouping.aggregates:
        values = np.concatenate([table.column(aggregate.name).to_numpy() for table in tables])
        columns[aggregate.name] = pa.array(_added(aggregate.operation, values, group, len(first)))
    return pa.table(columns)


def _added(operation: Operation, values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    if operation in {"count", "sum"}:
        return sum_by(group, values, n_groups)
    result = np.full(n_groups, np.inf if operation == "min" else -np.inf)
    with np.errstate(invalid="ignore"):
        (np.minimum if operation == "min" else np.maximum).at(result, group, values)
    return result


def joined(rows: pa.Table, lookup: Lookup) -> pa.Table:
    """Rows with the columns of the lookup line that has the same keys (null where there is none)."""
    import pyarrow as pa

    n = rows.num_rows
    both = [
        key_codes(
            pa.chunked_array([*rows.column(key).chunks, *lookup.table.column(key).cast(rows.column(key).type).chunks])
        )
        for key in lookup.keys
    ]
    group, _ = combine_keys(both, n + lookup.table.num_rows)
    line = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    line[group[n:]] = np.arange(lookup.table.num_rows)
    position = line[group[:n]]
    taken = lookup.table.select(list(lookup.columns)).take(pa.array(position, mask=position < 0))
    for name in lookup.columns:
        rows = rows.append_column(name, taken.column(name))
    return rows


def key_codes(column: pa.ChunkedArray) -> tuple[IntArray, int]:
    """Dense integer codes of a column, nulls as a value of their own, and how many there are."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64), len(encoded.dictionary)


def combine_keys(columns: Sequence[tuple[IntArray, int]], n_rows: int) -> tuple[IntArray, IntArray]:
    """One dense group number per row from several coded columns, and the first row of every group."""
    code, size = np.zeros(n_rows, dtype=np.int64), 1
    for codes, cardinality in columns:
        if size > _LIMIT // max(cardinality, 1):
            _, code = np.unique(code, return_inverse=True)
            size = int(code.max(initial=0)) + 1
        code, size = code * cardinality + codes, size * cardinality
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return group.astype(np.int64), first.astype(np.int64)


def sort_by_keys(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows in the order of their keys, nulls last, so that every engine gives the same table."""
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table
