"""What a log is, in a hash: so that a cached result is never shown for other data.

Files up to 64 MB are hashed whole; larger ones by name, size, first and last megabyte and, for Parquet, the whole
footer, which holds the statistics of every column chunk. Tables are hashed by content.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from mixope.logs.failures import reading
from mixope.logs.pieces import ArrowTable
from mixope.logs.sources import Piece, Source

WHOLE_BYTES = 64_000_000
ENDS = 1_000_000


def describe(source: Source) -> list[dict[str, Any]]:
    """path, rows and sha256 of every file or table of a source."""
    records = []
    for piece in source.pieces:
        counts = piece.counts()
        for position, name in enumerate(piece.files):
            rows = counts[position] if len(counts) == len(piece.files) else None
            records.append({"path": name, "rows": rows, "sha256": _hash(piece, name)})
    return records


def _hash(piece: Piece, name: str) -> str:
    if os.path.isfile(name):
        return hash_file(name)
    if isinstance(piece, ArrowTable):
        return hash_table(piece.content)
    return hash_table(piece.table(list(piece.fields)))


def hash_file(name: str) -> str:
    """sha256 of the content, or of the telling parts of a large file."""
    size = os.path.getsize(name)
    digest = hashlib.sha256()
    with reading(name), open(name, "rb") as file:
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


def hash_table(table: Any) -> str:
    """sha256 of a table's rows, however they are chunked."""
    import pyarrow as pa

    sink = _Digest()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return sink.digest.hexdigest()


class _Digest:
    """A file that only remembers the hash of what was written."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.closed = False
        self.length = 0

    def write(self, data: Any) -> int:
        """Take the bytes in."""
        self.digest.update(data)
        self.length += len(data)
        return len(data)

    def tell(self) -> int:
        """How much was written."""
        return self.length

    def writable(self) -> bool:
        """Always."""
        return True

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Nothing to free."""
        self.closed = True
