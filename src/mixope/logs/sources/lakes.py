"""Iceberg and Hudi tables: known by their marks and refused, because their data files also hold rows that are gone."""

from __future__ import annotations

import os
import re

from mixope.errors import DataError
from mixope.logs.sources.found import Finds

_ICEBERG = re.compile(r"(v\d+|\d+-[0-9a-fA-F-]{36})(\.gz)?\.metadata\.json(\.gz)?")
"""The names of the files that hold the versions of an Iceberg table."""
EXPECTED = "files of rows that all count; the files of such a table also hold rows that were deleted or replaced"


def is_iceberg(folder: str) -> bool:
    """Whether a folder has the versions of an Iceberg table beside its data."""
    try:
        return any(_ICEBERG.fullmatch(name) for name in os.listdir(os.path.join(folder, "metadata")))
    except OSError:
        return False


def is_hudi(folder: str) -> bool:
    """Whether a folder has the timeline of a Hudi table."""
    return os.path.isdir(os.path.join(folder, ".hoodie"))


def refuse_iceberg(folder: str) -> Finds:
    """An error that says how to get the rows."""
    raise DataError(
        "The folder is an Iceberg table, which is not read from its files",
        where=folder,
        expected=EXPECTED,
        hint="load the table with pyiceberg and pass table.scan().to_arrow(), or export its rows to Parquet",
    )


def refuse_hudi(folder: str) -> Finds:
    """An error that says how to get the rows."""
    raise DataError(
        "The folder is a Hudi table, which is not read from its files",
        where=folder,
        expected=EXPECTED,
        hint="query the table with the engine that writes it (Spark, say), and pass the rows as an Arrow table or"
        " export them to Parquet",
    )
