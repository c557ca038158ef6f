"""Stamps: what a file was when it was opened, so that every scan reads the same rows or none.

A log is scanned several times, and what it is (its columns, their types, its rows) is found before. A file that is
written meanwhile would answer one scan with some rows and the next with others. So each file is stamped before it is
opened (its size, its time of change, its first and last bytes, which hold the footer of a Parquet file; of a store of
objects, its version where it is young), and looked at again before and after every scan.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mixope.base.errors import DataError
from mixope.logs.sources import reading

if TYPE_CHECKING:
    from mixope.logs.sources.stores import Store

ENDS = 65_536
"""Bytes at either end of a file that are part of its stamp."""
VERSIONS = ("etag", "ETag", "md5Hash", "content_md5", "VersionId")
"""Where file systems keep what changes with the content of a file."""
RECENT = 60.0
"""Seconds. Stores give times in whole seconds, so that a file as young as this may be written again at the same time;
only its version tells. The clocks of the store and of this machine may differ by as much."""
MANY = 10
"""Files of a store that are looked up one by one; more are listed, folder by folder, where they fill their folders."""


@dataclass(frozen=True)
class Stamp:
    """One version of a file; ``filesystem`` is None for local ones. ``state`` is cheap to look up, ``ends`` is read."""

    name: str
    path: str
    state: tuple[Any, ...]
    ends: str | None = None
    filesystem: Any = None

    def difference(self, now: tuple[Any, ...] | None, *, thorough: bool) -> str | None:
        """What is another now; None if it is the same version. Only where ``thorough`` is a local file opened."""
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
        state = _state(path)
        if state is not None and os.path.isfile(path) and os.access(path, os.R_OK):
            found.append(Stamp(name, path, state, ends_of(path, state[0])))
    return tuple(found)


def stamped_in(filesystem: Any, path: str) -> Stamp | None:
    """Of a file of a store; None where there is none."""
    state = next(iter(_states(filesystem, [path])))
    if state is None:
        return None
    version = version_of(filesystem, path) if _is_young(state) else []
    return Stamp(path, path, (*state, *version), None, filesystem)


def _is_young(state: tuple[Any, ...]) -> bool:
    return not state[1] or abs(time.time() - state[1] / 1e9) < RECENT


def stamped_stored(files: Iterable[tuple[Store, str, tuple[Any, ...] | None]]) -> Iterator[Stamp]:
    """Of files of stores, by name and what a listing said of them; those that no listing gave are looked up."""
    for store, group in groupby(files, key=lambda each: each[0]):
        mine = list(group)
        if store.on_disk:
            for _, name, _ in mine:
                yield from (replace(stamp, name=name) for stamp in stamped([store.path(name)]))
            continue
        paths = [store.path(name) for _, name, _ in mine]
        unknown = [path for path, (_, _, state) in zip(paths, mine, strict=True) if state is None]
        found = dict(zip(unknown, _states(store.filesystem, unknown), strict=True)) if unknown else {}
        known = {path: state or found[path] for path, (_, _, state) in zip(paths, mine, strict=True)}
        versions = _versions(store.filesystem, [path for path, state in known.items() if state and _is_young(state)])
        for path, (_, name, _) in zip(paths, mine, strict=True):
            state = known[path]
            if state is not None:
                yield Stamp(name, path, (*state, *versions.get(path, ())), None, store.filesystem)


def refuse_changed(stamps: Iterable[Stamp], *, thorough: bool = False) -> None:
    """An error about the first file that is not what it was."""
    for stamp, now in _now(list(stamps)):
        difference = stamp.difference(now, thorough=thorough)
        if difference is not None:
            raise DataError(
                "The file has changed since it was opened; what was read of it belongs to no single version",
                where=stamp.name,
                expected="the same content in every scan",
                got=difference,
                hint="wait until nothing writes to it (or copy it), and read it again",
            )


def _now(stamps: Sequence[Stamp]) -> Iterator[tuple[Stamp, tuple[Any, ...] | None]]:
    """The size and time of change of every stamped file as they are now; stores are asked about all files at once."""
    for filesystem, group in groupby(stamps, key=lambda stamp: stamp.filesystem):
        mine = list(group)
        paths = [stamp.path for stamp in mine]
        if filesystem is None:
            yield from zip(mine, map(_state, paths), strict=True)
            continue
        found = dict(zip(paths, _states(filesystem, paths), strict=True))
        young = [s.path for s in mine if len(s.state) > 2 and found[s.path] == s.state[:2]]
        versions = _versions(filesystem, young)
        for stamp in mine:
            now = found[stamp.path]
            yield stamp, now if now is None else (*now, *versions.get(stamp.path, ()))


def _versions(filesystem: Any, paths: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """The versions of some files, asked for side by side."""
    from mixope.logs.sources.stores import all_at_once

    return dict(zip(paths, all_at_once(lambda path: version_of(filesystem, path), paths), strict=True))


def is_local(filesystem: Any) -> bool:
    """Whether the files of a pyarrow file system are files of this machine."""
    from pyarrow import fs

    return isinstance(filesystem, fs.LocalFileSystem)


def ends_of(path: str, size: int) -> str:
    """A hash of the first and the last bytes of a file."""
    digest = hashlib.sha256()
    with reading(path), open(path, "rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(size - ENDS, 0))
        digest.update(file.read(ENDS))
    return digest.hexdigest()


def version_of(filesystem: Any, path: str) -> list[tuple[str, str]]:
    """What a store says of this version of a file; nothing where it says no more than size and time."""
    inner = getattr(getattr(filesystem, "handler", None), "fs", None)
    with reading(path):
        if inner is None:
            with filesystem.open_input_file(path) as file:
                return version_in(file)
        info = inner.info(path)
    return [(key, str(info[key])) for key in VERSIONS if info.get(key)]


def version_in(file: Any) -> list[tuple[str, str]]:
    """What an open file of a store says of its version; its size where it says nothing."""
    found = (file.metadata() if hasattr(file, "metadata") else None) or {}
    said = {str(key): value.decode() if isinstance(value, bytes) else str(value) for key, value in found.items()}
    return [(key, said[key]) for key in VERSIONS if said.get(key)]


def _state(path: str) -> tuple[Any, ...] | None:
    """Size and time of change in nanoseconds of a local file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _states(filesystem: Any, paths: Sequence[str]) -> list[tuple[Any, ...] | None]:
    """The same of files of a store: one by one where they are few, else from the listings of their folders."""
    from pyarrow import fs

    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    with reading(paths[0]):
        if len(paths) <= MANY or 10 * len(folders) > len(paths):
            infos = filesystem.get_file_info(list(paths))
        else:
            selectors = [fs.FileSelector(folder, allow_not_found=True) for folder in folders]
            infos = [info for selector in selectors for info in filesystem.get_file_info(selector)]
    known = {info.path.lstrip("/"): (info.size, info.mtime_ns) for info in infos if info.is_file}
    return [known.get(path.lstrip("/")) for path in paths]


def _words(state: tuple[Any, ...]) -> str:
    size, changed, *version = state
    when = f", changed {datetime.fromtimestamp(changed / 1e9).isoformat(' ')}" if changed else ""
    return f"{size:,} bytes{when}" + "".join(f", {key} {value}" for key, value in version)
