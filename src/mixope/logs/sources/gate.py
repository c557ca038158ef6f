"""What a container may refer to: files below its own folder, in its own store, and nothing else.

A table format is a few files that name others. Those names come from whoever wrote the table, and a table of a stranger
may name anything: a file of yours, a server of theirs, a class to be called. So each name goes through the gate before
anything is opened. Below a folder is what lies there when all links are followed and all ``..`` are carried out;
in a store it is what begins with the address of the folder and has no ``..`` in it.

A folder names files too: a link in it leads wherever its maker wished, and a pipe or a device is waited for without
end. :func:`below` admits what was listed, and :class:`ByteBudget` counts what small files unpack to.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mixope.base.errors import DataError
from mixope.logs.sources.stores import Store, is_address, local_path

SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that name the same store."""
MOST_BYTES, MOST_TIMES = 2_000_000_000, 100
"""What a file unpacks to may take 2 GB, and more only where the file is not a hundred times smaller."""
MOST_RECORD = 1 << 28
"""Bytes of a record of a table or data set, which is held whole."""
ROUNDS = 4
"""How often what looks percent-encoded is decoded again."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Gate:
    """The folder that the user named, and the store it is in; ``what`` it is, for the error."""

    folder: str
    store: Store | None
    what: str

    def admit(self, name: str) -> str:
        """The path of a file on this disk, or its address in the store; an error where it lies elsewhere."""
        found = self._in_store(name) if self.store is not None else self._on_disk(name)
        if found is None:
            raise DataError(
                f"The {self.what} names a file outside of its own folder, which is not opened",
                where=self.folder,
                expected="files below this folder",
                got=name[:300],
                hint="if the table was moved, or keeps its files elsewhere on purpose, read those files themselves:"
                " name the Parquet files or the folder that they are in",
            )
        return found

    def admit_strictly(self, name: str) -> None:
        """The same for a name that another library is to open: however it decodes the name, it stays below.

        Only plain relative names are sure to be that. It is neither a pipe nor a device either.
        """
        said = name
        for _ in range(ROUNDS):
            parts = said.replace("\\", "/").split("/")
            if _SCHEME.match(said) or said.startswith(("/", "\\", "~")) or ".." in parts or "\0" in said:
                self._refuse_strict(name)
            self.file(said)
            said = unquote(said)

    def _refuse_strict(self, name: str) -> None:
        raise DataError(
            f"The {self.what} names a file in a way that could lead out of its own folder, and is not opened",
            where=self.folder,
            expected="names of files from this folder on",
            got=name[:300],
            hint="read the files themselves: name the Parquet files or the folder that they are in",
        )

    def file(self, name: str) -> str:
        """The path or address of a file that is admitted; on this disk it is neither a pipe nor a device."""
        admitted = self.admit(name)
        if self.store is None:
            refuse_waiting(admitted)
        return admitted

    def open_place(self, name: str) -> tuple[Any, str]:
        """The file system of pyarrow, and the path in it, of a file that is admitted."""
        from pyarrow import fs

        admitted = self.file(name)
        if self.store is None:
            return fs.LocalFileSystem(), admitted
        return self.store.filesystem, self.store.path(admitted)

    def read(self, name: str) -> bytes:
        """All bytes of a record that is admitted."""
        filesystem, path = self.open_place(name)
        with filesystem.open_input_file(path) as file:
            _refuse_large(name, file.size())
            return bytes(file.read())

    def _on_disk(self, name: str) -> str | None:
        if is_address(name):
            path = local_path(name) if name.lower().startswith("file:") else None
        else:
            path = unquote(name.removeprefix("file:")) if name.startswith("file:") else name
        if path is None or "\0" in path:
            return None
        root = os.path.realpath(self.folder)
        found = os.path.realpath(os.path.join(root, path))
        return found if _lies_below(root, found) and found != root else None

    def _in_store(self, name: str) -> str | None:
        scheme, separator, rest = name.partition("://")
        own = self.folder.partition("://")[0]
        if not separator:
            name = f"{self.folder.rstrip('/')}/{name}"
        elif SAME.get(scheme.lower(), scheme.lower()) != SAME.get(own.lower(), own.lower()):
            return None
        else:
            name = f"{own}://{rest}"
        below = name.startswith(self.folder.rstrip("/") + "/")
        said = name
        for _ in range(ROUNDS):
            said = unquote(said)
        steps = said.replace("\\", "/").split("/")
        return name if below and ".." not in steps and "?" not in name and "\0" not in said else None


class ByteBudget:
    """Bytes that a file may unpack to, counted as they come."""

    def __init__(self, where: str, size: int) -> None:
        self.where, self.size, self.most, self.taken = where, size, max(MOST_BYTES, MOST_TIMES * size), 0

    def take(self, count: int, column: str | None = None) -> None:
        """An error where all that was taken is more than there is room for."""
        self.taken += count
        if self.taken > self.most:
            raise DataError(
                "The file unpacks to far more than it holds",
                where=self.where,
                column=column,
                expected=f"at most {MOST_BYTES / 1e9:,.0f} GB, or {MOST_TIMES} bytes for each byte of the file",
                got=f"{self.taken:,} bytes in a file of {self.size:,}",
                hint="if the file is yours, write it without compression",
            )


def below(root: str, paths: Iterable[str], what: str = "folder") -> Iterator[str]:
    """Files that were listed in a folder; an error about the first that is a link to somewhere else.

    Pipes and devices are errors too.
    """
    top = os.path.realpath(root or os.curdir)
    for path in paths:
        found = os.path.realpath(path)
        if not _lies_below(top, found):
            raise DataError(
                f"A file of the {what} is a link to a place outside of it, which is not opened",
                where=path,
                got=f"a link to {found}",
                hint="name the file itself, or put a copy of it there (cp -L)",
            )
        refuse_waiting(path)
        yield path


def refuse_waiting(path: str) -> None:
    """An error for what is no file and might be read without end; what is not there is left to whoever opens it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            "The log is a pipe or a device, not a file",
            where=path,
            hint="write the rows to a file, or read them as a stream (standard input is -)",
        )


def record_text(path: str) -> str:
    """The text of a small file that may be the record of a data set; nothing where it is none."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MOST_RECORD:
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError):
        return ""


def without_repeats(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """For ``json``: an object, and an error where a key stands in it twice and readers may differ on which counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def plainly(path: str) -> str:
    """A path that no library takes for something else: ``~/a`` and ``file:/a`` may be files in folders so called."""
    return os.path.abspath(path) if "~" in path or ":" in path else path


def _lies_below(root: str, path: str) -> bool:
    return os.path.commonpath([root, path]) == root


def _refuse_large(name: str, size: int) -> None:
    if size > MOST_RECORD:
        raise DataError(
            "A record of the table is far too large",
            where=name,
            expected=f"at most {MOST_RECORD >> 20} MB",
            got=f"{size:,} bytes",
        )
