"""Folders that are more than the files in them: a record in the folder says which rows are live, or how they are kept.

    Delta         live files are read
    Minari        read as steps: an episode has one observation more than it has steps
    Iceberg       the last snapshot is read, by pyiceberg
    Hudi          refused
    LeRobot       the rows below data/ are read, as many as the record says
    Hugging Face  the files that the record names are read

Read file by file, such a folder gives deleted rows, old versions of rows, or rows that are no steps. So it is known
from its marks (:mod:`mixope.logs.sources.marks`), wherever on the way from the root of the file system to a file these
lie, and in every sub-folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from mixope.base.errors import DataError
from mixope.logs.sources import formats
from mixope.logs.sources.found import Finds
from mixope.logs.sources.marks import (
    is_delta,
    is_hudi,
    is_hugging,
    is_iceberg,
    is_lerobot,
    is_minari,
    refuse_hudi,
    whole_minari,
)


@dataclass(frozen=True)
class Layout:
    """One kind of folder: its name, whether a folder is one, and what is found in it.

    ``whole`` gives the folder that a path names as a whole, None for other paths. ``refused``: nothing in it is read.
    """

    name: str
    marks: Callable[[str], bool]
    find: Callable[[str], Finds]
    whole: Callable[[str], str | None]
    refused: bool = False


def _itself(marks: Callable[[str], bool]) -> Callable[[str], str | None]:
    return lambda path: path if marks(path) else None


LAYOUTS = (
    Layout("a Delta table", is_delta, partial(formats.find, "delta"), _itself(is_delta)),
    Layout("an Iceberg table", is_iceberg, partial(formats.find, "iceberg"), _itself(is_iceberg)),
    Layout("a Hudi table", is_hudi, refuse_hudi, _itself(is_hudi), refused=True),
    Layout("a Minari data set", is_minari, partial(formats.find, "minari"), whole_minari),
    Layout("a LeRobot data set", is_lerobot, partial(formats.find, "lerobot"), _itself(is_lerobot)),
    Layout("a data set of Hugging Face", is_hugging, partial(formats.find, "huggingface"), _itself(is_hugging)),
)


def layouts() -> Iterable[Layout]:
    """Ours, then those of other packages."""
    yield from LAYOUTS
    for each in formats.others():
        if each.marks is not None and each.find is not None:
            yield Layout(each.title or f"a folder of {each.name}", each.marks, each.find, _itself(each.marks))


def find_whole(path: str) -> Finds | None:
    """What is in a folder that is more than its files; None for other paths."""
    for layout in layouts():
        folder = layout.whole(path)
        if folder is not None:
            return layout.find(folder)
    return None


def refuse_parts(paths: Iterable[str]) -> None:
    """An error if a path lies in such a folder: alone it does not say which of its rows are live."""
    seen: set[str] = set()
    for path in paths:
        folder = os.path.realpath(path)
        while folder not in seen:
            seen.add(folder)
            refuse_marked(folder, path)
            folder = os.path.dirname(folder)


def refuse_marked(folder: str, path: str | None = None) -> None:
    """An error if a folder is of this kind: because ``path`` lies in it, or because it lies in one that is read."""
    layout = next((layout for layout in layouts() if layout.marks(folder)), None)
    if layout is None:
        return
    if layout.refused:
        layout.find(folder)
    inside = path is not None and os.path.realpath(path) != folder
    raise DataError(
        f"The path is a part of {layout.name}" if inside else f"The folder is {layout.name} among other logs",
        where=path or folder,
        expected="the table or data set as a whole: its record says which rows count",
        hint=f"give {folder!r} as a source of its own",
    )
