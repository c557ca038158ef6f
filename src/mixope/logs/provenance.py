"""What a log is, in a hash: so that a result can be traced to its data.

Local files up to 64 MB are hashed whole; larger ones by name, size, first and last megabyte and, for Parquet, the whole
footer, which holds the statistics of every column chunk. Files of another file system (a store of objects, say) are
never read: they are hashed by size, time of change or version, and the footer if they are Parquet. Tables are hashed by
content, a window of rows at a time.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from mixope.logs.sources import plain, reading
from mixope.logs.sources.stamps import version_of

WHOLE_BYTES = 64_000_000
ENDS = 1_000_000
WINDOW = 65_536
"""Rows of a table that are hashed at a time."""


def hash_file(name: str) -> str:
    """sha256 of the content, or of the telling parts of a large file."""
    digest = hashlib.sha256()
    with reading(name), open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= WHOLE_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{os.path.basename(name)} {size} ".encode())
        digest.update(file.read(ENDS))
        file.seek(size - 8)
        tail = file.read(8)
        footer = int.from_bytes(tail[:4], "little") + 8 if tail[4:] == b"PAR1" else 0
        file.seek(size - min(size, max(ENDS, footer)))
        digest.update(file.read())
    return digest.hexdigest()


def hash_stored(filesystem: Any, path: str, footer: Any = None) -> str:
    """The hash of a file that a pyarrow dataset holds: of its content if it is local, else of what is known of it.

    ``footer`` is the metadata of a Parquet file: rows, sizes and statistics of every column chunk.
    """
    from pyarrow import fs

    if isinstance(filesystem, fs.LocalFileSystem) and os.path.isfile(path):
        return hash_file(path)
    with reading(path):
        info = filesystem.get_file_info(path)
    digest = hashlib.sha256(repr((os.path.basename(path), info.size, info.mtime_ns)).encode())
    digest.update(repr(version_of(filesystem, path)).encode())
    if footer is not None:
        digest.update(repr(footer.to_dict()).encode())
    return digest.hexdigest()


def hash_table(table: Any) -> str:
    """sha256 of a table's rows, however they are chunked; no more than a window of them is copied at a time."""
    digest = hashlib.sha256(repr(plain(table.schema.empty_table()).schema.remove_metadata()).encode())
    for low in range(0, table.num_rows, WINDOW):
        for batch in _compact(plain(table.slice(low, WINDOW))).to_batches():
            digest.update(batch.serialize())
    return digest.hexdigest()


def _compact(table: Any) -> Any:
    """The rows in one chunk with buffers of their own: a slice drags the bits of its neighbours along."""
    import numpy as np
    import pyarrow as pa

    try:
        return table.take(pa.array(np.arange(table.num_rows))).combine_chunks()
    except pa.ArrowNotImplementedError:
        return table.combine_chunks()
