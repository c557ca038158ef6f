"""The in-memory engine: NumPy over the canonical rows. Simple on purpose: it is the oracle for every other engine.

Each key column is dictionary-encoded, the codes are combined into one integer a row, and sums are ``bincount``s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.logs import EPISODE_KEYS, Logs
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums, Lookup, row_values, sort_by_keys
from mixope.statistics.quantities import QUANTITIES

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_FRAGMENT_ROWS = 1 << 16
_LIMIT = 1 << 62


class MemoryEngine:
    """Holds the needed columns of all rows in memory."""

    name = "memory"

    def __init__(self, fragment_rows: int = _FRAGMENT_ROWS) -> None:
        self.fragment_rows = fragment_rows

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """One ``bincount`` an aggregate over combined key codes."""
        rows = _rows(logs, [*grouping.keys, *grouping.quantities], lookup)
        group, first = combine_keys([_codes(rows.column(key)) for key in grouping.keys], rows.num_rows)
        import pyarrow as pa

        columns = {key: rows.column(key).take(pa.array(first)) for key in grouping.keys}
        for aggregate in grouping.aggregates:
            columns[aggregate.name] = pa.array(_reduce(aggregate, rows, group, len(first)))
        return GroupSums(grouping, sort_by_keys(pa.table(columns), grouping.keys))

    def map_fragments(
        self,
        logs: Logs,
        function: Callable[[pa.Table], T],
        columns: Sequence[str],
        *,
        lookup: Lookup | None = None,
        by_episode: bool = False,
    ) -> Iterator[tuple[int, T]]:
        """Slices of the rows; whole episodes in step order where asked."""
        order = (*EPISODE_KEYS, "step") if by_episode else ()
        rows = _rows(logs, [*columns, *order], lookup)
        cuts = list(range(0, rows.num_rows, self.fragment_rows))
        if by_episode:
            rows = rows.sort_by([(key, "ascending") for key in order])
            cuts = _episode_cuts(rows, self.fragment_rows)
        keep = [*columns, *(lookup.columns if lookup else ())]
        for number, (low, high) in enumerate(zip(cuts, [*cuts[1:], rows.num_rows], strict=True)):
            yield number, function(rows.slice(low, high - low).select(keep))


def _rows(logs: Logs, names: Sequence[str], lookup: Lookup | None) -> pa.Table:
    """The canonical columns behind the names, joined with the lookup by a dictionary of codes."""
    extra = set(lookup.columns) if lookup else set()
    reads = [QUANTITIES[n].reads if n in QUANTITIES else n for n in names if n not in extra]
    wanted = list(dict.fromkeys([*reads, *(lookup.keys if lookup else ())]))
    rows = logs.table(wanted)
    if lookup is None:
        return rows
    position = _match(rows, lookup)
    for name in lookup.columns:
        rows = rows.append_column(name, lookup.table.column(name).take(position))
    return rows


def _match(rows: pa.Table, lookup: Lookup) -> pa.Array:
    """For every row, the line of the lookup with the same keys (null where there is none)."""
    import pyarrow as pa

    n = rows.num_rows
    both = [
        _codes(
            pa.chunked_array([*rows.column(key).chunks, *lookup.table.column(key).cast(rows.column(key).type).chunks])
        )
        for key in lookup.keys
    ]
    group, _ = combine_keys(both, n + lookup.table.num_rows)
    line = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    line[group[n:]] = np.arange(lookup.table.num_rows)
    position = line[group[:n]]
    return pa.array(position, mask=position < 0)


def _codes(column: pa.ChunkedArray) -> tuple[IntArray, int]:
    """Dense integer codes of a column, nulls as a value of their own, and how many there are."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64), len(encoded.dictionary)


def combine_keys(columns: Sequence[tuple[IntArray, int]], n_rows: int) -> tuple[IntArray, IntArray]:
    """One dense group number a row from several coded columns, and the first row of every group."""
    code, size = np.zeros(n_rows, dtype=np.int64), 1
    for codes, cardinality in columns:
        if size > _LIMIT // max(cardinality, 1):
            _, code = np.unique(code, return_inverse=True)
            size = int(code.max(initial=0)) + 1
        code, size = code * cardinality + codes, size * cardinality
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return group.astype(np.int64), first.astype(np.int64)


def _reduce(aggregate: Aggregate, rows: pa.Table, group: IntArray, n_groups: int) -> FloatArray:
    if aggregate.operation == "count":
        return np.bincount(group, minlength=n_groups).astype(np.float64)
    values = row_values(aggregate, rows)
    if aggregate.operation == "sum":
        return sum_by(group, values, n_groups)
    result = np.full(n_groups, np.inf if aggregate.operation == "min" else -np.inf)
    with np.errstate(invalid="ignore"):
        (np.minimum if aggregate.operation == "min" else np.maximum).at(result, group, values)
    return result


def _episode_cuts(rows: pa.Table, size: int) -> list[int]:
    """Fragment borders that never cut an episode (rows are sorted by episode)."""
    if rows.num_rows == 0:
        return []
    group, _ = combine_keys([_codes(rows.column(key)) for key in EPISODE_KEYS], rows.num_rows)
    borders = np.flatnonzero(np.diff(group)) + 1
    cuts = [0]
    for border in borders:
        if border - cuts[-1] >= size:
            cuts.append(int(border))
    return cuts
