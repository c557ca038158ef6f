"""The table of an experiment as it is given: its columns, and what must be there before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.experiments.design import ExperimentDesign
from mixope.logs.sources import Piece, Source, field_in, literal, quote

MOST_GUESSED = 4
"""Columns that are taken for the state where nobody says."""
SHOWN = 5
FIRST = 3
FILL = "fill them in, or leave these rows out"


def with_states(sources: Sequence[Source], design: ExperimentDesign) -> tuple[ExperimentDesign, list[Any]]:
    """The columns of the state: those that were said, or the others of the table."""
    if design.states:
        return design, []
    taken = set(design.columns)
    others = [name for source in sources for name in source.names if name not in taken]
    usable = [name for name in dict.fromkeys(others) if _kind(sources, name) in {"int", "string", "bool", "float"}]
    if not usable:
        raise UsageError(
            Advice(
                "no column is left for the state of a unit: what it is like before a period, such as its level of"
                " activity in the week before. Add one to the table, and name it with ",
                Setting("state", "level"),
            )
        )
    chosen = tuple(usable[:MOST_GUESSED])
    left = f"; {len(usable) - len(chosen)} more are left out" if len(usable) > len(chosen) else ""
    said = f"nobody said what the state is: {', '.join(chosen)} {'is' if len(chosen) == 1 else 'are'} taken{left}. "
    return replace(design, states=chosen), [Advice(said, "Name the columns with ", Setting("state", chosen[0]))]


def _kind(sources: Sequence[Source], name: str) -> str:
    fields = [field for source in sources for _, field in source.fields_in(name)]
    return fields[0].kind if fields else "null"


def refuse_missing(sources: Sequence[Source], wanted: Sequence[str]) -> None:
    """A column that some file does not have."""
    for source in sources:
        for piece in source.pieces:
            absent = [name for name in wanted if field_in(piece, name) is None]
            if absent:
                raise DataError(
                    f"The table has no column {absent[0]!r}",
                    where=piece.files[0],
                    expected=f"columns {', '.join(wanted)}",
                    got=f"columns {', '.join((*piece.fields, *piece.constants))}",
                )


def raw_view(connection: Any, sources: Sequence[Source], design: ExperimentDesign) -> str:
    """The named columns of all files as one view: unit, day, assigned, metrics and states by their own names."""
    parts = [_selected(connection, piece, design) for source in sources for piece in source.pieces]
    connection.execute(f"CREATE TEMP VIEW raw AS {' UNION ALL BY NAME '.join(parts)}")
    return "raw"


def _selected(connection: Any, piece: Piece, design: ExperimentDesign) -> str:
    shown = {name: _value(piece, name) for name in design.columns}
    columns = {
        "unit": shown[design.unit],
        "day": _day(piece, design, shown[design.time]),
        "assigned": f"trim(CAST({shown[design.arm]} AS VARCHAR))",
        **{f"metric {name}": f"TRY_CAST({shown[name]} AS DOUBLE)" for name in design.metrics},
        **{f"raw {name}": shown[name] for name in design.states},
        **{f"given {name}": f"CAST({value} AS VARCHAR)" for name, value in shown.items()},
    }
    if design.exposure is not None:
        columns["exposed"] = f"TRY_CAST({shown[design.exposure]} AS BOOLEAN)"
    listed = ", ".join(f"{expression} AS {quote(name)}" for name, expression in columns.items())
    return f"SELECT {listed} FROM {piece.relation(connection)}"


def _value(piece: Piece, name: str) -> str:
    return quote(name) if name in piece.fields else literal(piece.constants[name])


def _day(piece: Piece, design: ExperimentDesign, value: str) -> str:
    """The number of the period of a row: whole numbers as they are, dates and times counted from 1970."""
    found = field_in(piece, design.time)
    if found is not None and found.kind in {"int", "float", "bool"}:
        return f"TRY_CAST({value} AS BIGINT)"
    if design.period == "visit":
        return f"TRY_CAST(CAST({value} AS VARCHAR) AS BIGINT)"
    start = "TIMESTAMP '1970-01-01'" if design.period != "week" else "TIMESTAMP '1970-01-05'"
    moment = f"date_diff('{design.period}', {start}, TRY_CAST({value} AS TIMESTAMP))"
    return f"coalesce(TRY_CAST({value} AS BIGINT), {moment})" if found and found.kind == "string" else moment


def refuse_gaps(connection: Any, raw: str, design: ExperimentDesign, name: str) -> None:
    """A row without a unit, a period, an arm or a metric."""
    wanted = {"unit": design.unit, "day": design.time, "assigned": design.arm}
    wanted |= {f"metric {metric}": metric for metric in design.metrics}
    wanted |= {} if design.exposure is None else {"exposed": design.exposure}
    if design.missing is None:
        wanted |= {f"raw {state}": state for state in design.states}
    bad = [f"{quote(key)} IS NULL{_infinite(key)}" for key in wanted]
    counted = ", ".join(f"count(*) FILTER ({test})" for test in bad)
    rows, *found = connection.execute(f"SELECT count(*), {counted} FROM {raw}").fetchall()[0]
    if rows == 0:
        raise DataError("The table has no rows", where=name, expected="one row per unit and period")
    for (key, column), count, test in zip(wanted.items(), found, bad, strict=True):
        if count:
            keep = Advice(
                "fill them in, leave these rows out, or take them as a class of their own with ",
                Setting("missing", "keep"),
            )
            raise DataError(
                f"{count:,} of {rows:,} rows have no usable value in column {column!r}",
                where=name,
                column=column,
                expected=_expected(key, design),
                got=_offending(connection, raw, test, column, design),
                hint=keep if key.startswith("raw") else FILL,
            )


def _offending(connection: Any, raw: str, test: str, column: str, design: ExperimentDesign) -> str:
    """The first of these rows: whose they are, when, and what stands there."""
    given = ", ".join(quote(f"given {name}") for name in (design.unit, design.time, column))
    rows = connection.execute(f"SELECT {given} FROM {raw} WHERE {test} ORDER BY ALL LIMIT {FIRST}").fetchall()
    shown = (["nothing" if value is None else repr(value) for value in row] for row in rows)
    return "; ".join(f"{value} at {design.unit} {unit}, {design.time} {time}" for unit, time, value in shown)


def _infinite(key: str) -> str:
    return f" OR NOT isfinite({quote(key)})" if key.startswith("metric") else ""


def _expected(key: str, design: ExperimentDesign) -> str:
    if key == "day":
        what = "a whole number" if design.period == "visit" else "a whole number, a date or a time"
        return f"{what} in every row, one row per unit and {design.period}"
    if key.startswith("metric"):
        return "a number in every row"
    return "true or false in every row" if key == "exposed" else "a value in every row"


def arms_of(connection: Any, raw: str, design: ExperimentDesign, name: str) -> tuple[str, ...]:
    """All arms; the control is one of several."""
    found = connection.execute(f"SELECT assigned, count(*) FROM {raw} GROUP BY 1 ORDER BY 1").fetchall()
    arms = tuple(arm for arm, _ in found)
    shown = ", ".join(map(repr, arms[:SHOWN])) + (f" and {len(arms) - SHOWN} more" if len(arms) > SHOWN else "")
    if str(design.control) not in arms:
        hint = Advice("name the control with ", Setting("control", arms[0]))
        raise DataError(
            f"No row belongs to the control {design.control!r}", where=name, column=design.arm, got=shown, hint=hint
        )
    if len(arms) < 2:
        raise DataError("There is one arm only", where=name, column=design.arm, expected="two arms or more", got=shown)
    return arms
