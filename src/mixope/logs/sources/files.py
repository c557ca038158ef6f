"""From what a user types to pieces: paths, globs, folders, ``label=path``, columns kept in folder names; formats.

    a.parquet   logs/*.csv   logs/   old=logs/a.parquet   logs/policy_id=old/part-0.parquet

A real file wins over a pattern and over a label. Files of a glob or folder come sorted by name, and so do their rows.
No file of a folder is passed over in silence: a sub-folder that is a link or cannot be listed, and a file that looks
like a log of an ending that is not read (``b.parquet.gz``), are errors; other files are counted in a note.
Folders that are more than their files (Delta tables, Minari data sets) are known by :mod:`mixope.logs.sources.layouts`.
Only headers and footers are read here (of CSV files: the values, to find their types).
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby

from mixope.errors import Advice, DataError, Setting, UnknownName
from mixope.files import has_text_name
from mixope.logs.sources import Piece
from mixope.logs.sources.arrays import open_npz
from mixope.logs.sources.arrow import open_arrow
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.layouts import find_whole, refuse_marked, refuse_parts
from mixope.logs.sources.minari import SCHEME, open_minari, resolve_minari
from mixope.logs.sources.parquet import open_parquet
from mixope.logs.sources.text import open_text

FORMATS: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "tsv": (".tsv", ".tsv.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npz": (".npz",),
}
"""Format → the endings of file names."""

READERS: dict[str, Callable[[Sequence[str], Mapping[str, str | int]], Iterable[Piece]]] = {
    "parquet": open_parquet,
    "csv": partial(open_text, tabs=False),
    "tsv": partial(open_text, tabs=True),
    "arrow": open_arrow,
    "npz": open_npz,
    "minari": open_minari,
}
"""Format → reader. A new format is one function, and one line here and in ``FORMATS`` or ``LAYOUTS``."""

SHOWN = 3
"""How many of the files that are not read a note names."""


def split_label(text: str) -> tuple[str | None, str]:
    """``label=path`` in two, unless the whole names something that is there."""
    label, equals, path = text.partition("=")
    if not equals or not label or not path or _matches(text) or os.sep in label or "/" in label:
        return None, text
    return label, path


def find(path: str) -> Finds:
    """The files behind a path, glob or folder."""
    if "://" in path:
        raise DataError(
            "Remote addresses are not opened here", got=path, hint="open it as a pyarrow dataset, and pass the dataset"
        )
    path = resolve_minari(path) if path.startswith(SCHEME) and not _matches(path) else os.path.expanduser(path)
    matches = _matches(path)
    if not matches:
        raise _nothing(path)
    whole = find_whole(matches[0]) if len(matches) == 1 else None
    if whole is not None:
        return whole
    refuse_parts(matches)
    root = path if os.path.isdir(path) else _fixed_part(path)
    folders = [match for match in matches if os.path.isdir(match)]
    inside = {folder: _inside(folder) for folder in folders}
    files = [name for match in matches for name in (inside[match][0] if match in inside else [match])]
    if not files:
        raise DataError("The folder holds no logs", where=path, expected=f"files ending in {endings()}")
    strange = next((name for name in files if not os.path.isfile(name)), None)
    if strange is not None:
        raise DataError("The log is a pipe or a device, not a file", where=strange, hint="write the rows to a file")
    unnamed = next((name for name in files if not has_text_name(name)), None)
    if unnamed is not None:
        raise DataError("The name of the file is not UTF-8", where=unnamed, hint="rename the file")
    found = tuple(Found(name, () if name == path else _constants(name, root)) for name in files)
    return Finds(found, tuple(_left_out(folder, others) for folder, (_, others) in inside.items() if others))


def format_of(path: str) -> str | None:
    """The format that a file's name says."""
    lower = path.lower()
    return next((name for name, ends in FORMATS.items() if lower.endswith(ends)), None)


def endings() -> str:
    """All known endings, for messages."""
    return ", ".join(ending for ends in FORMATS.values() for ending in ends)


def open_files(found: Sequence[Found], format: str | None) -> tuple[Piece, ...]:
    """The pieces of some files, in file order."""
    if format is not None and format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    untyped = [file for file in found if not file.typed]
    opened = [(file.format or _reader_of(file.path, format), file) for file in found]
    pieces: list[Piece] = []
    for (name, constants, typed), group in groupby(
        opened, key=lambda pair: (pair[0], pair[1].constants, pair[1].typed)
    ):
        values = dict(constants) if typed else _typed(constants, untyped)
        pieces += READERS[name]([file.path for _, file in group], values)
    return tuple(pieces)


