"""States are classes: words as they are, numbers with many values cut at their quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mixope.base.errors import DataError
from mixope.experiments.design import ExperimentDesign
from mixope.logs.sources import literal, quote, unique

MOST_CLASSES = 12
"""A number with more values than this is cut into a few classes."""
MOST_WORDS = 1_000
"""A column with more words than this is a name, not a state."""
MISSING = "missing"


@dataclass(frozen=True)
class Coded:
    """A column of the state as a small number: the SQL of it, what each number means, and a note where one is due.

    ``of_period``: it follows from the number of the period alone.
    """

    sql: str
    classes: tuple[str, ...]
    note: str | None = None
    of_period: bool = False


def coded_state(connection: Any, raw: str, state: str, design: ExperimentDesign, name: str) -> Coded:
    """Words in their order, numbers as they are or cut; a missing value is the last class where it is kept."""
    column = quote(f"raw {state}")
    kind, distinct = connection.execute(
        f"SELECT any_value(typeof({column})), count(DISTINCT {column}) FROM {raw}"
    ).fetchall()[0]
    number = kind in _NUMBERS or kind.startswith("DECIMAL")
    if number and distinct > MOST_CLASSES:
        found = _cut(connection, raw, column, state, design)
    elif distinct > MOST_WORDS:
        raise DataError(
            f"Column {state!r} has {distinct:,} values: a name, not a state in which units meet again",
            where=name,
            column=state,
            expected=f"at most {MOST_WORDS:,} classes, or a number",
            hint="group its values into a few classes",
        )
    else:
        found = _listed(connection, raw, column, number)
    if design.missing is None:
        return found
    last = f"CAST({len(found.classes)} AS SMALLINT)"
    return Coded(f"CASE WHEN {column} IS NULL THEN {last} ELSE {found.sql} END", (*found.classes, MISSING), found.note)


def season_state(season: int) -> Coded:
    """Where in its season a period is."""
    place = f"CAST(((day % {season}) + {season}) % {season} AS SMALLINT)"
    return Coded(place, tuple(map(str, range(season))), of_period=True)


_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"}
_NUMBERS |= {f"U{kind}" for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")}


def _listed(connection: Any, raw: str, column: str, number: bool) -> Coded:
    """The values that there are."""
    order = column if number else f"CAST({column} AS VARCHAR)"
    query = f"SELECT DISTINCT CAST({column} AS VARCHAR), {order} FROM {raw} WHERE {column} IS NOT NULL ORDER BY 2, 1"
    words = tuple(dict.fromkeys(word for word, _ in connection.execute(query).fetchall()))
    type_ = unique("classes")
    connection.execute(f"CREATE TYPE {type_} AS ENUM ({', '.join(map(literal, words)) or literal(MISSING)})")
    return Coded(f"CAST(enum_code(CAST(CAST({column} AS VARCHAR) AS {type_})) AS SMALLINT)", words)


def _cut(connection: Any, raw: str, column: str, state: str, design: ExperimentDesign) -> Coded:
    """Classes of about equal size; a value that many rows share may leave fewer of them."""
    shares = ", ".join(f"{k / design.bins:.6g}" for k in range(1, design.bins))
    query = f"SELECT unnest(quantile_disc(CAST({column} AS DOUBLE), [{shares}])) FROM {raw}"
    edges = sorted({edge for (edge,) in connection.execute(query).fetchall()})
    shown = [f"{edge:.6g}" for edge in edges]
    words = (f"≤ {shown[0]}", *(f"{low} – {high}" for low, high in pairwise(shown)), f"> {shown[-1]}")
    cases = " ".join(f"WHEN {column} <= {edge!r} THEN {place}" for place, edge in enumerate(edges))
    sql = f"CAST(CASE WHEN {column} IS NULL THEN NULL {cases} ELSE {len(edges)} END AS SMALLINT)"
    note = f"{state} is a number: it is cut into {len(words)} classes, at {', '.join(shown)}"
    return Coded(sql, words, note)
