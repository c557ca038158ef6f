"""The coverage map: where states lie on a grid, how much of the target's actions was never logged in each cell.

States lie on a grid if they have two factors, or if every id holds exactly two whole numbers ("3,4", "r3c4"). Of long
factors, neighbouring values share a cell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, sum_by
from mixope.requests.transitions import Transitions

MOST_CELLS = 16
"""On a side."""
_TWO_NUMBERS = re.compile(r"[^\d-]*(-?\d+)\D+?(-?\d+)\D*")


@dataclass(frozen=True)
class Cell:
    """A cell of the map: its place, the rows that were logged there, and the target's actions that never were.

    ``uncovered`` is Σ n(s) Σ_{a unseen at s} π(a|s) / Σ n(s) over the states of the cell.
    """

    across: int
    down: int
    rows: int
    uncovered: float


@dataclass(frozen=True)
class Grid:
    """The map: the names of both factors, the values of every column and row of it, and the cells that were visited."""

    names: tuple[str, str]
    across: tuple[str, ...]
    down: tuple[str, ...]
    cells: tuple[Cell, ...]


def factor_names(transitions: Transitions) -> tuple[str, ...]:
    """What the user calls the factors of a state; none where states are ids."""
    return tuple(name.partition(".")[2] or name for name in transitions.factors)


def grid_of(transitions: Transitions, rows: FloatArray, unseen: FloatArray) -> Grid | None:
    """The map of states with so many rows and so much unseen probability each; None where there is no grid."""
    placed = _places(transitions)
    if placed is None:
        return None
    (first, second), names = placed
    (down, down_words), (across, across_words) = _cells(first), _cells(second)
    if len(down_words) < 2 or len(across_words) < 2:
        return None
    n = len(across_words)
    count = sum_by(down * n + across, rows, n * len(down_words))
    missing = sum_by(down * n + across, rows * unseen, n * len(down_words))
    visited = np.flatnonzero(count > 0).tolist()
    cells = (Cell(k % n, k // n, int(count[k]), float(missing[k] / count[k])) for k in visited)
    return Grid(names, across_words, down_words, tuple(cells))


def _places(transitions: Transitions) -> tuple[tuple[AnyArray, AnyArray], tuple[str, str]] | None:
    """Two values of every state and what they are called."""
    found = transitions.observations
    if len(names := factor_names(transitions)) == 2:
        return (found[:, 0], found[:, 1]), (names[0], names[1])
    if found.ndim != 1 or found.dtype.kind in "iuf":
        return None
    matches = [_TWO_NUMBERS.fullmatch(str(value)) for value in found.tolist()]
    pairs = [(match[1], match[2]) for match in matches if match is not None]
    if len(pairs) < len(matches) or max(len(number) for pair in pairs for number in pair) > 15:
        return None
    numbers = np.array(pairs, dtype=np.int64)
    return (numbers[:, 0], numbers[:, 1]), ("first number", "second number")


def _cells(values: AnyArray) -> tuple[IntArray, tuple[str, ...]]:
    """The place of every value along an axis, and the words of the places."""
    try:
        known, rank = np.unique(values, return_inverse=True)
    except TypeError:  # words and numbers side by side
        known, rank = np.unique(values.astype(str), return_inverse=True)
    n = min(len(known), MOST_CELLS)
    place = np.arange(len(known)) * n // len(known)
    ends = np.searchsorted(place, np.arange(n + 1))
    words = tuple(str(known[a]) if b - a == 1 else f"{known[a]}–{known[b - 1]}" for a, b in pairwise(ends.tolist()))
    return place[rank].astype(np.int64), words
