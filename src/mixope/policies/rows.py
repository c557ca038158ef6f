"""The first offending rows: enough of them to find the fault, few enough to read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mixope.arrays import AnyArray, BoolArray

SHOWN = 5


def first_rows(offending: BoolArray) -> tuple[int, ...]:
    """Positions of the first few True values."""
    return tuple(int(row) for row in np.flatnonzero(offending)[:SHOWN])


def listed(values: Iterable[object] | AnyArray) -> str:
    """The first few values, comma separated, with an ellipsis where more follow."""
    values = list(values)
    more = ", …" if len(values) > SHOWN else ""
    return ", ".join(plain(value) for value in values[:SHOWN]) + more


def plain(value: object) -> str:
    """A value as a user would type it: ``3``, ``'left'``, ``(0, 'door')``, without NumPy's type names."""
    if isinstance(value, np.ndarray | tuple | list):
        return "(" + ", ".join(plain(part) for part in value) + ")"
    return repr(value.item() if isinstance(value, np.generic) else value)
