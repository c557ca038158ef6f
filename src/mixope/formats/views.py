"""What a view of a DuckDB file may do: put together the tables of its own file, with functions of values.

A view is a query of whoever made the file. Here its text is taken apart by DuckDB's own parser, before DuckDB binds it,
because binding a function already calls it. What is known to be harmless goes on, and everything else is refused:

    tables               those of the file, and those that the query itself defines (WITH); none that is called like one
                         of DuckDB's own, or is said to be in another database or schema
    table functions      :data:`ROWS`, which give numbers or the elements of a list, unless the file defines them anew
    other functions      those of DuckDB that give the same for the same values: no clock, no chance, no setting
    macros               what they are made of is looked at in the same way

The same holds for columns that a table computes (``GENERATED ALWAYS AS``).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.sources import literal
from mixope.logs.sources.patience import MAKE_A_TABLE

ROWS = frozenset({"range", "generate_series", "unnest"})
SAME = frozenset({"CONSISTENT"})
QUERIES = frozenset({"json_serialize_plan", "json_serialize_sql", "json_deserialize_sql"})
"""Functions that take a query as text: one among the values would not be looked at."""
SETTINGS = frozenset({"current_setting", "getvariable", "getenv"})
"""Functions that know more than their values, which DuckDB before 1.2 does not say of them."""
PLAIN = frozenset({"EMPTY", "EMPTY_FROM", "EXPRESSION_LIST"})
"""What may stand after FROM, besides tables, joins, queries and functions."""
CLOCKS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""What looks like a column and is the time, where no column is called so."""
OWN_SCHEMAS = frozenset({"information_schema", "pg_catalog"})
"""Schemas of DuckDB's own."""
COMPUTED = "GENERATED ALWAYS AS"
_NAME = r'(?:"(?:[^"]|"")*"|\w+)'
_VIEW = re.compile(rf"CREATE (?:TEMP )?VIEW {_NAME}(?:\.{_NAME})*\s*(?:\([^()]*\))?\s*AS\s+(.*?);?\s*", re.DOTALL)
_VIEWS = "SELECT view_name, sql FROM duckdb_views() WHERE database_name = {}"
_TABLES = "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = {}"
_SCHEMAS = (
    "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = {0}"
    " UNION ALL SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = {0}"
)
_INTERNAL = "SELECT view_name FROM duckdb_views() WHERE internal AND schema_name IN ('main', 'pg_catalog')"
_REDEFINED = "SELECT function_name FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal"
_DEFAULTS = "SELECT table_name, column_default FROM duckdb_columns() WHERE database_name = {} AND column_default <> ''"
_FUNCTIONS = (
    "SELECT function_name, function_type, stability, CAST(macro_definition AS VARCHAR) FROM duckdb_functions()"
    " WHERE function_type IN ('scalar', 'aggregate', 'window', 'macro')"
)


