"""States of several columns with their names: ``s["mood"]`` beside ``s[1]``, for a batch and for one state.

Rows are still an array and one state is still a tuple or a row, so that whatever goes by position goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixope.base.arrays import AnyArray
from mixope.base.errors import UnknownName


class NamedRows(np.ndarray[Any, Any]):
    """An array ``(n, k)``, or a row ``(k,)`` of it, whose columns have names."""

    names: tuple[str, ...] = ()

    def __array_finalize__(self, source: Any) -> None:
        """What is as wide as its source has the same columns; a choice of columns is a plain array, see below."""
        names = getattr(source, "names", ())
        self.names = names if self.shape[-1:] == (len(names),) else ()

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and self.names:
            column = np.asarray(self).T[_place(item, self.names)]
            # Factors of several types are objects; each by itself has a type.
            return np.array(column.tolist()) if self.dtype.kind == "O" and self.ndim == 2 else column
        return np.asarray(self)[item] if isinstance(item, tuple) else super().__getitem__(item)


class NamedState(tuple[Any, ...]):
    """One state of several factors: a tuple, equal to one without names, and a key of the same dicts."""

    names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], names: tuple[str, ...] = ()) -> NamedState:
        """The values in the order of the logs, and what they are called."""
        made = super().__new__(cls, values)
        made.names = names
        return made

    def __getitem__(self, item: Any) -> Any:
        return super().__getitem__(_place(item, self.names) if isinstance(item, str) else item)


@dataclass(frozen=True)
class Naming:
    """Rows of factors or numbers as an array that knows its columns."""

    names: tuple[str, ...]

    def __call__(self, observations: AnyArray) -> AnyArray:
        """The same rows."""
        rows = np.asarray(observations).view(NamedRows)
        rows.names = self.names
        return rows


def _place(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise UnknownName("column of the state", name, names)
    return names.index(name)
