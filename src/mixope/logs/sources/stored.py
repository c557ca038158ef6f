"""Finding the files of a store: a file, a folder or a pattern, listed once.

    s3://bucket/logs/   s3://bucket/logs/day=2026-11-*/*.parquet   s3://bucket/logs/**/*.csv

A pattern is followed folder by folder until its first ``**``, so folders that it does not match are never listed: that
is how partitions are pruned. The listing also gives the size and the time of change of every file; no file is looked up
by itself.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.sources import formats
from mixope.logs.sources.endings import constants_of, left_out, no_logs, sort_out
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.marks import HOODIE, LOG, METADATA, RECORDS, is_version, refuse_hudi
from mixope.logs.sources.stores import Store, open_store, reaching


def find_stored(address: str) -> Finds:
    """The files behind an address."""
    store, name = open_store(address)
    with reaching(name):
        found = _one(store, name.rstrip("/"))
        if found is None and glob.has_magic(name.removeprefix(store.called)):
            return _matching(store, name)
    if found is None:
        raise _nothing(store, name)
    if _is_folder(found):
        return _folder(store, name.rstrip("/"))
    _refuse_parts(store, name.rpartition("/")[0])
    return Finds((_found(store, found, ""),))


def _one(store: Store, name: str) -> Any | None:
    """What has exactly this name."""
    info = store.filesystem.get_file_info(store.path(name))
    return info if info.is_file or _is_folder(info) else None


def _is_folder(info: Any) -> bool:
    from pyarrow import fs

    return bool(info.type == fs.FileType.Directory)


def _list(store: Store, folder: str, *, deep: bool) -> list[Any]:
    from pyarrow import fs

    selector = fs.FileSelector(store.path(folder), recursive=deep, allow_not_found=True)
    return sorted(store.filesystem.get_file_info(selector), key=lambda info: str(info.path))


def _found(store: Store, info: Any, root: str) -> Found:
    """A listed file; ``root`` is the folder below which folders hold columns, and "" where none does."""
    name = store.name(info.path)
    folders = name.removeprefix(root).split("/")[:-1] if root else []
    return Found(name, constants_of(folders), store=store, state=(info.size, info.mtime_ns))


def _folder(store: Store, folder: str) -> Finds:
    """A folder with all that is below it."""
    with reaching(folder):
        listed = _list(store, folder, deep=True)
    below = {store.name(info.path).removeprefix(f"{folder}/"): info for info in listed}
    whole = _whole(store, folder, [name for name in below if "/" not in name or name.startswith(METADATA)])
    if whole is not None:
        return whole
    _refuse_parts(store, folder.rpartition("/")[0])
    _refuse_marked(folder, below)
    files = [name for name, info in below.items() if info.is_file and not _hidden(name)]
    logs, others = sort_out(files)
    if not logs:
        raise no_logs(folder)
    notes = (left_out(folder, others),) if others else ()
    return Finds(tuple(_found(store, below[name], folder) for name in logs), notes)


def _whole(store: Store, folder: str, names: Iterable[str]) -> Finds | None:
    """A folder that is a table with a record of its own."""
    found = set(names)
    if LOG in found:
        return formats.find("delta", folder, store)
    if HOODIE in found:
        return refuse_hudi(folder)
    if any(name.startswith(f"{METADATA}/") and is_version(name.rpartition("/")[2]) for name in found):
        return formats.find("iceberg", folder, store)
    return None


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))


def _refuse_marked(folder: str, names: Iterable[str]) -> None:
    """No table or data set with a record of its own may lie among the files."""
    for name in names:
        if f"/{name}".endswith(tuple(f"/{record}" for record in RECORDS)):
            raise DataError(
                "The folder holds a data set with a record of its own, which is read from this machine only",
                where=f"{folder}/{name}",
                expected="files that are logs by themselves, or a table of a lake",
                hint="copy the folder to this machine, and give its path",
            )
        parts = name.split("/")
        marks = [i for i, part in enumerate(parts) if part in (LOG, HOODIE)]
        if len(parts) > 1 and parts[-2] == METADATA and is_version(parts[-1]):
            marks.append(len(parts) - 2)
        if marks:
            inner = "/".join([folder, *parts[: marks[0]]])
            part = "The path is a part of a table with a record of its own"
            raise DataError(
                "The folder is a table with a record of its own, among other logs" if marks[0] else part,
                where=inner,
                expected="the table as a whole: its record says which rows count",
                hint=f"give {inner!r} as a source of its own",
            )


def _refuse_parts(store: Store, folder: str) -> None:
    """No table with a record of its own may lie on the way to the files."""
    from pyarrow import fs

    parts = folder.removeprefix(store.called).strip("/").split("/") if folder != store.called else []
    above = ["/".join([store.called, *parts[: i + 1]]) for i in range(len(parts))]
    marks = [f"{parent}/{mark}" for parent in above for mark in (LOG, HOODIE)]
    try:
        infos = store.filesystem.get_file_info([store.path(mark) for mark in marks]) if marks else []
    except OSError:  # folders above may be closed to this user
        return
    inside = next((m for m, info in zip(marks, infos, strict=True) if info.type == fs.FileType.Directory), None)
    if inside is not None:
        table = inside.rpartition("/")[0]
        raise DataError(
            "The path is a part of a table with a record of its own",
            where=folder,
            expected="the table as a whole: its record says which rows count",
            hint=f"give {table!r} as a source of its own",
        )


def _matching(store: Store, pattern: str) -> Finds:
    """All files that match, and those in folders that do."""
    parts = pattern.removeprefix(store.called).lstrip("/").split("/")
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    root = "/".join([store.called, *parts[:fixed]])
    matches = list(_expand(store, root, parts[fixed:]))
    _refuse_parts(store, root)
    files = [_found(store, info, root) for info in matches if info.is_file]
    notes: tuple[str, ...] = ()
    for info in matches:
        if _is_folder(info):
            name = store.name(info.path)
            inner, above = _folder(store, name), constants_of(name.removeprefix(root).split("/"))
            files += [f if f.typed else replace(f, constants=(*above, *f.constants)) for f in inner.files]
            notes += inner.notes
    if not files:
        raise _nothing(store, pattern)
    return Finds(tuple(files), notes)


def _expand(store: Store, folder: str, parts: Sequence[str]) -> Iterator[Any]:
    """What matches the rest of a pattern below a folder; the hidden is matched only by name."""
    first, rest = parts[0], parts[1:]
    if first == "**":
        listed = _list(store, folder, deep=True)
        below = {store.name(info.path).removeprefix(f"{folder}/"): info for info in listed}
        _refuse_marked(folder, below)
        files = {name: info for name, info in below.items() if info.is_file and not _hidden(name)}
        yield from (info for name, info in files.items() if _fits(name.split("/"), parts))
        return
    if not glob.has_magic(first):
        found = _one(store, f"{folder}/{first}")
        if found is not None and rest and _is_folder(found):
            yield from _expand(store, f"{folder}/{first}", rest)
        elif found is not None and not rest:
            yield found
        return
    listed = _list(store, folder, deep=False)
    _refuse_marked(folder, [f"{info.base_name}/" for info in listed])
    for info in listed:
        seen = first.startswith((".", "_")) or not info.base_name.startswith((".", "_"))
        if seen and fnmatch.fnmatchcase(info.base_name, first):
            if not rest:
                yield info
            elif _is_folder(info):
                yield from _expand(store, store.name(info.path), rest)


def _fits(name: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a name match those of a pattern; ``**`` stands for any folders, or none."""
    if not pattern:
        return not name
    if pattern[0] == "**":
        return len(pattern) == 1 or any(_fits(name[i:], pattern[1:]) for i in range(len(name)))
    return bool(name) and fnmatch.fnmatchcase(name[0], pattern[0]) and _fits(name[1:], pattern[1:])


def _nothing(store: Store, name: str) -> DataError:
    """Why nothing is found: the bucket, or what is in it."""
    with reaching(name):
        bucket = store.filesystem.get_file_info(store.root or "/")
    if store.root and not _is_folder(bucket):
        hint = "check its name and the endpoint"
        return DataError("There is no such bucket", where=store.called, expected="a bucket that is there", hint=hint)
    return DataError(
        "No such file",
        where=name,
        expected="a file, a folder or a pattern that matches one",
        hint="list the bucket with the store's own tools, and compare",
    )
