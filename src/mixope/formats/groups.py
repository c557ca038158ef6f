"""Groups of hdf5 files: arrays by name, checked as they are read. What h5py finds wrong is an error about the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mixope.base.errors import DataError, MissingExtra
from mixope.logs.sources import reading
from mixope.logs.sources.gate import ByteBudget, refuse_waiting
from mixope.logs.sources.spaces import CONVERT

MOST_SIDES = 2
"""An array has rows, and perhaps numbers in each row."""
FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}
"""How values may be packed: by what the library itself has. For others it would look for code on the disk."""
HELD = 1 << 28
"""Bytes of values of any length that are read at once."""


class NotedArrays(NamedTuple):
    """The columns that were found, and what was assumed about them."""

    arrays: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class Group:
    """A group of an hdf5 file, or the whole file: where it is, for messages, and its arrays."""

    def __init__(self, where: str, content: Any, room: ByteBudget) -> None:
        self.where, self.content, self.room = where, content, room

    def group(self, name: str) -> Group | None:
        """A group in it, which has its part of the same room; None where there is none."""
        with reading_hdf5(self.where):
            found = self._below(self.content, name)
        return Group(f"{self.where}, {name}", found, self.room) if hasattr(found, "keys") else None

    @property
    def names(self) -> list[str]:
        """What lies in it."""
        with reading_hdf5(self.where):
            return [str(name) for name in self.content]

    def values(self, *way: str) -> Any:
        """An array by the names on the way to it; None where there is none. Text instead of bytes."""
        with reading_hdf5(self.where):
            found = self.content
            for name in way:
                found = self._below(found, name) if hasattr(found, "keys") else None
            if found is None or hasattr(found, "keys"):
                return None
            self._refuse_elsewhere(found, way[-1])
            self.room.take(found.nbytes, way[-1])
            if found.dtype.kind == "O" and found.ndim:
                return _decoded(self._of_any_length(found, way[-1]))
            return _decoded(np.asarray(found[()]))

    def _of_any_length(self, array: Any, name: str) -> Any:
        """Texts or lists, of which each may be as long as the file, and stand in many places."""
        step = max(1, HELD // max(1, self.room.size, array.nbytes // max(1, len(array))))
        parts = []
        for begin in range(0, len(array), step):
            part = array[begin : begin + step]
            self.room.take(sum(getattr(each, "nbytes", None) or _length(each) for each in part.reshape(-1)), name)
            parts.append(part)
        return np.concatenate(parts) if parts else array[()]

    def _below(self, group: Any, name: str) -> Any:
        """What has this name in a group, unless the name is a link, which may lead to another file."""
        import h5py

        if isinstance(group.get(name, getlink=True), h5py.ExternalLink | h5py.SoftLink):
            raise _elsewhere(self.where, name, "a link")
        return group.get(name)

    def _refuse_elsewhere(self, array: Any, name: str) -> None:
        """Refuse an array whose values lie in other files, or need code to be loaded."""
        if array.external:
            raise _elsewhere(self.where, name, "values kept in another file")
        if array.is_virtual:
            raise _elsewhere(self.where, name, "a view of arrays, perhaps of other files")
        made = array.id.get_create_plist()
        packed = {made.get_filter(place)[0] for place in range(made.get_nfilters())}
        if packed - FILTERS.keys():
            raise DataError(
                "The values of an array are packed by a filter that the library would have to load",
                where=self.where,
                column=name,
                expected=", ".join(FILTERS.values()),
                got=f"filter {min(packed - FILTERS.keys())}",
                hint="h5repack -f GZIP=4, or write the arrays without that filter",
            )

    def steps(self, name: str, rows: int | None = None) -> Any:
        """An array with one entry per step, of which there are ``rows``; an error where there is no such array."""
        values = self.values(name)
        expected = "one entry per step" if rows is None else f"{rows} entries, one per step"
        if values is None or values.ndim == 0 or (rows is not None and len(values) != rows):
            got = "none" if values is None else f"an array of shape {values.shape}"
            problem = "An array of the file is missing or not whole"
            raise DataError(problem, where=self.where, column=name, expected=expected, got=got)
        if values.ndim > MOST_SIDES:
            raise DataError(
                "The entries of an array are pictures or tables",
                where=self.where,
                column=name,
                expected="one number or a few in each step",
                got=f"an array of shape {values.shape}",
                hint=CONVERT,
            )
        return values

    def each(self, name: str, rows: int) -> Any:
        """An array with one value per step, whether it is stored as (n,) or as (n, 1)."""
        values = self.steps(name, rows)
        if values.size != rows:
            raise DataError(
                "There are several values per step",
                where=self.where,
                column=name,
                expected="one value per step",
                got=f"an array of shape {values.shape}",
            )
        return values.reshape(rows)

    def flags(self, name: str, rows: int) -> Any:
        """An array of true and false, or of 1 and 0, one per step."""
        values = self.each(name, rows)
        if values.dtype.kind not in "biuf":
            raise DataError("An array does not hold flags", where=self.where, column=name, expected="true/false or 0/1")
        return values


def _elsewhere(where: str, name: str, got: str) -> DataError:
    return DataError(
        "The hdf5 file refers to something outside of itself, which is not opened",
        where=where,
        column=name,
        expected="arrays that are stored in the file",
        got=got,
        hint="copy the arrays into one file: h5repack, or h5py's copy(…, expand_external=True, expand_soft=True)",
    )


@contextmanager
def opened_hdf5(place: str, where: str, purpose: str) -> Iterator[Group]:
    """A file, open while the block runs."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("minari", purpose) from error
    refuse_waiting(place)
    with reading_hdf5(where):
        file = h5py.File(place, "r")
    with file:
        yield Group(where, file, ByteBudget(where, os.path.getsize(place)))


@contextmanager
def reading_hdf5(where: str) -> Iterator[None]:
    """What h5py finds wrong is an error about the file."""
    try:
        with reading(where):
            yield
    except (KeyError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"The log cannot be read: {error}", where=where, expected="a whole hdf5 file") from error


def _decoded(array: Any) -> Any:
    """Text instead of bytes."""
    if array.dtype.kind not in "OS":
        return array
    texts = [each.decode("utf-8") if isinstance(each, bytes) else each for each in array.reshape(-1)]
    return np.array(texts, dtype=object).reshape(array.shape)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes) else 1


def counted(ends: Any) -> dict[str, Any]:
    """The number of the episode and of the step in it, for rows in the order of time; ``ends``: its last rows."""
    rows = np.arange(len(ends))
    first = np.concatenate([[True], np.asarray(ends[:-1], bool)]) if len(ends) else np.zeros(0, bool)
    return {"episode_id": np.cumsum(first) - 1, "step": rows - np.maximum.accumulate(np.where(first, rows, 0))}
