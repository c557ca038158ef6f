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

from mixope.base.errors import DataError, UnknownName
from mixope.base.files import scratch_folder
from mixope.formats.views import Views
from mixope.logs.database import OFFLINE, bytes_of
from mixope.logs.sources import arrow_batches, literal, quote, reading
from mixope.logs.sources.formats import Format
from mixope.logs.sources.found import Finds
from mixope.logs.sources.gate import refuse_waiting
from mixope.logs.sources.marks import SQLITE
from mixope.logs.sources.patience import (
    MAKE_A_TABLE,
    Bounded,
    heard,
    room_for,
    room_for_stored,
    time_for,
    too_large,
    too_large_stored,
    too_long,
)
from mixope.logs.sources.scratch import found_once
from mixope.logs.sources.stores import Store

KINDS = {frozenset({"integer"}): "int64", frozenset({"text"}): "string", frozenset({"blob"}): "binary"}
KINDS |= {frozenset({"real"}): "float64", frozenset({"integer", "real"}): "float64", frozenset[str](): "null"}
"""What the values of a column are → its type."""
SHOWN = 10
"""How many tables an error names."""
LEAST = 500_000_000
"""Bytes of memory that DuckDB may take, however small the file."""
AT_ONCE = 2048
"""Rows that are taken from DuckDB at once: as many as it computes at once."""
MOST_ROWS, MOST_HELD = 1 << 14, 64_000_000
"""Rows that are taken from SQLite at once, and their bytes."""
BESIDE = (".wal", "-wal", "-journal", "-shm")
"""Endings of the files that DuckDB and SQLite open beside a database."""


def find_database(path: str, store: Store | None = None, table: str | None = None) -> Finds:
    """The rows of a table of a database on this machine; of its only one where none is named."""
    _refuse_beside(path)
    with open(path, "rb") as file:
        kept_by_sqlite = file.read(len(SQLITE)) == SQLITE
    return _sqlite(path, table) if kept_by_sqlite else _duckdb(path, table)


def _refuse_beside(path: str) -> None:
    """An error where what belongs to the database would be waited for, or is a link to somewhere else."""
    for ending in BESIDE:
        name = f"{path}{ending}"
        refuse_waiting(name)
        if os.path.islink(name):
            raise DataError("A file that belongs to the database is a link, which is not followed", where=name)


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
        chosen = _choose(path, table, list(names))
        computed = Views(connection, "given", f"{path}::{chosen}").check(names[chosen][1])
        called, rows = f"{path}::{chosen}", ".".join(map(quote, ("given", *names[chosen])))

        def write() -> Finds:
            try:
                batches = arrow_batches(connection.sql(f"SELECT * FROM {rows}"), AT_ONCE)
            except duckdb.Error as error:
                raise _not_followed(error, called) from error
            return _written(batches, called, chosen, size, computed=computed)

        size = os.path.getsize(path)
        return heard(write, connection.interrupt, time_for(size) if computed else None, lambda: too_long(called, size))


def _confine(connection: Any, path: str, folder: str) -> None:
    """A connection that sees this database alone, and in which no query can change that."""
    room = int(room_for(os.path.getsize(path)))
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")  # names of tables that are not there are no variables
    connection.execute(f"SET home_directory = {literal(folder)}")
    connection.execute(f"SET secret_directory = {literal(folder)}")
    connection.execute(f"SET extension_directory = {literal(folder)}")
    connection.execute(f"SET temp_directory = {literal(folder)}")
    connection.execute(f"SET max_temp_directory_size = '{room}B'")
    ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    connection.execute(f"SET memory_limit = '{min(max(room, LEAST), bytes_of(limit) or room)}B'")
    connection.execute(f"ATTACH {literal(os.path.abspath(path))} AS given (READ_ONLY)")
    connection.execute("USE given")  # views of DuckDB before 1.2 look for their tables there alone
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


def _written(batches: Any, called: str, table: str, size: int, *, computed: bool) -> Finds:
    """The rows, written once; those of a file of ``size`` bytes may take so much room, more where they are stored."""
    most, full = (room_for, too_large) if computed else (room_for_stored, too_large_stored)
    return found_once(Bounded(batches, most(size), lambda: full(called, size)), called, {"table": table})


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
            named = _confine_sqlite(connection)
            chosen = _choose(path, table, list(named))
            called, size = f"{path}::{chosen}", os.path.getsize(path)
            computed = named[chosen]

            def write() -> Finds:
                return _written(_Rows(connection, chosen, called), called, chosen, size, computed=computed)

            seconds = time_for(size) if computed else None
            return heard(write, connection.interrupt, seconds, lambda: too_long(called, size))
    except sqlite3.Error as error:
        hint = "check that the file is whole, and that nothing holds a lock on it"
        raise DataError(f"The database cannot be read: {error}", where=path, hint=hint) from error


ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
"""What a statement may do: read."""
NOT_CALLED = frozenset({"load_extension", "fts3_tokenizer"})


_NAMED = (
    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
    " AND upper(sql) NOT LIKE 'CREATE VIRTUAL%' ORDER BY 1"
)
_COMPUTED = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"
"""Columns of a table that are computed, when they are read or when they were written."""


def _confine_sqlite(connection: sqlite3.Connection) -> dict[str, bool]:
    """A connection whose statements read this database and do nothing else.

    What comes back is whether a table computes anything, by name; views do.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    if hasattr(connection, "setconfig"):  # from Python 3.12 on
        connection.setconfig(getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE"), True)  # noqa: B009
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_HELD)
    connection.execute("BEGIN")
    named = {
        name: kind == "view" or connection.execute(_COMPUTED, [name]).fetchone() != (0,)
        for name, kind in connection.execute(_NAMED).fetchall()
    }

    def authorise(action: int, first: str | None, second: str | None, *_: Any) -> int:
        may = action in ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in NOT_CALLED)
        return sqlite3.SQLITE_OK if may else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorise)
    return named


class _Rows:
    """The rows of an SQLite table as Arrow batches, with a schema."""

    def __init__(self, connection: sqlite3.Connection, table: str, called: str) -> None:
        import pyarrow as pa

        self.connection, self.table = connection, table
        columns = [name for name, *_ in connection.execute(f"SELECT * FROM {quote(table)} LIMIT 0").description]
        kinds = [f"group_concat(DISTINCT typeof({quote(name)}))" for name in columns]
        sizes = [f"coalesce(max(length(CAST({quote(name)} AS BLOB))), 0)" for name in columns]
        found = connection.execute(f"SELECT {', '.join([*kinds, *sizes])} FROM {quote(table)}").fetchone()
        said, widest = found[: len(columns)], found[len(columns) :]
        self.schema = pa.schema(
            [(name, self._type(name, kind, called)) for name, kind in zip(columns, said, strict=True)]
        )
        self.at_once = min(MOST_ROWS, max(1, MOST_HELD // max(1, sum(map(int, widest)))))

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
        while rows := cursor.fetchmany(self.at_once):
            columns = zip(*rows, strict=True)
            arrays = [
                pa.array(
                    [None if v is None else float(v) for v in values] if pa.types.is_floating(field.type) else values,
                    field.type,
                )
                for values, field in zip(columns, self.schema, strict=True)
            ]
            yield pa.record_batch(arrays, schema=self.schema)


FORMAT = Format("database", find=find_database)
