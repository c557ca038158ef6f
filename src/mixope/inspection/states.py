"""The columns of a state as an inspection shows them: role, values or range, and how often they are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mixope.base.arrays import sum_by
from mixope.inspection.records import Component, StateColumn
from mixope.logs import CODED, MISSING_NUMBER, MISSING_WORD, Schema
from mixope.requests.grouping import Aggregate, Grouped, Grouping, GroupSums
from mixope.requests.request import Request
from mixope.requests.transitions import Transitions

SHOWN = 3
"""Values of a category that are named, the most frequent ones."""
Rows = Mapping[int | str | float | None, int]
"""How many rows each value has."""


def categories(schema: Schema) -> tuple[str, ...]:
    """The categories of mixed states."""
    if schema.observation_kind != "mixed":
        return ()
    return tuple(name for name, role in zip(schema.observation, schema.roles, strict=True) if role in CODED)


def requests_of(schema: Schema) -> list[Request]:
    """How many rows each value of each category has."""
    return [Grouped(Grouping((name,), (Aggregate("rows", "count"),))) for name in categories(schema)]


def columns_of_rows(schema: Schema, groups: Sequence[GroupSums], numbers: Sequence[Component]) -> list[StateColumn]:
    """Of mixed states, from these counts and from the measures of the numbers."""
    counted = {name: _counts(name, found) for name, found in zip(categories(schema), groups, strict=True)}
    measured = {component.name: component for component in numbers}
    found = []
    for name, role in zip(schema.observation, schema.roles, strict=True):
        if name in counted:
            found.append(_category(name, role, counted[name]))
        elif name in measured:
            one = measured[name]
            found.append(StateColumn(name, role, None, (), one.lowest, one.highest, one.not_finite))
    return found


def columns_of_counts(schema: Schema, transitions: Transitions) -> list[StateColumn]:
    """Of factors, from the counts of the transitions."""
    if schema.observation_kind != "factors":
        return []
    rows = sum_by(transitions.state, transitions.rows, transitions.n_states)
    found = []
    for name, role, column in zip(
        schema.observation, schema.roles, np.asarray(transitions.observations).T, strict=True
    ):
        values = column.tolist()
        counts: dict[int | str | float | None, int] = {}
        for value, n in zip(values, rows.tolist(), strict=True):
            counts[value] = counts.get(value, 0) + int(n)
        found.append(_category(name, role, counts))
    return found


def _counts(name: str, groups: GroupSums) -> Rows:
    rows = groups.column("rows").astype(np.int64).tolist() if groups.n_groups else []
    return dict(zip(groups.values(name).tolist() if rows else [], rows, strict=True))


def _category(name: str, role: str, counts: Rows) -> StateColumn:
    gone = {None, MISSING_WORD, MISSING_NUMBER, float(MISSING_NUMBER)}
    known = {value: n for value, n in counts.items() if value not in gone}
    first = sorted(known.items(), key=lambda item: (-item[1], str(item[0])))[:SHOWN]
    missing = sum(n for value, n in counts.items() if value in gone)
    return StateColumn(name, role, len(known), tuple((str(value), n) for value, n in first), None, None, missing)
