"""Iceberg and Hudi tables, known by their marks: their data files also hold rows that are gone. Hudi is refused."""

from __future__ import annotations

import os
import re

from mixope.base.errors import DataError
from mixope.logs.sources.found import Finds

_ICEBERG = re.compile(r"(v\d+|\d+-[0-9a-fA-F-]{36})(\.gz)?\.metadata\.json(\.gz)?")
"""The names of the files that hold the versions of an Iceberg table."""
METADATA = "metadata"
"""The folder of these files."""
HOODIE = ".hoodie"
"""The folder of the timeline of a Hudi table."""
EXPECTED = "files of rows that all count; the files of such a table also hold rows that were deleted or replaced"


def is_version(name: str) -> bool:
    """Whether a file of ``metadata/`` holds a version of an Iceberg table."""
    return _ICEBERG.fullmatch(name) is not None


def is_iceberg(folder: str) -> bool:
    """Whether a folder has the versions of an Iceberg table beside its data."""
    try:
        return any(is_version(name) for name in os.listdir(os.path.join(folder, METADATA)))
    except OSError:
        return False


def is_hudi(folder: str) -> bool:
    """Whether a folder has the timeline of a Hudi table."""
    return os.path.isdir(os.path.join(folder, HOODIE))


def refuse_hudi(folder: str) -> Finds:
    """An error that says how to get the rows."""
    raise DataError(
        "The folder is a Hudi table, which is not read from its files",
        where=folder,
        expected=EXPECTED,
        hint="query the table with the engine that writes it (Spark, say), and pass the rows as an Arrow table or"
        " export them to Parquet",
    )
