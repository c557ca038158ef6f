"""What lies behind a path: files, or folders that are read as a whole, and what these say of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.schema import Role
from mixope.logs.sources.stores import Store


@dataclass(frozen=True)
class Found:
    """A file and the columns that its folders hold (``policy_id=old/``).

    ``typed``: the values of these columns have their types, which a table's own record gave. ``format``: where the
    place of the file says it. ``parts``: of a folder that is read as a whole, the files in it. ``store``: where it is,
    None for this machine; ``state``: its size and time of change, where it was listed with them.
    """

    path: str
    constants: tuple[tuple[str, str | int], ...] = ()
    typed: bool = False
    format: str | None = None
    parts: tuple[str, ...] = ()
    store: Store | None = None
    state: tuple[Any, ...] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """All that is read."""
        return self.parts or (self.path,)


@dataclass(frozen=True)
class Finds:
    """The logs behind a path, and what is to be said of files that were left out.

    ``label`` is the logger that the record of a data set names, ``roles`` what it says of columns of the observation.
    ``alone``: its episodes are counted from 0, so that it is a source of its own. ``record`` goes into the provenance
    of every file: the version of a table, say. ``home`` is the engine whose frame they were.
    """

    files: tuple[Found, ...]
    notes: tuple[str, ...] = ()
    label: str | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    alone: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)
    home: str | None = None


def several(where: str, splits: Any, hint: str) -> DataError:
    """The error for several data sets where one is needed."""
    named = splits if isinstance(splits, list | tuple) else []
    return DataError(
        "There are several data sets, and nothing says which rows are the log",
        where=where,
        expected="one of the splits",
        got=", ".join(map(str, named)) or "none",
        hint=hint,
    )
