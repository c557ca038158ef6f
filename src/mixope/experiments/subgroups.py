"""Subgroups: the same experiment on the units that entered with one value of a column."""

from __future__ import annotations

from collections.abc import Iterator

from mixope.base.errors import UnknownName
from mixope.experiments.panel import Panel
from mixope.logs.sources import quote

LEAST_UNITS = 40
"""A group of fewer units is left out, and a note says so."""
SHOWN = 12
"""Of more groups, the largest are computed."""


def groups_of(panel: Panel, column: str, notes: list[str]) -> Iterator[tuple[str, int, Panel]]:
    """Each value with its units and their part of the panel, the most frequent first."""
    if column not in panel.base:
        raise UnknownName("column of the state to group by", column, panel.base)
    state = quote(f"state {column}")
    with panel.open() as (connection, rows):
        counted = connection.execute(
            f"SELECT {state}, count(*) FROM {rows} WHERE step = 0 GROUP BY 1 ORDER BY 2 DESC, 1"
        ).fetchall()
    usable = [(code, units) for code, units in counted if units >= LEAST_UNITS][:SHOWN]
    left = len(counted) - len(usable)
    if left:
        notes.append(f"of {column}, {left} of {len(counted)} groups are left out: they have few units")
    if len(usable) > 1:
        said = "each interval holds by itself, and of many some miss"
        notes.append(f"there are {len(usable)} groups of {column}: {said}")
    for code, units in usable:
        yield panel.classes[column][code], units, panel.part(column, code)
