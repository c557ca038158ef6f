"""From what a user types to pieces: paths, globs, folders, ``label=path``, columns kept in folder names; formats.

    a.parquet   logs/*.csv   logs/   old=logs/a.parquet   logs/policy_id=old/part-0.parquet

A real file wins over a pattern and over a label. Files of a glob or folder come sorted by name, and so do their rows.
Only headers and footers are read here (of CSV files: the values, to find their types).
"""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from mixope.errors import Advice, DataError, Setting, UnknownName
from mixope.logs.sources import Piece
from mixope.logs.sources.arrays import open_npz
from mixope.logs.sources.arrow import open_arrow
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
}
"""Format → reader. A new format is one function, and one line here and in ``FORMATS``."""


@dataclass(frozen=True)
class Found:
    """A file and the columns that its folders hold (``policy_id=old/``)."""

    path: str
    constants: tuple[tuple[str, str], ...] = ()


def split_label(text: str) -> tuple[str | None, str]:
    """``label=path`` in two, unless the whole names something that is there."""
    label, equals, path = text.partition("=")
    if not equals or not label or not path or _matches(text) or os.sep in label or "/" in label:
        return None, text
    return label, path


def find(path: str) -> list[Found]:
    """The files behind a path, glob or folder."""
    if "://" in path:
        raise DataError(
            "Remote addresses are not opened here", got=path, hint="open it as a pyarrow dataset, and pass the dataset"
        )
    path = os.path.expanduser(path)
    matches = _matches(path)
    if not matches:
        raise _nothing(path)
    root = path if os.path.isdir(path) else _fixed_part(path)
    files = [name for match in matches for name in (_inside(match) if os.path.isdir(match) else [match])]
    if not files:
        raise DataError("The folder holds no logs", where=path, expected=f"files ending in {endings()}")
    return [Found(name, () if name == path else _constants(name, root)) for name in files]


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
    opened = [(_reader_of(file.path, format), file) for file in found]
    pieces: list[Piece] = []
    for (name, constants), group in groupby(opened, key=lambda pair: (pair[0], pair[1].constants)):
        pieces += READERS[name]([file.path for _, file in group], _typed(constants, found))
    return tuple(pieces)


def _reader_of(path: str, format: str | None) -> str:
    name = format or format_of(path)
    if name is None:
        expected = f"a name ending in {endings()}"
        raise DataError("Unknown format", where=path, expected=expected, hint=Advice(Setting("format")))
    return name


def _typed(constants: tuple[tuple[str, str], ...], found: Sequence[Found]) -> dict[str, str | int]:
    """Folder values as integers where all values of that key are."""
    every = [pair for file in found for pair in file.constants]
    whole = {key: all(v.isdecimal() for k, v in every if k == key) for key, _ in constants}
    return {key: int(value) if whole[key] else value for key, value in constants}


def _matches(path: str) -> list[str]:
    if os.path.exists(path):
        return [path]
    return sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []


def _inside(folder: str) -> list[str]:
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(parent, n) for n in names if not n.startswith((".", "_")) and format_of(n)]
    return sorted(found)


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
