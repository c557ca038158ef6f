"""DuckDB and SQLite files: a table or view of one, ``logs.duckdb::visits``; without a name the only one.

A file is opened for reading only. The rows are written once (:mod:`mixope.logs.sources.scratch`), no more than a row
group of them in memory, so that whoever writes to the database meanwhile changes no answer. SQLite has values of any
type in any column: each column must have values of one kind.

A view is a query of whoever made the file, and runs when it is read. It sees the tables of the file and nothing else:
no other file, no extension, no setting; and it may take only so long and so much room (:mod:`patience`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote as quote_url

from mixope.errors import DataError, UnknownName
from mixope.files import scratch_folder
from mixope.logs.database import OFFLINE
from mixope.logs.sources import arrow_batches, literal, quote, reading
from mixope.logs.sources.found import Finds
from mixope.logs.sources.patience import MAKE_A_TABLE, Bounded, heard, room_for, time_for
from mixope.logs.sources.scratch import ROWS, found_once

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
KINDS = {frozenset({"integer"}): "int64", frozenset({"text"}): "string", frozenset({"blob"}): "binary"}
KINDS |= {frozenset({"real"}): "float64", frozenset({"integer", "real"}): "float64", frozenset[str](): "null"}
"""What the values of a column are → its type."""
SHOWN = 10
"""How many tables an error names."""


def find_database(path: str, table: str | None) -> Finds | None:
    """The rows of a table of a database; None where the file is no database, or no file: a pipe would be waited for."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return None
    if start == SQLITE:
        return _sqlite(path, table)
    if start[8:12] == DUCKDB:
        return _duckdb(path, table)
    if table is None:
        return None
    raise DataError("The file is neither a DuckDB nor an SQLite database", where=path, got=f"{path}::{table}")


def _duckdb(path: str, table: str | None) -> Finds:
    import duckdb

    with (
        reading(path, "The database cannot be read"),
        scratch_folder() as folder,
        duckdb.connect(":memory:", config=OFFLINE) as connection,  # none to be used again: it is locked
    ):
        _confine(connection, path, str(folder))
        found = connection.execute(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables"
            " WHERE table_catalog = 'given' ORDER BY ALL"
        ).fetchall()
        names = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name, _ in found}
        views = {(schema, name) for schema, name, kind in found if kind == "VIEW"}
        chosen = _choose(path, table, list(names))
        called, rows = f"{path}::{chosen}", ".".join(map(quote, ("given", *names[chosen])))

        def write() -> Finds:
            try:
                batches = arrow_batches(connection.sql(f"SELECT * FROM {rows}"), ROWS)
            except duckdb.Error as error:
                raise _not_followed(error, called) from error
            return _written(batches, called, chosen, size if names[chosen] in views else None)

        size = os.path.getsize(path)
        return heard(write, connection.interrupt, time_for(size) if names[chosen] in views else None, called)


def _confine(connection: Any, path: str, folder: str) -> None:
    """A connection that sees this database alone, and in which no query can change that."""
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET temp_directory = {literal(folder)}")
    connection.execute(f"SET max_temp_directory_size = '{int(room_for(os.path.getsize(path)))}B'")
    connection.execute(f"ATTACH {literal(path)} AS given (READ_ONLY)")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _not_followed(error: Exception, called: str) -> DataError:
    """Of a view whose tables are gone, say, or that wants to see other files."""
    said = str(error).splitlines()[0]
    if "Permission" not in type(error).__name__:
        return DataError(f"The view cannot be followed: {said}", where=called)
    return DataError(
        "The view reads other files or uses functions that could, and is not followed",
        where=called,
        expected="a table, or a view of tables in the same file",
        got=said,
        hint=MAKE_A_TABLE,
    )


def _written(batches: Any, called: str, table: str, size: int | None) -> Finds:
    """The rows, written once; those of a view in a file of ``size`` bytes may take so much room."""
    kept = batches if size is None else Bounded(batches, room_for(size), called)
    return found_once(kept, called, {"table": table})


def _choose(path: str, table: str | None, names: Sequence[str]) -> str:
    """The table that is asked for, or the only one."""
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    if not names:
        raise DataError("The database has no tables", where=path, expected="a table of rows")
    if table is None and len(names) > 1:
        raise DataError(
            "The database has several tables",
            where=path,
            expected="the name of one of them",
            got=shown,
            hint=f"say which: {path}::{names[0]}",
        )
    chosen = names[0] if table is None else table
    if chosen not in names:
        near = str(UnknownName("table", chosen, names[:SHOWN]))
        raise DataError("The database has no such table", where=path, expected=shown, got=chosen, hint=near)
    return chosen


def _sqlite(path: str, table: str | None) -> Finds:
    address = f"file:{quote_url(os.path.abspath(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            named = dict(
                connection.execute(
                    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
                    " ORDER BY 1"
                ).fetchall()
            )
            chosen = _choose(path, table, list(named))
            called, size = f"{path}::{chosen}", os.path.getsize(path) if named[chosen] == "view" else None

            def write() -> Finds:
                return _written(_Rows(connection, chosen, called), called, chosen, size)

            return heard(write, connection.interrupt, None if size is None else time_for(size), called)
    except sqlite3.Error as error:
        hint = "check that the file is whole, and that nothing holds a lock on it"
        raise DataError(f"The database cannot be read: {error}", where=path, hint=hint) from error


class _Rows:
    """The rows of an SQLite table as Arrow batches, with a schema."""

    def __init__(self, connection: sqlite3.Connection, table: str, called: str) -> None:
        import pyarrow as pa

        self.connection, self.table = connection, table
        columns = [name for name, *_ in connection.execute(f"SELECT * FROM {quote(table)} LIMIT 0").description]
        kinds = ", ".join(f"group_concat(DISTINCT typeof({quote(name)}))" for name in columns)
        found = connection.execute(f"SELECT {kinds} FROM {quote(table)}").fetchone()
        self.schema = pa.schema(
            [(name, self._type(name, said, called)) for name, said in zip(columns, found, strict=True)]
        )

    def _type(self, column: str, said: str | None, called: str) -> Any:
        import pyarrow as pa

        kinds = frozenset((said or "").split(",")) - {"", "null"}
        if kinds not in KINDS:
            raise DataError(
                "The values of a column are of several kinds",
                where=called,
                column=column,
                expected="numbers, or text, or neither",
                got=" and ".join(sorted(kinds)),
                hint="make a view with CAST(… AS …) of the column, and name the view",
            )
        return getattr(pa, KINDS[kinds])()

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        cursor = self.connection.execute(f"SELECT * FROM {quote(self.table)}")
        while rows := cursor.fetchmany(ROWS // 8):
            columns = zip(*rows, strict=True)
            arrays = [
                pa.array(
                    [None if v is None else float(v) for v in values] if pa.types.is_floating(field.type) else values,
                    field.type,
                )
                for values, field in zip(columns, self.schema, strict=True)
            ]
            yield pa.record_batch(arrays, schema=self.schema)
