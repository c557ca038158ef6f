"""Scratch: rows that only another library or engine can read are written once as Parquet, and read from there.

A recipe (a lazy frame, a query, a table with deleted rows) may give other rows each time it is followed, and a log is
scanned several times. So it is followed once. The folder lies where ``scratch=`` or ``MIXOPE_SCRATCH`` says, or among
the temporary files of this machine, and it is removed with the last object that reads it, at the latest when the
process ends. What a killed process left on this machine is removed by the next one.
"""

from __future__ import annotations

import atexit
import os
import secrets
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mixope.base.errors import DataError
from mixope.base.files import scratch_folder
from mixope.logs.sources import reading
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.stores import Store, is_address, local_path, open_store, reaching

VARIABLE = "MIXOPE_SCRATCH"
ROWS, MOST_HELD = 1 << 17, 1 << 28
"""Rows of a row group, and the most bytes of one."""
_asked: ContextVar[str | None] = ContextVar("scratch", default=None)


@contextmanager
def lying_in(place: str | os.PathLike[str] | None) -> Iterator[None]:
    """Inside, scratch folders lie in a folder or at an address; None: where the environment says."""
    token = _asked.set(None if place is None else os.fspath(place))
    try:
        yield
    finally:
        _asked.reset(token)


class Scratch:
    """A folder of this process: ``address`` for those who write, ``root`` in the file system of ``filesystem``.

    It is there as long as this object. Pickled, the object is left behind: other processes keep no folder alive.
    """

    def __init__(self) -> None:
        place = _asked.get() or os.environ.get(VARIABLE) or None
        local = place if place is None or not is_address(place) else local_path(place)
        stack = ExitStack()
        if place is not None and local is None:
            self.address, self.filesystem, self.root = _stored(place, stack)
        else:
            from pyarrow import fs

            self.root = self.address = _folder(local, stack)
            self.filesystem = fs.LocalFileSystem()
        self.remove = weakref.finalize(self, stack.close)
        atexit.register(self.remove)  # before pyarrow takes leave of its stores, which is not sure of weakref's own

    @property
    def on_disk(self) -> bool:
        """Whether the folder is one of this machine."""
        return self.address == self.root

    def __reduce__(self) -> tuple[Any, ...]:
        return _left_behind, ()


def _left_behind() -> None:
    return None


def _folder(parent: str | None, stack: ExitStack) -> str:
    """A new folder on this disk."""
    try:
        if parent is not None:
            os.makedirs(parent, exist_ok=True)
        return os.path.abspath(stack.enter_context(scratch_folder(parent)))
    except OSError as error:
        raise DataError(
            f"The scratch folder cannot be made: {error.strerror or error}",
            where=parent or "the temporary files of this machine",
            expected="a folder with room for the rows",
            hint=f"name another with the environment variable {VARIABLE}",
        ) from error


def _stored(place: str, stack: ExitStack) -> tuple[str, Any, str]:
    """A new folder in a store."""
    store, name = open_store(place.rstrip("/"))
    address = f"{name}/mixope-{os.getpid()}-{secrets.token_hex(4)}"
    root = store.path(address)
    with reaching(place):
        store.filesystem.create_dir(root, recursive=True)
    stack.callback(_remove, store.filesystem, root)
    return address, store.filesystem, root


def _remove(filesystem: Any, root: str) -> None:
    with suppress(OSError):  # it is gone, or the store is
        filesystem.delete_dir(root)


def written_once(batches: Iterable[Any], called: str) -> Store:
    """A stream of Arrow batches as one Parquet file of the same name; no more than a row group is held."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept, rows = Scratch(), 0
    path = f"{kept.root}/rows.parquet"
    schema, held = batches.schema, []  # type: ignore[attr-defined]
    with reading(called), pq.ParquetWriter(path, schema, filesystem=kept.filesystem) as file:
        for batch in batches:
            rows += batch.num_rows
            held.append(batch)
            if sum(part.num_rows for part in held) >= ROWS or sum(part.nbytes for part in held) >= MOST_HELD:
                file.write_table(pa.Table.from_batches(held, schema), row_group_size=ROWS)
                held = []
        if held:
            file.write_table(pa.Table.from_batches(held, schema), row_group_size=ROWS)
    if not rows:
        raise DataError("The table has no rows", where=called, expected="at least one row")
    return Store(kept.filesystem, called, path, kept)


def found_once(batches: Iterable[Any], called: str, record: Mapping[str, Any]) -> Finds:
    """The same, as something that is found."""
    store = written_once(batches, called)
    return Finds((Found(called, typed=True, format="parquet", store=store),), record=record)