def _reader_of(path: str, format: str | None) -> str:
    name = format or format_of(path)
    if name is None:
        expected = f"a name ending in {endings()}"
        raise DataError("Unknown format", where=path, expected=expected, hint=Advice(Setting("format")))
    return name


def _typed(constants: tuple[tuple[str, str | int], ...], found: Sequence[Found]) -> dict[str, str | int]:
    """Folder values as integers where all values of that key are."""
    every = [pair for file in found for pair in file.constants]
    whole = {key: all(str(v).isdecimal() for k, v in every if k == key) for key, _ in constants}
    return {key: int(value) if whole[key] else value for key, value in constants}


def _matches(path: str) -> list[str]:
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        return []
    _refuse_unlistable(path)
    return sorted(glob.glob(path, recursive=True))


def _refuse_unlistable(pattern: str) -> None:
    """A folder on the way of a pattern that cannot be listed is an error; the module passes over it."""
    parts = pattern.split(os.sep)
    magic = [i for i, part in enumerate(parts) if glob.has_magic(part)]
    for last in magic:
        above = os.sep.join(parts[: last + 1]) if parts[last] == "**" else os.sep.join(parts[:last])
        for folder in glob.glob(above, recursive=True) if glob.has_magic(above) else [above or os.curdir]:
            if os.path.isdir(folder):
                with _listing(folder), os.scandir(folder):
                    pass


@contextmanager
def _listing(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"A folder cannot be listed: {error.strerror or error}",
            where=error.filename or folder,
            expected="a folder that can be read, so that no log in it is passed over",
            hint="allow reading it, or name the files to read one by one",
        ) from None


def _inside(folder: str) -> tuple[list[str], list[str]]:
    """The logs in a folder and its sub-folders, and the other files; hidden ones (``.``, ``_``) are neither."""

    def refuse(error: OSError) -> None:
        raise error

    found: list[str] = []
    with _listing(folder):
        for parent, folders, names in os.walk(folder, onerror=refuse):
            refuse_marked(parent)
            folders[:] = [name for name in folders if not name.startswith((".", "_"))]
            for name in folders:
                if os.path.islink(os.path.join(parent, name)):
                    raise _link(os.path.join(parent, name))
            found += [os.path.join(parent, name) for name in names if not name.startswith((".", "_"))]
    logs = sorted(name for name in found if format_of(name))
    others = sorted(set(found) - set(logs))
    strange = next((name for name in others if _looks_like_a_log(name)), None)
    if strange is not None:
        raise DataError(
            "A file of the folder looks like a log and cannot be read as one",
            where=strange,
            expected=f"a name ending in {endings()}",
            hint="unpack or rename it, or move it out of the folder",
        )
    return logs, others


def _looks_like_a_log(path: str) -> bool:
    """Whether a known ending stands in the middle of the name: ``b.parquet.gz``, ``b.csv.part``."""
    name = os.path.basename(path).lower()
    return any(f"{ending}." in name for ends in FORMATS.values() for ending in ends)


def _link(path: str) -> DataError:
    return DataError(
        "A sub-folder is a link, and links to folders are not followed",
        where=path,
        got=f"a link to {os.path.realpath(path)}",
        hint="give the folder that it leads to as a source of its own, or move the link out of this one",
    )


def _left_out(folder: str, others: Sequence[str]) -> str:
    shown = ", ".join(os.path.relpath(name, folder) for name in others[:SHOWN])
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    are = (
        "1 file is not read: its ending is"
        if len(others) == 1
        else f"{len(others)} files are not read: their endings are"
    )
    return f"{folder}: {are} none of those of logs ({shown}{more})"


def _fixed_part(pattern: str) -> str:
    parts = pattern.split(os.sep)
    magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return os.sep.join(parts[:magic])


def _constants(name: str, root: str) -> tuple[tuple[str, str], ...]:
    folders = os.path.relpath(name, root or ".").split(os.sep)[:-1]
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    return tuple((key, value) for key, _, value in pairs if key and value)


def _nothing(path: str) -> DataError:
    folder = os.path.dirname(path) or "."
    names = os.listdir(folder) if os.path.isdir(folder) else []
    near = difflib.get_close_matches(os.path.basename(path), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(os.path.join(os.path.dirname(path), n)) for n in near)}?" if near else None
    if not os.path.isdir(folder):
        hint = f"the folder {folder!r} does not exist"
    return DataError("No such file", where=path, expected="a file, a folder or a pattern that matches one", hint=hint)
