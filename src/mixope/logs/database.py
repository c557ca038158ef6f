"""Connections to DuckDB: each with a private folder to spill to, which is gone when the connection is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from mixope.errors import Advice, Setting, UsageError
from mixope.files import scratch_folder
from mixope.logs.sources import literal

OFFLINE = dict.fromkeys(
    ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"), "false"
)
"""Nothing is fetched: DuckDB would download an extension for what it finds in a query."""


@contextmanager
def connect(memory_limit: str | None = None, threads: int | None = None) -> Iterator[Any]:
    """A database in memory; what does not fit goes to a folder among the temporary files of the machine."""
    import duckdb

    with ExitStack() as stack:
        try:
            folder = str(stack.enter_context(scratch_folder()))
        except OSError:  # nowhere to spill to: all must fit in memory
            folder = ""
        connection = stack.enter_context(duckdb.connect(":memory:", config=OFFLINE))
        connection.execute(f"SET temp_directory = {literal(folder)}")
        if memory_limit is not None:
            _limit(connection, memory_limit)
        if threads is not None:
            connection.execute(f"SET threads = {int(threads)}")
        yield connection


def _limit(connection: Any, size: str) -> None:
    import duckdb

    try:
        connection.execute(f"SET memory_limit = {literal(size)}")
    except duckdb.Error:
        raise UsageError(
            Advice(Setting("memory_limit"), f" takes a size such as '500MB' or '2GB', got {size!r}")
        ) from None
