"""The in-memory engine: the canonical rows as one table, in slices. Simple on purpose: the oracle for other engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mixope.engines.protocol import by_kind, put_back, run_parts, watched
from mixope.logs import EPISODE_KEYS, Logs
from mixope.processes import all_cores
from mixope.statistics.by_episode import first_of_runs
from mixope.statistics.grouping import Grouped, Grouping, GroupSums, Lookup
from mixope.statistics.request import Request, merge_in_order, wanted_columns

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_ROWS, _MOST_ROWS, _FRAGMENTS = 1 << 13, 1 << 16, 8
"""Logs are cut into about eight slices, so that several cores have something to do, within these bounds."""


class MemoryEngine:
    """Holds the needed columns of all rows in memory, and works on slices of ``fragment_rows`` in ``threads``.

    How rows are cut depends on their number alone, so that no result depends on the machine.
    """

    name = "memory"

    def __init__(self, fragment_rows: int | None = None, threads: int | None = None) -> None:
        self.fragment_rows, self.threads = fragment_rows, threads

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """Sums by key of every slice, merged."""
        found: tuple[GroupSums, ...] = self.scan(logs, [Grouped(grouping, lookup)])
        return found[0]

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """Slice after slice; whole episodes in step order for the requests that want them."""
        answers: list[tuple[Request, Any]] = []
        with logs.scanning():
            for mine, tables in self._passes(logs, requests):
                parts = run_parts(tables, logs.schema, mine, self.threads or all_cores())
                merged = merge_in_order(watched(parts, expected_rows), expected_rows)
                if merged is not None:
                    answers += zip(mine, merged.partials, strict=True)
        return put_back(requests, answers)

    def _passes(self, logs: Logs, requests: Sequence[Request]) -> Iterator[tuple[list[Request], Iterator[pa.Table]]]:
        anyhow, whole = by_kind(requests)
        if anyhow:
            rows = logs.table(wanted_columns(anyhow, logs.schema))
            yield anyhow, _slices(rows, list(range(0, max(rows.num_rows, 1), self._size(rows))))
        if whole:
            order = (*EPISODE_KEYS, "step")
            rows = logs.table(tuple(dict.fromkeys((*wanted_columns(whole, logs.schema), *order))))
            rows = rows.sort_by([(key, "ascending") for key in order])
            yield whole, _slices(rows, _episode_cuts(rows, self._size(rows)))

    def _size(self, rows: pa.Table) -> int:
        return self.fragment_rows or min(max(rows.num_rows // _FRAGMENTS + 1, _LEAST_ROWS), _MOST_ROWS)


def _slices(rows: pa.Table, cuts: list[int]) -> Iterator[pa.Table]:
    for low, high in zip(cuts, [*cuts[1:], rows.num_rows], strict=True):
        yield rows.slice(low, high - low)


def _episode_cuts(rows: pa.Table, size: int) -> list[int]:
    """Borders that never cut an episode (rows are sorted by episode)."""
    cuts = [0]
    for border in first_of_runs(rows, EPISODE_KEYS)[1:]:
        if border - cuts[-1] >= size:
            cuts.append(int(border))
    return cuts
