"""A condition on rows in SQL, such as ``date >= '2026-10-01'``: which rows of a piece fit it.

The condition is taken apart by DuckDB's own parser before it is run. It may have the columns of the file, constants,
comparisons and those built-in functions that give the same for the same values; no queries, no aggregates or windows,
no clock, no chance, no setting, and so nothing that reads a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mixope.base.errors import UsageError, clean
from mixope.logs.database import connect
from mixope.logs.sources import Piece, literal, outside, quote, reading

ALLOWED = frozenset({"COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "FUNCTION", "CAST", "BETWEEN"})
ALLOWED_TOO = frozenset({"CASE", "COLLATE", "TYPE"})
REFUSED = frozenset(
    {"json_serialize_plan", "json_serialize_sql", "json_deserialize_sql", "current_setting", "getvariable", "getenv"}
)
CLOCKS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
_KNOWN = (
    "SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar' GROUP BY function_name"
    " HAVING bool_and(stability = 'CONSISTENT')"
)
_MACROS = "SELECT function_name FROM duckdb_functions() WHERE function_type NOT IN ('scalar')"
_EMPTY = ("where_clause", "having", "qualify", "sample", "group_expressions", "group_sets", "modifiers")
"""What a query has besides the one expression, and this one must not have."""


def fitting(condition: str, piece: Piece) -> np.ndarray:
    """Of each row of a piece, in its order, whether it fits; where the condition is unknown (null), it does not."""
    from duckdb import BinderException, CatalogException, ConversionException, ParserException

    wrong = (BinderException, CatalogException, ConversionException, ParserException)
    if not isinstance(condition, str) or not condition.strip():
        raise UsageError(f"where() takes a condition in SQL, such as \"date >= '2026-10-01'\"; got {condition!r}")
    names = {*piece.fields, *piece.constants}
    with connect() as connection:
        _check(condition, connection, {name.lower() for name in names})
        folders = outside(piece.constants, piece.fields)
        constants = "".join(f", {literal(value)} AS {quote(name)}" for name, value in folders.items())
        rows = f"SELECT *{constants} FROM {piece.relation(connection)}"
        query = f"SELECT coalesce(CAST(({condition}\n) AS BOOLEAN), false) AS fits FROM ({rows})"
        with reading(piece.files[0]):
            try:
                found = connection.execute(query).fetchnumpy()["fits"]
            except wrong as error:
                reason = clean(error).splitlines()[0]
                raise _refused(condition, f"{reason}; the columns are {', '.join(sorted(names))}") from error
    return np.asarray(found, dtype=bool)


def _check(condition: str, connection: Any, names: set[str]) -> None:
    """One expression, of things that are known to be harmless."""
    query = "SELECT json_serialize_sql(CAST(? AS VARCHAR))"
    said = json.loads(connection.execute(query, [f"SELECT {condition}"]).fetchall()[0][0])
    if said.get("error"):
        raise _refused(condition, clean(said.get("error_message", "it cannot be taken apart")))
    nodes = [statement["node"] for statement in said["statements"]]
    if len(nodes) != 1 or not _is_one_expression(nodes[0]):
        raise _refused(condition, "it is more than one condition on the columns of a row")
    known = {name.lower() for (name,) in connection.execute(_KNOWN).fetchall()}
    known -= {name.lower() for (name,) in connection.execute(_MACROS).fetchall()} | REFUSED
    for node in _nodes(nodes[0]["select_list"][0]):
        kind, column = node.get("class"), node.get("column_names")
        if kind is not None and kind not in ALLOWED | ALLOWED_TOO:
            raise _refused(condition, f"it holds what a condition on one row has no use for ({str(kind).lower()})")
        name = str(node.get("function_name", "")).lower()
        if kind == "FUNCTION" and name not in known:
            raise _refused(condition, f"the function {name!r} is not one of those that are allowed")
        if isinstance(column, list) and column and str(column[-1]).lower() in CLOCKS - names:
            raise _refused(condition, f"{column[-1]} is another at each run; write the date")


def _is_one_expression(node: Mapping[str, Any]) -> bool:
    tables, made = node.get("from_table") or {}, (node.get("cte_map") or {}).get("map")
    plain = node.get("type") == "SELECT_NODE" and tables.get("type") == "EMPTY" and len(node["select_list"]) == 1
    return plain and not made and not any(node.get(name) for name in _EMPTY)


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            yield node
        left.extend(node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ())


def _refused(condition: str, reason: str) -> UsageError:
    return UsageError(f"The condition {condition!r} cannot be used: {reason}")
