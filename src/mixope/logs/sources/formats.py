"""Ways in which logs are kept: the record that a format is, and how one is found by name, by ending or by its marks.

Formats that Arrow and DuckDB read belong to the core (:mod:`mixope.logs.sources.files`). Those of other tools are a
wing, :mod:`mixope.formats`, and packages add their own (:mod:`mixope.base.plugins`). The core knows the marks of all of
our own (:mod:`mixope.logs.sources.marks`), so that what cannot be read is refused, and never read as something else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from mixope.base import plugins
from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.logs.schema import Role
from mixope.logs.sources import Piece
from mixope.logs.sources.found import Finds
from mixope.logs.sources.marks import format_of_object
from mixope.logs.sources.stores import Store

GROUP = "formats"


class Reader(Protocol):
    """From some files to their pieces, in order; ``constants`` are the columns that their folders hold."""

    def __call__(
        self, paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None, /
    ) -> Iterable[Piece]:
        """Read headers and footers; the rows are read by the pieces."""
        ...


class Finder(Protocol):
    """From a folder, a file or a name to what is behind it; ``part`` is a version, a snapshot or a table of it."""

    def __call__(self, place: str, store: Store | None = None, part: Any = None, /) -> Finds:
        """The files with rows that count."""
        ...


@dataclass(frozen=True)
class Dialect:
    """What the columns of a tool mean, the columns that all its rows have in common, and what is to be said of it."""

    columns: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, str | int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BufferTable:
    """Steps that an object held, as a table, and what it says of them: notes, the roles of columns, the logger."""

    name: str
    table: Any
    notes: tuple[str, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    label: str | None = None


@dataclass(frozen=True)
class Format:
    """One way in which logs are kept. All but the name is optional: a format is files, folders, columns or objects.

    ``open`` reads files, which are known by their ``endings``. ``find`` looks into a folder that is more than its
    files, which is one where ``marks`` says so; ``title`` is what messages call it ("a Delta table"). ``dialect`` says
    what the columns of a tool mean, and ``hold`` takes the steps out of its objects.
    """

    name: str
    endings: tuple[str, ...] = ()
    open: Reader | None = None
    marks: Callable[[str], bool] | None = None
    find: Finder | None = None
    title: str = ""
    dialect: Callable[[str, Sequence[Piece], Container[str]], Dialect] | None = None
    hold: Callable[[Any], BufferTable] | None = None


def named(name: str) -> Format:
    """A format of a wing, or of another package."""
    found = plugins.load(GROUP, name)
    if not isinstance(found, Format):
        package = plugins.package_of(plugins.added(GROUP)[name])
        raise UsageError(f"{name!r} of {package} is no Format, but {type(found).__name__}. Update that package.")
    return found


@cache
def others() -> tuple[Format, ...]:
    """The formats of other packages; one that cannot be loaded is left out, with a warning."""
    found = []
    for name in plugins.added(GROUP):
        try:
            found.append(named(name))
        except UsageError as error:
            warnings.warn(str(error), MixopeWarning, stacklevel=2)
    return tuple(found)


def reader(name: str) -> Reader:
    """How the files of a format are read."""
    opened = named(name).open
    if opened is None:
        raise UsageError(f"{name!r} is no format of files. Give the folder, the table or the object as a whole.")
    return opened


def find(name: str, place: str, store: Store | None = None, part: Any = None) -> Finds:
    """What is behind a place that is kept in a format."""
    finder = named(name).find
    assert finder is not None
    return finder(place, store, part)


def steps_held_by(given: Any) -> BufferTable | None:
    """The steps in an object of another library; None for anything else. That library is not imported here."""
    name = format_of_object(given)
    hold = None if name is None else named(name).hold
    if hold is None:
        return None
    try:
        return hold(given)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"The object cannot be read: {error}",
            where=f"{type(given).__module__.partition('.')[0]} {type(given).__name__}",
            hint="pass its steps as a dict of arrays, or as a list of episodes",
        ) from error


def empty_buffer(name: str) -> DataError:
    """The error for a buffer that nobody has filled."""
    return DataError("The buffer holds no steps", where=name, expected="at least one step")
