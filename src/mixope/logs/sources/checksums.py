"""Checksums of Parquet pages: what some writers (Spark, say) store beside every page, and DuckDB does not look at.

Arrow looks at them where it is asked to. So files that carry them are read through once by Arrow, batch by batch,
before DuckDB reads them; files without are not. Whether a file carries them is said in the header of its first page,
whose first numbers are (1) the kind of page, (2) (3) its two sizes and (4) the checksum, in the compact protocol of
Thrift: a byte for the field, then a number in groups of seven bits, of which all but the last begin with a 1.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mixope.logs.sources import reading

NEXT_INT32 = 0x15
"""The field after the last one, a number of 32 bits."""
BEFORE = 3
"""Numbers before the checksum."""
LONGEST = 32
"""Bytes that hold them."""
BATCH = 65_536
"""Rows that are looked at together."""
VERIFIED: dict[str, Any] = {"page_checksum_verification": True}
"""For Arrow's own reader of files."""


def carries_checksums(metadata: Any, file: Any) -> bool:
    """Whether the first page of an open file has a checksum."""
    if metadata.num_row_groups == 0 or metadata.num_columns == 0:
        return False
    chunk = metadata.row_group(0).column(0)
    starts = (chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else None)
    start = min((place for place in starts if place is not None and place > 0), default=None)
    if start is None:
        return False
    file.seek(start)
    return has_checksum(file.read(LONGEST))


def has_checksum(header: bytes) -> bool:
    """Whether the fourth field of the header of a page is there."""
    place = 0
    for _ in range(BEFORE):
        if header[place : place + 1] != bytes([NEXT_INT32]):
            return False
        place += 1
        while place < len(header) and header[place] >= 0x80:
            place += 1
        place += 1
    return header[place : place + 1] == bytes([NEXT_INT32])


def verify(name: str, path: str, groups: Sequence[int] | None, columns: Sequence[str]) -> None:
    """Hold some row groups of a file (None: all) against their checksums, once for each version of it."""
    with reading(name):
        state = os.stat(path)
    chosen = None if groups is None else tuple(groups)
    _verify(name, path, (state.st_size, state.st_mtime_ns, state.st_ino), chosen, tuple(columns))


@lru_cache(maxsize=100_000)
def _verify(
    name: str, path: str, version: tuple[int, ...], groups: tuple[int, ...] | None, columns: tuple[str, ...]
) -> None:
    import pyarrow.parquet as pq

    with reading(name), pq.ParquetFile(path, **VERIFIED) as file:
        for _ in file.iter_batches(BATCH, groups and list(groups), list(columns)):
            pass
