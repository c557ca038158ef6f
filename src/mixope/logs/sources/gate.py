"""What a container may refer to: files below its own folder, in its own store, and nothing else.

A table format is a few files that name others. Those names come from whoever wrote the table, and a table of a stranger
may name anything: a file of yours, a server of theirs, a class to be called. So each name goes through the gate before
anything is opened. Below a folder is what lies there when all links are followed and all ``..`` are carried out;
in a store it is what begins with the address of the folder and has no ``..`` in it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mixope.errors import DataError
from mixope.logs.sources.stores import Store, is_address, local_path

SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that name the same store."""


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

    def open_place(self, name: str) -> tuple[Any, str]:
        """The file system of pyarrow, and the path in it, of a file that is admitted."""
        from pyarrow import fs

        admitted = self.admit(name)
        if self.store is None:
            return fs.LocalFileSystem(), admitted
        return self.store.filesystem, self.store.path(admitted)

    def _on_disk(self, name: str) -> str | None:
        if is_address(name):
            path = local_path(name) if name.lower().startswith("file:") else None
        else:
            path = unquote(name.removeprefix("file:")) if name.startswith("file:") else name
        if path is None or "\0" in path:
            return None
        root = os.path.realpath(self.folder)
        found = os.path.realpath(os.path.join(root, path))
        return found if os.path.commonpath([root, found]) == root and found != root else None

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
        steps = unquote(unquote(name)).replace("\\", "/").split("/")
        return name if below and ".." not in steps and "?" not in name and "\0" not in name else None
