"""From what a user types to pieces: paths, globs, folders, ``label=path``, columns kept in folder names; formats.

    a.parquet   logs/*.csv   logs/   old=logs/a.parquet   logs/policy_id=old/part-0.parquet

A real file wins over a pattern and over a label. Files of a glob or folder come sorted by name, and so do their rows.
No file of a folder is passed over in silence: a sub-folder that is a link or cannot be listed is an error.
Addresses (``s3://bucket/logs/``) are looked up by :mod:`mixope.logs.sources.stored`.
Folders that are more than their files (Delta tables, Minari data sets) are known by :mod:`mixope.logs.sources.layouts`.
Only headers and footers are read here (of CSV files: the values, to find their types).
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby

from mixope.base.errors import Advice, DataError, Setting, UnknownName
from mixope.base.files import has_text_name
from mixope.logs.sources import Piece
from mixope.logs.sources.arrays import open_npz
from mixope.logs.sources.arrow import open_arrow
from mixope.logs.sources.endings import LINES, constants_of, endings, format_of, formats, left_out, no_logs, sort_out
from mixope.logs.sources.formats import Reader, reader
from mixope.logs.sources.formats import find as find_in
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.gate import below, plainly
from mixope.logs.sources.layouts import find_whole, refuse_marked, refuse_parts
from mixope.logs.sources.lines import open_lines
from mixope.logs.sources.marks import is_database
from mixope.logs.sources.parquet import open_parquet
from mixope.logs.sources.stored import find_stored
from mixope.logs.sources.stores import is_address, local_path
from mixope.logs.sources.tables import MINARI, find_table, resolve_minari
from mixope.logs.sources.text import open_text

READERS: dict[str, Reader] = {
    "parquet": open_parquet,
    "csv": partial(open_text, tabs=False),
    "tsv": partial(open_text, tabs=True),
    "jsonl": open_lines,
    "arrow": open_arrow,
    "npz": open_npz,
}
"""The formats of the core, and how their files are read; others are wings (:mod:`mixope.logs.sources.formats`)."""


def split_label(text: str) -> tuple[str | None, str]:
    """``label=path`` in two, unless the whole names something that is there."""
    label, equals, path = text.partition("=")
    if not equals or not label or not path or _matches(text) or os.sep in label or "/" in label:
        return None, text
    return label, path


def find(path: str) -> Finds:
    """The files behind a path, glob or folder."""
    table = find_table(path)
    if table is not None:
        return table
    if is_address(path):
        here = local_path(path)
        if here is None:
            return find_stored(path)
        path = here
    path = resolve_minari(path) if path.startswith(MINARI) and not _matches(path) else os.path.expanduser(path)
    matches = _matches(path)
    if not matches:
        raise _nothing(path)
    single = plainly(matches[0]) if len(matches) == 1 else None
    whole = None if single is None else find_whole(single)
    if whole is None and single is not None and is_database(single):
        whole = find_in("database", single)
    if whole is not None:
        return whole
    refuse_parts(matches)
    root = path if os.path.isdir(path) else _fixed_part(path)
    folders = [match for match in matches if os.path.isdir(match)]
    inside = {folder: _inside(folder) for folder in folders}
    files = [plainly(name) for match in matches for name in (inside[match][0] if match in inside else [match])]
    if not files:
        raise no_logs(path)
    if files != matches or glob.has_magic(path):  # a single file is the user's own word, wherever it leads
        files = list(below(root, files, "folder"))
    strange = next((name for name in files if not os.path.isfile(name)), None)
    if strange is not None:
        raise DataError(
            "The log is a pipe or a device, not a file",
            where=strange,
            hint="write the rows to a file, or read them as a stream (standard input is -)",
        )
    unnamed = next((name for name in files if not has_text_name(name)), None)
    if unnamed is not None:
        raise DataError("The name of the file is not UTF-8", where=unnamed, hint="rename the file")
    found = tuple(Found(name, () if name == path else _constants(name, root)) for name in files)
    return Finds(found, tuple(_note(folder, others) for folder, (_, others) in inside.items() if others))


def _note(folder: str, others: Sequence[str]) -> str:
    return left_out(folder, [os.path.relpath(name, folder) for name in others])


def open_files(found: Sequence[Found], format: str | None) -> tuple[Piece, ...]:
    """The pieces of some files, in file order."""
    if format is not None and format not in formats():
        raise UnknownName("format", format, formats())
    untyped = [file for file in found if not file.typed]
    opened = [(file.format or _reader_of(file.path, format), file) for file in found]
    pieces: list[Piece] = []
    for (name, constants, typed, store), group in groupby(
        opened, key=lambda pair: (pair[0], pair[1].constants, pair[1].typed, pair[1].store)
    ):
        values = dict(constants) if typed else _typed(constants, untyped)
        read = READERS.get(name) or reader(name)
        pieces += read([file.path for _, file in group], values, store)
    return tuple(pieces)


def _reader_of(path: str, format: str | None) -> str:
    name = format or format_of(path) or ("jsonl" if path.lower().endswith(LINES) else None)
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
    return sort_out(found)


def _link(path: str) -> DataError:
    return DataError(
        "A sub-folder is a link, and links to folders are not followed",
        where=path,
        got=f"a link to {os.path.realpath(path)}",
        hint="give the folder that it leads to as a source of its own, or move the link out of this one",
    )


def _fixed_part(pattern: str) -> str:
    parts = pattern.split(os.sep)
    magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return os.sep.join(parts[:magic])


def _constants(name: str, root: str) -> tuple[tuple[str, str], ...]:
    folders = os.path.relpath(name, root or ".").split(os.sep)[:-1]
    return constants_of(folders)


def _nothing(path: str) -> DataError:
    folder = os.path.dirname(path) or "."
    names = os.listdir(folder) if os.path.isdir(folder) else []
    near = difflib.get_close_matches(os.path.basename(path), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(os.path.join(os.path.dirname(path), n)) for n in near)}?" if near else None
    if not os.path.isdir(folder):
        hint = f"the folder {folder!r} does not exist"
    return DataError("No such file", where=path, expected="a file, a folder or a pattern that matches one", hint=hint)
