"""The embedded engine: DuckDB runs the GROUP BY where the files lie, larger than memory, spilling where it must.

Rows never become Python objects: keys stay raw values, sums are compensated (``fsum``) in float64 so that the order in
which threads finish does not show in the result, and only the grouped result is brought over, as Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from mixope.engines.protocol import by_kind, put_back, run_parts, watched
from mixope.errors import Advice, Setting, UsageError
from mixope.logs import EPISODE_KEYS, Logs
from mixope.logs.database import connect
from mixope.logs.sources import arrow_batches, reading
from mixope.processes import all_cores
from mixope.statistics.by_episode import first_of_runs
from mixope.statistics.grouping import Aggregate, Grouped, Grouping, GroupSums, Lookup, sort_by_keys
from mixope.statistics.quantities import quantity_sql
from mixope.statistics.request import Request, joins_episodes, merge_in_order, wanted_columns

if TYPE_CHECKING:
    import pyarrow as pa

_FRAGMENT_ROWS = 1 << 16
LEAST_THREADS = 64
"""So many may be asked for on any machine; beyond eight per core they only wait for each other."""


class EmbeddedEngine:
    """DuckDB over Parquet, CSV or Arrow. ``memory_limit`` (such as ``"1GB"``) and ``threads`` go to DuckDB."""

    name = "embedded"

    def __init__(
        self, *, memory_limit: str | None = None, threads: int | None = None, fragment_rows: int = _FRAGMENT_ROWS
    ) -> None:
        most = max(LEAST_THREADS, 8 * all_cores())
        if threads is not None and not 1 <= threads <= most:
            raise UsageError(
                Advice(Setting("threads"), f" is a number from 1 to {most} on this machine, got {threads}")
            )
        self.memory_limit, self.threads, self.fragment_rows = memory_limit, threads, fragment_rows

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """One SELECT … GROUP BY over the view of canonical rows."""
        with logs.scanning(), self._connect() as connection, reading(logs.name):
            connection.execute("SET preserve_insertion_order = false")
            rows = _joined(connection, logs, lookup)
            keys = [_quoted(key) for key in grouping.keys]
            columns = [*keys, *(f"{_aggregate_sql(a)} AS {_quoted(a.name)}" for a in grouping.aggregates)]
            group_by = f" GROUP BY {', '.join(keys)}" if keys else ""
            table = _arrow(connection.sql(f"SELECT {', '.join(columns)} FROM {rows}{group_by}"))
        return GroupSums(grouping, sort_by_keys(table, grouping.keys))

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """Sums by key alone are pushed down; otherwise the rows are streamed, sorted (on disk where needed) if whole
        episodes are asked for."""
        anyhow, whole = by_kind(requests)
        answers: list[tuple[Request, Any]] = []
        if all(isinstance(request, Grouped) for request in anyhow):
            answers += [(r, self.group_sums(logs, r.grouping, r.lookup)) for r in anyhow if isinstance(r, Grouped)]
        else:
            answers += self._stream(logs, anyhow, expected_rows)
        if whole:
            answers += self._stream(logs, whole, expected_rows, by_episode=True)
        return put_back(requests, answers)

    def _stream(
        self, logs: Logs, requests: Sequence[Request], expected_rows: int | None, *, by_episode: bool = False
    ) -> list[tuple[Request, Any]]:
        columns = wanted_columns(requests, logs.schema)
        order = (*EPISODE_KEYS, "step") if by_episode else ()
        with logs.scanning(), self._connect() as connection:
            view = logs.view(connection)
            selected = ", ".join(_quoted(name) for name in dict.fromkeys([*columns, *order]))
            order_by = f" ORDER BY {', '.join(map(_quoted, order))}" if order else ""
            query = f"SELECT {selected} FROM {view}{order_by}"
            with reading(logs.name):
                reader = arrow_batches(connection.sql(query), self.fragment_rows)
            tables = _tables(reader, logs.name)
            pieces = tables if not by_episode or all(map(joins_episodes, requests)) else _whole_episodes(tables)
            parts = run_parts(pieces, logs.schema, requests, self.threads or all_cores())
            merged = merge_in_order(watched(parts, expected_rows), expected_rows)
        return [] if merged is None else list(zip(requests, merged.partials, strict=True))

    def _connect(self) -> AbstractContextManager[Any]:
        return connect(self.memory_limit, self.threads)


def _joined(connection: Any, logs: Logs, lookup: Lookup | None) -> str:
    """The FROM clause: canonical rows, joined with the lookup on raw keys (nulls match nulls)."""
    view = logs.view(connection)
    if lookup is None:
        return view
    connection.register("mixope_lookup", lookup.table)
    on = " AND ".join(f"rows_.{_quoted(k)} IS NOT DISTINCT FROM lookup_.{_quoted(k)}" for k in lookup.keys)
    extra = ", ".join(f"lookup_.{_quoted(name)}" for name in lookup.columns)
    return f"(SELECT rows_.*, {extra} FROM {view} AS rows_ LEFT JOIN mixope_lookup AS lookup_ ON {on})"


def _aggregate_sql(aggregate: Aggregate) -> str:
    if aggregate.operation == "count":
        return "CAST(count(*) AS DOUBLE)"
    product = " * ".join(quantity_sql(factor) for factor in aggregate.factors)
    function = "fsum" if aggregate.operation == "sum" else aggregate.operation
    return f"{function}({product})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _arrow(result: Any) -> pa.Table:
    """The result as an Arrow table, by whatever name this DuckDB has for it."""
    return result.to_arrow_table() if hasattr(result, "to_arrow_table") else result.fetch_arrow_table()


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


def _whole_episodes(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Regroup a sorted stream so that no episode is cut: the last, unfinished one waits for the next batch."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    for table in tables:
        border = _last_border(table)
        if border == 0 and (not waiting or _same_episode(waiting[-1], table)):
            waiting.append(table)
            continue
        yield pa.concat_tables([*waiting, table.slice(0, border)])
        waiting = [table.slice(border)]
    if waiting:
        yield pa.concat_tables(waiting)


def _last_border(table: pa.Table) -> int:
    """The first row of the last episode in a sorted table."""
    return int(first_of_runs(table, EPISODE_KEYS)[-1]) if table.num_rows else 0


def _same_episode(left: pa.Table, right: pa.Table) -> bool:
    return all(left.column(key)[-1].as_py() == right.column(key)[0].as_py() for key in EPISODE_KEYS)
