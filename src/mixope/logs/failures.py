"""A reader's exception becomes a ``DataError`` that names the file and repeats the reader's first line.

with reading("logs/a.parquet"):
    connection.sql(…)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mixope.errors import DataError

HINT = "check that the file is whole and of the format that its name says, or pass format=…"


def first_line(error: BaseException) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextmanager
def reading(where: str, problem: str = "The log cannot be read") -> Iterator[None]:
    """Inside, what DuckDB, Arrow or the file system find wrong with the data is a ``DataError`` about ``where``."""
    import duckdb
    import pyarrow

    of_data = (
        duckdb.DataError,
        duckdb.IOException,
        duckdb.InvalidInputException,
        duckdb.SerializationException,
        duckdb.NotSupportedError,
        pyarrow.ArrowException,
        OSError,
        EOFError,
    )
    try:
        yield
    except of_data as error:
        raise DataError(f"{problem}: {first_line(error)}", where=where, hint=HINT) from error
