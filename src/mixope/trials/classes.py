"""States are classes: words as they are, numbers with many values cut at their quantiles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mixope.errors import DataError
from mixope.logs.sources import literal, quote
from mixope.trials.design import Design

MOST_CLASSES = 12
"""A number with more values than this is cut into a few classes."""
MOST_WORDS = 1_000
"""A column with more words than this is a name, not a state."""
MISSING = "missing"


def coded_state(connection: Any, raw: str, state: str, design: Design, name: str) -> tuple[str, str | None]:
    """The SQL of a state's class, and a note where a number was cut."""
    column = quote(f"raw {state}")
    kind, distinct = connection.execute(
        f"SELECT any_value(typeof({column})), count(DISTINCT {column}) FROM {raw}"
    ).fetchall()[0]
    words = f"CAST({column} AS VARCHAR)"
    number = kind in _NUMBERS or kind.startswith("DECIMAL")
    note = None
    if number and distinct > MOST_CLASSES:
        words, note = _cut(connection, raw, column, state, design)
    elif not number and distinct > MOST_WORDS:
        raise DataError(
            f"Column {state!r} has {distinct:,} values: a name, not a state in which units meet again",
            where=name,
            column=state,
            expected=f"at most {MOST_WORDS:,} classes, or a number",
            hint="group its values into a few classes",
        )
    return (f"coalesce({words}, {literal(MISSING)})" if design.missing else words), note


_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"}
_NUMBERS |= {f"U{kind}" for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")}


def _cut(connection: Any, raw: str, column: str, state: str, design: Design) -> tuple[str, str]:
    """Classes of about equal size; a value that many rows share may leave fewer of them."""
    shares = ", ".join(f"{k / design.bins:.6g}" for k in range(1, design.bins))
    query = f"SELECT unnest(quantile_disc(CAST({column} AS DOUBLE), [{shares}])) FROM {raw}"
    edges = sorted({edge for (edge,) in connection.execute(query).fetchall()})
    shown = [f"{edge:.6g}" for edge in edges]
    names = [f"≤ {shown[0]}", *(f"{low} – {high}" for low, high in pairwise(shown))]
    cases = " ".join(f"WHEN {column} <= {edge!r} THEN {literal(word)}" for edge, word in zip(edges, names, strict=True))
    words = f"CASE WHEN {column} IS NULL THEN NULL {cases} ELSE {literal(f'> {shown[-1]}')} END"
    return words, f"{state} is a number: it is cut into {len(edges) + 1} classes, at {', '.join(shown)}"
