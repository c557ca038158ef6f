"""Sums by key as SQL: the one SELECT … GROUP BY, over whatever DuckDB can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mixope.logs import EPISODE_KEYS
from mixope.logs.sources import quote
from mixope.requests.grouping import Aggregate, Grouping, GroupSums, Lookup, sort_by_keys
from mixope.requests.quantities import quantity_sql

if TYPE_CHECKING:
    import pyarrow as pa


def group_by(connection: Any, rows: str, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
    """The sums of canonical ``rows`` (a view, a table or a SELECT in brackets), joined with the lookup."""
    table = grouped(connection, rows, grouping, lookup)
    return GroupSums(grouping, (sort_by_keys(table, grouping.keys),))


def grouped(connection: Any, rows: str, grouping: Grouping, lookup: Lookup | None = None) -> pa.Table:
    """The same as a table in any order."""
    connection.execute("SET preserve_insertion_order = false")
    keys = [quote(key) for key in grouping.keys]
    many = not set(EPISODE_KEYS) <= set(grouping.keys)
    columns = [*keys, *(f"{_aggregate_sql(a, many)} AS {quote(a.name)}" for a in grouping.aggregates)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return _arrow(connection.sql(f"SELECT {', '.join(columns)} FROM {_joined(connection, rows, lookup)}{by}"))


def _joined(connection: Any, rows: str, lookup: Lookup | None) -> str:
    """The FROM clause: canonical rows, joined with the lookup on raw keys (nulls match nulls)."""
    if lookup is None:
        return rows
    connection.register("mixope_lookup", lookup.table)
    on = " AND ".join(f"rows_.{quote(k)} IS NOT DISTINCT FROM lookup_.{quote(k)}" for k in lookup.keys)
    extra = ", ".join(f"lookup_.{quote(name)}" for name in lookup.columns)
    return f"(SELECT rows_.*, {extra} FROM {rows} AS rows_ LEFT JOIN mixope_lookup AS lookup_ ON {on})"


def _aggregate_sql(aggregate: Aggregate, compensated: bool) -> str:
    """Sums over the rows of an episode are short, and plain ones cost half."""
    if aggregate.operation == "count":
        return "CAST(count(*) AS DOUBLE)"
    product = " * ".join(quantity_sql(factor) for factor in aggregate.factors)
    function = "fsum" if aggregate.operation == "sum" and compensated else aggregate.operation
    return f"{function}({product})"


def _arrow(result: Any) -> pa.Table:
    """The result as an Arrow table, by whatever name this DuckDB has for it."""
    return result.to_arrow_table() if hasattr(result, "to_arrow_table") else result.fetch_arrow_table()
