"""Stamps: what a file was when it was opened, so that every scan reads the same rows or none.

A log is scanned several times, and what it is (its columns, their types, its rows) is found before. A file that is
written meanwhile would answer one scan with some rows and the next with others. So each file is stamped before it is
opened (its size, its time of change, its first and last bytes, which hold the footer of a Parquet file; of a store of
objects, its version), and looked at again before and after every scan.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mixope.errors import DataError
from mixope.logs.sources import reading

ENDS = 65_536
"""Bytes at either end of a file that are part of its stamp."""
VERSIONS = ("etag", "ETag", "md5Hash", "content_md5", "VersionId")
"""Where fsspec's file systems keep what changes with the content of a file."""


@dataclass(frozen=True)
class Stamp:
    """One version of a file; ``filesystem`` is None for local ones. ``state`` is cheap to look up, ``ends`` is read."""

    name: str
    path: str
    state: tuple[Any, ...]
    ends: str | None = None
    filesystem: Any = None

    def difference(self, *, thorough: bool) -> str | None:
        """What is another now; None if it is the same version. Only where ``thorough`` is the file opened."""
        now = _state(self.path, self.filesystem)
        if now is None:
            return "the file is gone"
        if now != self.state:
            return f"{_words(now)} now, {_words(self.state)} before"
        if thorough and self.ends is not None and ends_of(self.path, now[0]) != self.ends:
            return "other bytes at its beginning or end"
        return None


def stamped(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Of local files; one that cannot be read has none, and its reader says why."""
    found = []
    for name in paths:
        path = os.path.abspath(name)
        state = _state(path, None)
        if state is not None and os.path.isfile(path) and os.access(path, os.R_OK):
            found.append(Stamp(name, path, state, ends_of(path, state[0])))
    return tuple(found)


def stamped_in(filesystem: Any, path: str) -> tuple[Stamp, ...]:
    """Of a file of a pyarrow dataset."""
    from pyarrow import fs

    if isinstance(filesystem, fs.LocalFileSystem):
        return stamped([path])
    state = _state(path, filesystem)
    return () if state is None else (Stamp(path, path, state, None, filesystem),)


def refuse_changed(stamps: Iterable[Stamp], *, thorough: bool = False) -> None:
    """An error about the first file that is not what it was."""
    for stamp in stamps:
        difference = stamp.difference(thorough=thorough)
        if difference is not None:
            raise DataError(
                "The file has changed since it was opened; what was read of it belongs to no single version",
                where=stamp.name,
                expected="the same content in every scan",
                got=difference,
                hint="wait until nothing writes to it (or copy it), and read it again",
            )


def ends_of(path: str, size: int) -> str:
    """A hash of the first and the last bytes of a file."""
    digest = hashlib.sha256()
    with reading(path), open(path, "rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(size - ENDS, 0))
        digest.update(file.read(ENDS))
    return digest.hexdigest()


def version_of(filesystem: Any, path: str) -> list[tuple[str, str]]:
    """What an fsspec file system says of this version of a file; pyarrow's own say no more than size and time."""
    inner = getattr(getattr(filesystem, "handler", None), "fs", None)
    if inner is None:
        return []
    with reading(path):
        info = inner.info(path)
    return [(key, str(info[key])) for key in VERSIONS if info.get(key)]


def _state(path: str, filesystem: Any) -> tuple[Any, ...] | None:
    """Size, time of change in nanoseconds, and version; None where there is no such file."""
    if filesystem is None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns
    from pyarrow import fs

    with reading(path):
        info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        return None
    return info.size, info.mtime_ns, *version_of(filesystem, path)


def _words(state: tuple[Any, ...]) -> str:
    size, changed, *version = state
    when = f", changed {datetime.fromtimestamp(changed / 1e9).isoformat(' ')}" if changed else ""
    return f"{size:,} bytes{when}" + "".join(f", {key} {value}" for key, value in version)
