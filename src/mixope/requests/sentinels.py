"""A value among the states that stands for something else: −999 for what was not measured, 1e9 for "never".

It is a number like any other to every estimator. What gives it away: far from all others (beyond the lines of
:mod:`mixope.features.standard`), it repeats exactly, as measurements do not.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.errors import MixopeWarning
from mixope.features.encoding import present
from mixope.features.standard import units_of
from mixope.logs import Role
from mixope.requests.rows import Rows

FEWEST = 3
"""Rows of a sample that have the very same value."""


@dataclass(frozen=True)
class Sentinel:
    """A column, the value, its share of the rows, and the range of all other values; and how the column is called."""

    column: int
    value: float
    share: float
    low: float
    high: float
    name: str = ""

    @property
    def sentence(self) -> str:
        """Column, value and share."""
        return (
            f"{self.name} is {self.value:g} in {self.share:.2%} of the rows, far from all others ({self.low:g} to"
            f" {self.high:g}): does it stand for something else, such as a value that was not measured? It was taken"
            " for a number"
        )


def sentinels_of(rows: Rows) -> list[Sentinel]:
    """In columns of numbers, where one value makes up most of what lies beyond the lines."""
    states = rows.observation
    if states.dtype.kind != "f" or len(states) == 0:
        return []
    columns = list(states.reshape(len(states), -1).T)
    number: Role = "number"
    roles = rows.roles or (number,) * len(columns)
    found = []
    for k, column in enumerate(columns):
        if roles[k] == "number":
            values = column[present(columns, roles, k)]
            *_, low, high = units_of(values[:, None]) if len(values) else (np.zeros(1), np.zeros(1))
            beyond = values[(values < low) | (values > high)]
            each, count = np.unique(beyond, return_counts=True)
            if len(each) and count.max() >= max(FEWEST, 0.5 * len(beyond)):
                value = each[count.argmax()]
                others = values[values != value]
                share = float(count.max()) / len(column)
                found.append(Sentinel(k, float(value), share, float(others.min()), float(others.max())))
    return found


def named_sentinels(rows: Rows, names: Sequence[str]) -> tuple[Sentinel, ...]:
    """Those with names; ``names`` are those of the columns, or of the one that holds vectors."""
    width = rows.observation[:1].size
    named = len(names) == width
    return tuple(
        replace(one, name=names[one.column] if named else f"{names[0]}[{one.column}]") for one in sentinels_of(rows)
    )


def warn_of_sentinels(sentinels: Sequence[Sentinel]) -> None:
    """Warn of each, and say what to do."""
    for one in sentinels:
        advice = ". Leave the value out (null) where states have columns, or drop these rows"
        warnings.warn(MixopeWarning(one.sentence + advice), stacklevel=2)
