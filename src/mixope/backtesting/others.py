"""The counts of all loggers but one, for every logger in turn.

An estimator that looks at whose rows are whose is given the others' groups (logger, s, a, s′). One that does not is
given cells (s, a, s′), each with its sums over all others. Of many loggers there are many times as many groups as
cells, and every logger is predicted from those of all the others.

Sums over the others are no differences between sums over all, which would lose digits, and a lowest reward cannot be
taken out of a minimum. What the loggers before one have in a cell is joined with what the loggers after it have there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, distinct, sum_by
from mixope.logs import UNLABELLED
from mixope.requests.transitions import Transitions, restrict, transition_cells

_SUMS = ("rows", "reward", "squares", "starts", "inverse", "inverse_reward", "inverse_squared")


class Others(ABC):
    """Counts of which any logger's can be left out.

    ``place`` of every group is its row in a table of scores, which has ``n_places`` rows.
    """

    place: IntArray
    n_places: int

    @abstractmethod
    def without(self, logger: int) -> tuple[Transitions, IntArray]:
        """The counts of the others, and the place of each."""


def others_of(transitions: Transitions, merged: bool) -> Others:
    """Merged over loggers, or with each logger's groups apart."""
    return merge(transitions) if merged else Apart(transitions)


def without(transitions: Transitions, logger: int) -> Transitions:
    """The rows of the other loggers; states keep their numbers, the loggers close ranks."""
    rest = restrict(transitions, np.flatnonzero(transitions.logger != logger))
    names = tuple(label for j, label in enumerate(transitions.loggers) if j != logger)
    return replace(rest, loggers=names, logger=rest.logger - (rest.logger > logger))


@dataclass(frozen=True)
class Apart(Others):
    """Groups as they were counted."""

    transitions: Transitions

    @property
    def place(self) -> IntArray:  # type: ignore[override]
        """Its own."""
        return np.arange(self.transitions.n_groups)

    @property
    def n_places(self) -> int:  # type: ignore[override]
        """One per group."""
        return self.transitions.n_groups

    def without(self, logger: int) -> tuple[Transitions, IntArray]:
        """The groups of the others."""
        return without(self.transitions, logger), np.flatnonzero(self.transitions.logger != logger)


@dataclass(frozen=True)
class Merged(Others):
    """Cells (s, a, s′), whoever logged them.

    ``everybody`` has the sums of all loggers. An *entry* is a cell of one logger: ``cell`` says which, ``elsewhere``
    what all others have there, and those of logger j are ``first[j]`` … ``first[j + 1]`` − 1.
    """

    everybody: Transitions
    place: IntArray
    cell: IntArray
    first: IntArray
    elsewhere: Sums

    @property
    def n_places(self) -> int:  # type: ignore[override]
        """One per cell."""
        return self.everybody.n_groups

    def without(self, logger: int) -> tuple[Transitions, IntArray]:
        """Sums over all others; cells that nobody else logged are left out."""
        mine = slice(self.first[logger], self.first[logger + 1])
        found = {name: np.array(getattr(self.everybody, name)) for name in self.elsewhere}
        _put(found, self.cell[mine], {name: values[mine] for name, values in self.elsewhere.items()})
        kept = np.flatnonzero(found["rows"] > 0)
        return restrict(_with(self.everybody, found), kept), kept


def merge(transitions: Transitions) -> Merged:
    """Merge over loggers, and note for every logger what the others have in its cells."""
    place = transition_cells(transitions)
    n_cells = int(place.max()) + 1
    codes, number = distinct(transitions.logger * n_cells + place, len(transitions.loggers) * n_cells)
    logger, cell = codes // n_cells, codes % n_cells
    first = np.searchsorted(logger, np.arange(len(transitions.loggers) + 1))
    entries = _merged(_sums(transitions), number, len(codes))
    spans = [slice(low, high) for low, high in pairwise(first.tolist())]
    elsewhere = _join(_earlier(entries, cell, spans, n_cells), _earlier(entries, cell, spans[::-1], n_cells))
    member = np.unique(place, return_index=True)[1]
    bare = replace(restrict(transitions, member), loggers=(UNLABELLED,), logger=np.zeros(n_cells, dtype=np.int64))
    return Merged(_with(bare, _merged(entries, cell, n_cells)), place, cell, first, elsewhere)


Sums = dict[str, FloatArray]
"""What is known of some rows, by the names of :class:`~mixope.requests.transitions.Transitions`."""


def _sums(transitions: Transitions) -> Sums:
    names = (*_SUMS, "lowest", "highest")
    found = {name: value for name in names if (value := getattr(transitions, name)) is not None}
    return {**found, "scatter": np.zeros(transitions.n_groups) if transitions.scatter is None else transitions.scatter}


def _with(transitions: Transitions, found: Sums) -> Transitions:
    arrays: dict[str, FloatArray] = found
    return replace(transitions, **arrays)  # type: ignore[arg-type]


def _merged(sums: Sums, number: IntArray, n: int) -> Sums:
    """All members of every number together."""
    found = {name: sum_by(number, values, n) for name, values in sums.items() if name in _SUMS}
    found["lowest"], found["highest"] = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(found["lowest"], number, sums["lowest"])
    np.maximum.at(found["highest"], number, sums["highest"])
    off = sums["reward"] / sums["rows"] - (found["reward"] / found["rows"])[number]
    found["scatter"] = sum_by(number, sums["scatter"] + sums["rows"] * off**2, n)
    return found


def _join(left: Sums, right: Sums) -> Sums:
    """Two lots of rows together, cell by cell; either may be empty."""
    found = {name: left[name] + right[name] for name in left if name in _SUMS}
    found["lowest"] = np.minimum(left["lowest"], right["lowest"])
    found["highest"] = np.maximum(left["highest"], right["highest"])
    off = _mean(left) - _mean(right)
    both = left["rows"] * right["rows"] / np.maximum(found["rows"], 1.0)
    found["scatter"] = left["scatter"] + right["scatter"] + both * off**2
    return found


def _mean(sums: Sums) -> FloatArray:
    return np.asarray(sums["reward"] / np.maximum(sums["rows"], 1.0))


def _earlier(entries: Sums, cell: IntArray, spans: list[slice], n_cells: int) -> Sums:
    """For every entry, what the loggers before it have in its cell, in the order of ``spans``."""
    so_far = {name: np.zeros(n_cells) for name in entries}
    so_far["lowest"], so_far["highest"] = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    found = {name: np.empty_like(values) for name, values in entries.items()}
    for span in spans:
        before = {name: values[cell[span]] for name, values in so_far.items()}
        for name, values in before.items():
            found[name][span] = values
        _put(so_far, cell[span], _join(before, {name: values[span] for name, values in entries.items()}))
    return found


def _put(sums: Sums, cells: IntArray, values: Sums) -> None:
    for name, value in values.items():
        sums[name][cells] = value