class Views:
    """The views, computed columns and functions of one database of a connection, and a parser."""

    def __init__(self, connection: Any, database: str, where: str) -> None:
        self.connection, self.database, self.where = connection, database.lower(), where
        self.views = self._named(_VIEWS, database)
        tables, defaults = self._named(_TABLES, database), self._named(_DEFAULTS, database)
        self.expressions = {
            name: defaults.get(name, []) for name, said in tables.items() if any(COMPUTED in text for text in said)
        }
        self.tables = set(tables) | set(self.views)
        found = connection.execute(_SCHEMAS.format(literal(database))).fetchall()
        self.places = {(schema.lower(), name.lower()) for schema, name in found}
        self.internal = {name.lower() for (name,) in connection.execute(_INTERNAL).fetchall()}
        self.redefined = {name.lower() for (name,) in connection.execute(_REDEFINED).fetchall()}
        self.checked: set[str] = set()

    @cached_property
    def functions(self) -> tuple[dict[str, set[str | None]], dict[str, list[str]]]:
        """How sure the answers of functions are, by name, and what macros are made of."""
        kinds: dict[str, set[str | None]] = defaultdict(set)
        macros: dict[str, list[str]] = defaultdict(list)
        for name, kind, stability, definition in self.connection.execute(_FUNCTIONS).fetchall():
            if kind == "macro":
                macros[name.lower()].append(definition or "")
            else:
                kinds[name.lower()].add(stability)
        return dict(kinds), dict(macros)

    def check(self, table: str) -> bool:
        """Whether a table or view of the file computes anything; an error where it may do more than that."""
        name = table.lower()
        if name in self.checked:
            return True
        texts = self.views.get(name, [])
        if texts or name in self.expressions:
            self.checked.add(name)
        for text in texts:
            found = _VIEW.fullmatch(text)
            if found is None:
                raise self._refused("a view that cannot be taken apart")
            self._query(self._parsed(found[1]))
        for text in self.expressions.get(name, []):
            self._query(self._parsed(f"SELECT {text}"))
        return bool(texts) or name in self.expressions

    def _named(self, query: str, database: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name, text in self.connection.execute(query.format(literal(database))).fetchall():
            found[name.lower()].append(text or "")
        return dict(found)

    def _parsed(self, query: str) -> Any:
        ((text,),) = self.connection.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [query]).fetchall()
        said = json.loads(text)
        if said.get("error") or len(said.get("statements", ())) != 1:
            raise self._refused(str(said.get("error_message", "a view that cannot be taken apart")))
        return said["statements"][0]

    def _query(self, query: Any) -> None:
        """Everything in a query that was taken apart."""
        made = frozenset(_made(query))
        for node in _nodes(query):
            if node.get("from_table") is not None:
                self._rows(node["from_table"], made)
            if "function_name" in node and node.get("class") is not None:
                self._function(str(node["function_name"]))
            column = node.get("column_names")
            if isinstance(column, list) and len(column) == 1 and str(column[0]).lower() in CLOCKS:
                raise self._refused(f"the function {column[0]!r}")
            if isinstance(node.get("sample"), Mapping):
                raise self._refused("rows by chance (SAMPLE)")

    def _rows(self, node: Mapping[str, Any], made: frozenset[str]) -> None:
        """What stands after FROM; queries in it are among the nodes of the whole."""
        kind = node.get("type")
        if kind == "JOIN":
            self._rows(node["left"], made)
            self._rows(node["right"], made)
        elif kind == "BASE_TABLE":
            if not self._is_of_the_file(node, made):
                raise self._refused(f"the table {node.get('table_name')!r}, which is not in the file")
            self.check(str(node.get("table_name")))
        elif kind == "TABLE_FUNCTION":
            name = str(node.get("function", {}).get("function_name")).lower()
            if name not in ROWS - self.redefined:
                raise self._refused(f"the function {name!r}")
        elif kind != "SUBQUERY" and kind not in PLAIN:
            raise self._refused(f"{kind} after FROM")

    def _is_of_the_file(self, node: Mapping[str, Any], made: frozenset[str]) -> bool:
        """Whether a name after FROM can only be a table of the file, or of the query itself."""
        *outside, catalog, schema, name = ("", "", *_path(node))
        if any(outside) or name in self.internal or schema in OWN_SCHEMAS or catalog not in ("", self.database):
            return False
        return (schema, name) in self.places if schema else name in made or name in self.tables

    def _function(self, name: str) -> None:
        """One that is called on values."""
        name, (kinds, macros) = name.lower(), self.functions
        known = name in kinds or name in macros or name in ROWS
        if not known or name in QUERIES | SETTINGS or kinds.get(name, SAME) - SAME:
            raise self._refused(f"the function {name!r}")
        if f"{name}()" not in self.checked and name in macros:
            self.checked.add(f"{name}()")
            for text in macros[name]:
                self._query(self._parsed(f"SELECT {text}"))

    def _refused(self, got: str) -> DataError:
        return DataError(
            "The view reads other files or uses functions that could, and is not followed",
            where=self.where,
            expected="a table, or a view that computes something from tables in the same file",
            got=got,
            hint=MAKE_A_TABLE,
        )


def _path(table: Mapping[str, Any]) -> list[str]:
    """The name of a table after those of its schema and its database, as far as they are said."""
    said = table.get("qualified_name")
    path = said.get("path") if isinstance(said, Mapping) else None
    parts = path or [table.get(key) for key in ("catalog_name", "schema_name", "table_name")]
    return [str(part or "").lower() for part in parts]


def _nodes(query: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in what the parser said; a function after FROM is not one of those that are called on values."""
    left = [query]
    while left:
        found = left.pop()
        if isinstance(found, Mapping):
            yield found
            inner: Iterable[Any] = found.values()
            if found.get("type") == "TABLE_FUNCTION":
                function = found.get("function") or {}
                inner = [value for key, value in {**found, **function}.items() if key != "function"]
            left.extend(value for value in inner if isinstance(value, Mapping | list))
        elif isinstance(found, list):
            left.extend(found)


def _made(query: Any) -> Iterator[str]:
    """The names of tables that a query defines (WITH)."""
    for node in _nodes(query):
        for entry in (node.get("cte_map") or {}).get("map", ()) if isinstance(node.get("cte_map"), Mapping) else ():
            yield str(entry.get("key")).lower()
        if node.get("cte_name"):
            yield str(node["cte_name"]).lower()
