"""The embedded engine: DuckDB runs the GROUP BY where the files lie, larger than memory, spilling where it must.

Rows never become Python objects: keys stay raw values, sums are compensated (``fsum``) in float64 so that the order in
which threads finish shows in the last digit at most (those of a single episode are plain), and only the grouped result
is brought over, as Arrow. Logs that are not long are streamed in order instead, so that it does not show at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from mixope.base.arrays import is_whole
from mixope.base.errors import Advice, Setting, UsageError
from mixope.base.processes import all_cores
from mixope.engines.pieces import ORDER, episode_pieces, even_pieces, in_order, piece_rows
from mixope.engines.protocol import by_kind, put_back, run_parts, watched
from mixope.engines.sums import grouped
from mixope.logs import EPISODE_KEYS, Logs
from mixope.logs.database import connect, release_unused
from mixope.logs.sources import arrow_batches, quote, reading
from mixope.requests.grouping import Grouped, Grouping, GroupSums, Lookup
from mixope.requests.request import Request, joins_episodes, merge_in_order, wanted_columns

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_THREADS = 64
"""So many may be asked for on any machine; beyond eight per core they only wait for each other."""


PART_ROWS = 1 << 23
"""Rows of a part of long logs whose episodes are added up apart."""


class EmbeddedEngine:
    """DuckDB over Parquet, CSV or Arrow. ``memory_limit`` (such as ``"1GB"``) and ``threads`` go to DuckDB.

    ``ordered`` says whether rows are read in the order of episodes and steps, for the same bits whatever their own
    order; None: where that is cheap (:mod:`mixope.engines.pieces`).
    """

    name = "embedded"
    in_process = True

    def __init__(
        self,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        fragment_rows: int | None = None,
        ordered: bool | None = None,
    ) -> None:
        most = max(LEAST_THREADS, 8 * all_cores())
        if threads is not None and not (is_whole(threads) and 1 <= threads <= most):
            raise UsageError(
                Advice(Setting("threads"), f" is a number from 1 to {most} on this machine, got {threads!r}")
            )
        self.memory_limit, self.threads, self.fragment_rows = memory_limit, threads, fragment_rows
        self.ordered = ordered

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """One SELECT … GROUP BY over the view of canonical rows.

        Of long logs by episode, one for every part of them that shares no episode with others: the groups of all would
        have to go to the disk and back.
        """
        tables: list[pa.Table] = []
        with logs.scanning(), self._connect() as connection, reading(logs.name):
            for part in logs.apart(PART_ROWS) if set(EPISODE_KEYS) <= set(grouping.keys) else (logs,):
                tables.append(grouped(connection, part.view(connection), grouping, lookup))
        return GroupSums(grouping, (_in_order(tables, grouping.keys),))

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """Sums by key alone are pushed down where the logs are long; otherwise the rows are streamed, sorted (on disk
        where needed) if the logs are short or whole episodes are asked for."""
        anyhow, whole = by_kind(requests)
        answers: list[tuple[Request, Any]] = []
        if not self._in_order(logs) and all(isinstance(request, Grouped) for request in anyhow):
            answers += [(r, self.group_sums(logs, r.grouping, r.lookup)) for r in anyhow if isinstance(r, Grouped)]
        else:
            answers += self._stream(logs, anyhow, expected_rows) if anyhow else []
        if whole:
            answers += self._stream(logs, whole, expected_rows, by_episode=True)
        return put_back(requests, answers)

    def _stream(
        self, logs: Logs, requests: Sequence[Request], expected_rows: int | None, *, by_episode: bool = False
    ) -> list[tuple[Request, Any]]:
        columns = wanted_columns(requests, logs.schema)
        order = ORDER if by_episode or self._in_order(logs) else ()
        size = self.fragment_rows or piece_rows(logs.total_rows())
        with logs.scanning(), self._connect() as connection:
            view = logs.view(connection)
            selected = ", ".join(quote(name) for name in dict.fromkeys([*columns, *order]))
            order_by = f" ORDER BY {', '.join(map(quote, order))}" if order else ""
            query = f"SELECT {selected} FROM {view}{order_by}"
            with reading(logs.name):
                reader = arrow_batches(connection.sql(query), size)
            tables = _tables(reader, logs.name)
            whole = by_episode and not all(map(joins_episodes, requests))
            pieces = episode_pieces(tables, size) if whole else even_pieces(tables, size)
            parts = run_parts(pieces, logs.schema, requests, self.threads)
            merged = merge_in_order(watched(parts, expected_rows), expected_rows)
        return [] if merged is None else list(zip(requests, merged.partials, strict=True))

    def _in_order(self, logs: Logs) -> bool:
        return in_order(logs.total_rows()) if self.ordered is None else self.ordered

    def _connect(self) -> AbstractContextManager[Any]:
        return connect(self.memory_limit, self.threads)


def _in_order(tables: list[pa.Table], keys: Sequence[str]) -> pa.Table:
    """The tables as one, in the order of their keys, nulls last; column by column, since there may be no room for two
    of a large one.

    The tables are used up.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.concat_tables(tables)
    tables.clear()
    if not keys:
        return whole
    order = pc.sort_indices(whole.select(list(keys)), [(key, "ascending") for key in keys])
    columns = {}
    for name in whole.column_names:
        columns[name] = whole.column(name).take(order)
        whole = whole.drop_columns([name])
        release_unused()
    return pa.table(columns)


def _tables(reader: Any, where: str) -> Iterator[pa.Table]:
    """One table per batch, and an empty one where there is no row: there is an answer to every request."""
    import pyarrow as pa

    empty = True
    while True:
        with reading(where):
            batch = next(reader, None)
        if batch is None:
            break
        empty = False
        yield pa.Table.from_batches([batch])
    if empty:
        yield reader.schema.empty_table()
