"""Sums over groups of rows: the one statistic that every tabular estimator stands on.

A :class:`Grouping` names the key columns and what to add up. A :class:`GroupSums` holds the result for some rows.
For a fixed grouping these form a commutative monoid: ``zero`` has no groups, ``merge`` adds groups with equal keys,
and ``update(batch)`` is ``merge`` with the sums of one batch; so rows may come in any order, in any pieces, from any
engine. Groups are kept on raw values, never on encoded rows; see :mod:`mixope.statistics.transitions` for the encoding.

Statistics carry the fingerprint of what they belong to (a schema, and a target where one is baked in), and
refuse to merge with strangers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError
from mixope.statistics.quantities import quantity_values

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True)
class GroupSums:
    """The sums of some rows under one grouping: a commutative monoid with ``zero`` and ``merge``."""

    grouping: Grouping
    table: pa.Table | None = field(default=None)

    @classmethod
    def zero(cls, grouping: Grouping) -> GroupSums:
        """No rows: the neutral element."""
        return cls(grouping)

    def update(self, batch: pa.Table) -> GroupSums:
        """Add a batch of canonical rows (with the columns of a lookup where the aggregates use them)."""
        return self.merge(GroupSums(self.grouping, _sum_batch(self.grouping, batch)))

    def merge(self, other: GroupSums) -> GroupSums:
        """Add groups with equal keys; the order of merging does not matter."""
        if self.grouping != other.grouping:
            raise UsageError("these statistics belong to different logs, targets or groupings and cannot be merged")
        if self.table is None or other.table is None:
            return self if other.table is None else other
        import pyarrow as pa

        both = pa.concat_tables([self.table, other.table], promote_options="permissive")
        return GroupSums(self.grouping, _regroup(self.grouping, both))

    @property
    def n_groups(self) -> int:
        """How many distinct keys were seen."""
        return 0 if self.table is None else int(self.table.num_rows)

    def column(self, name: str) -> FloatArray:
        """One column of sums."""
        if self.table is None:
            return np.zeros(0)
        values = self.table.column(name).to_numpy()
        return np.asarray(values, dtype=np.float64)


def _sum_batch(grouping: Grouping, batch: pa.Table) -> pa.Table:
    """One row of partial results a batch row, then grouped."""
    import pyarrow as pa

    columns = {key: batch.column(key) for key in grouping.keys}
    for aggregate in grouping.aggregates:
        columns[aggregate.name] = pa.array(row_values(aggregate, batch))
    return _regroup(grouping, pa.table(columns))


def row_values(aggregate: Aggregate, batch: pa.Table) -> FloatArray:
    """What one row adds to an aggregate: the product of its factors, one for a count."""
    product = np.ones(batch.num_rows)
    for factor in aggregate.factors:
        product = product * quantity_values(factor, batch)
    return product


_REDUCE = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def _regroup(grouping: Grouping, table: pa.Table) -> pa.Table:
    plan = [(a.name, _REDUCE[a.operation]) for a in grouping.aggregates]
    grouped = table.group_by(list(grouping.keys), use_threads=False).aggregate(plan)
    renamed = grouped.select([*grouping.keys, *(f"{name}_{op}" for name, op in plan)]).rename_columns(grouping.names)
    return sort_by_keys(renamed, grouping.keys)


def sort_by_keys(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows in the order of their keys, nulls last, so that every engine gives the same table."""
    return table.sort_by([(key, "ascending") for key in keys]) if keys else table
