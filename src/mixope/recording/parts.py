"""A folder of Parquet files that grows while something is recorded, and is a log at every moment.

A part holds whole episodes, about ``ROWS`` steps of them, and is written whole or not at all. The last part is written
anew when an episode ends, at most once per ``SECONDS``: a process that is killed loses the open episode and what ended
in the last second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from mixope.base.errors import UsageError
from mixope.base.files import replacing

ROWS = 20_000
SECONDS = 1.0


class EpisodeTables:
    """Tables of whole episodes, kept in a folder, or in memory where there is none."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.folder = None if folder is None else _empty(Path(folder))
        self.number = 0
        self.tables: list[Any] = []
        self.written = 0
        self.last = time.monotonic()

    def add(self, table: Any) -> None:
        """One more episode."""
        self.tables.append(table)
        full = sum(table.num_rows for table in self.tables) >= ROWS
        if self.folder is not None and (full or time.monotonic() - self.last > SECONDS):
            self.flush()
        if self.folder is not None and full:
            self.number, self.tables, self.written = self.number + 1, [], 0

    def flush(self) -> None:
        """Write what is not written yet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self.folder is None or len(self.tables) == self.written:
            return
        with replacing(self.folder / f"part-{self.number:06}.parquet") as temporary:
            pq.write_table(pa.concat_tables(self.tables), str(temporary), compression="zstd")
        self.written, self.last = len(self.tables), time.monotonic()


def _empty(folder: Path) -> Path:
    """A folder that a recording may fill: a new or an empty one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a recording is a folder of Parquet files, so name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} holds files already; record into a new folder, and read both: mixope.read([old, new])"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder
