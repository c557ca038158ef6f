"""The same rows twice: a file that is named twice, reached by two paths, or copied under another name.

Rows that are counted twice narrow every interval, and no sum over rows can see it. Files are told apart by where they
lie, then by size, by their ends, and last by all their bytes, so that nothing is read of files that differ in size.

A file that holds one short episode may be like another by chance (a game with few outcomes, one file per game): it is
left to the check of repeated episodes, which knows how likely that is.
"""

from __future__ import annotations

import filecmp
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.sources import Piece, Source, reading
from mixope.logs.sources.arrow import ArrowDataset, ArrowTable
from mixope.logs.sources.stamps import ends_of

SHORT = 1000
"""Rows of an episode that may be like another by chance."""
_FIRST = 100
"""Rows of a table that are looked at before all of them are compared."""
_HINT = "give each file once: a pattern or a folder may hold a file that is named besides, or a copy of it"


@dataclass(frozen=True)
class Input:
    """A file, some row groups of one, or a table in memory: what it is called, and where it lies."""

    name: str
    place: Hashable
    source: Source
    piece: Piece
    path: str | None = None
    groups: frozenset[int] | None = None

    def shares_rows_with(self, other: Input) -> bool:
        """Whether two views of one file have row groups in common."""
        return self.groups is None or other.groups is None or bool(self.groups & other.groups)


def refuse_named_twice(paths: Sequence[str]) -> None:
    """Before files are opened: readers of several at once tell them apart by their names."""
    path, times = Counter(paths).most_common(1)[0]
    if times > 1:
        raise _twice("file", path, path)


def refuse_copies(sources: Sequence[Source], one_short_episode: Callable[[Source], bool]) -> None:
    """An error that names both, where an input is given twice; ``one_short_episode`` looks into a source."""
    inputs = [found for source in sources for found in _inputs(source)]
    for one, other in _pairs(_alike(inputs, lambda i: i.place)):
        if one.shares_rows_with(other):
            raise _twice("file" if one.path or one.groups else "input", one.name, other.name)
    for one, other in (*_same_files(inputs), *_same_tables(inputs)):
        if not one_short_episode(_alone(other)):
            raise _twice("content", one.name, other.name)


def _twice(what: str, one: str, other: str) -> DataError:
    problems = {
        "file": "The same file is given twice",
        "input": "The same input is given twice",
        "content": "Two inputs have the same content",
    }
    return DataError(
        problems[what],
        where=f"{one}, twice" if one == other else f"{one} and {other}",
        expected="every row once: counted twice, it would make intervals too narrow",
        hint=_HINT,
    )


def _inputs(source: Source) -> Iterator[Input]:
    for piece in source.pieces:
        if isinstance(piece, ArrowTable) and (piece.digest is None or not os.path.exists(piece.files[0])):
            yield Input(source.name, id(piece.content), source, piece)
        elif isinstance(piece, ArrowDataset):
            for name, store, groups in piece.parts():
                path = name if store is None and groups is None else None
                yield Input(name, (store, name) if store else _place(name), source, piece, path, groups)
        else:
            store = getattr(piece, "store", None)
            for name in piece.files:
                path = name if store is None else store.path(name) if store.on_disk else None
                yield Input(name, name if path is None else _place(path), source, piece, path)


def _place(path: str) -> Hashable:
    """The same for all paths to a file."""
    found = os.stat(path)
    return (found.st_dev, found.st_ino) if found.st_ino else os.path.realpath(path)


def _alike(inputs: Iterable[Input], key: Callable[[Input], Hashable]) -> Iterator[list[Input]]:
    """Inputs with equal keys, where there are several."""
    found: dict[Hashable, list[Input]] = {}
    for each in inputs:
        found.setdefault(key(each), []).append(each)
    return (group for group in found.values() if len(group) > 1)


def _pairs(groups: Iterable[Sequence[Input]]) -> Iterator[tuple[Input, Input]]:
    return (pair for group in groups for pair in combinations(group, 2))


def _same_files(inputs: Sequence[Input]) -> Iterator[tuple[Input, Input]]:
    """Local files of equal size, equal ends and equal bytes."""
    files = [i for i in inputs if i.path is not None]
    for group in _alike(files, lambda i: os.path.getsize(i.path or "")):
        for likely in _alike(group, lambda i: ends_of(i.path or "", os.path.getsize(i.path or ""))):
            first = likely[0]
            for other in likely[1:]:
                with reading(other.name):
                    if filecmp.cmp(first.path or "", other.path or "", shallow=False):
                        yield first, other


def _same_tables(inputs: Sequence[Input]) -> Iterator[tuple[Input, Input]]:
    """Tables in memory with equal columns and equal rows."""
    tables = [i for i in inputs if isinstance(i.piece, ArrowTable) and i.piece.digest is None]
    for group in _alike(tables, lambda i: (_content(i).num_rows, str(_content(i).schema.remove_metadata()))):
        for likely in _alike(group, lambda i: str(_content(i).slice(0, _FIRST).to_pydict())):
            first = likely[0]
            yield from ((first, other) for other in likely[1:] if _content(first).equals(_content(other)))


def _content(table: Input) -> Any:
    assert isinstance(table.piece, ArrowTable)
    return table.piece.content


def _alone(given: Input) -> Source:
    """The input as a source of its own."""
    piece = given.piece
    if len(piece.files) > 1:
        rows = dict(zip(piece.files, piece.counts(), strict=False)).get(given.name) or 1
        parts = piece.split(rows)  # so many and no more: small neighbours stay out
        piece = next(part for name, part in parts if name == given.name or name.startswith(f"{given.name}["))
    return replace(given.source, pieces=(piece,))
