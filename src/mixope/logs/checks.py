"""What exactly is wrong with the rows: run on demand, after a cheap sign of trouble or by ``mixope inspect``.

``explain_rows`` looks at single rows, in one pass over each input: a check is an SQL condition that no row may meet.
NaN is found by ``isfinite`` alone: Parquet statistics leave NaN out, and DuckDB answers ``isnan`` and ``>`` from them.

``explain_gaps`` is for what no scan would stumble over: an episode without an id, a flag that is neither true nor
false, lists that would be cut, a NUL in a text (NumPy cuts texts there, so that two ids could become one). It looks
only at columns whose storage does not rule this out.

Both look at all rows, also those that the canonical view drops; how rows follow each other is a question of
:mod:`mixope.logs.succession`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixope.base.errors import Advice, DataError, Setting
from mixope.logs import view
from mixope.logs.plan import Column, ReadingPlan
from mixope.logs.schema import MISSING_NUMBER, MISSING_WORD, Schema
from mixope.logs.sources import Piece, field_in, literal, quote, reading
from mixope.logs.types import AS_STRINGS, GREATEST, LEAST, Field

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

SHOWN = 5
"""How many of the rows that are wrong an error shows."""
LARGE = 1e60
"""Numbers beyond this, or all below one part in it, are refused: errors rest on their squares and products, which
must neither overflow nor vanish."""
LEAST_DENSITY = 1e-150
"""A density may be small in many dimensions; its square must not vanish."""


@dataclass(frozen=True)
class RowCheck:
    """A condition that no row may meet; ``value`` is the SQL of what to show, ``column`` the file's name for it."""

    problem: str
    column: str
    condition: str
    value: str
    expected: str
    hint: str


def explain_rows(logs: Logs) -> DataError | None:
    """The first thing that makes rows unusable, with file, column, rows, count and remedy; None if all are sound."""
    logs = logs.recorded
    for plan in logs.plans:
        for position, piece in enumerate(plan.source.pieces):
            with reading(piece.files[0]), logs.connect() as connection:
                found = _stray(plan, piece) or _explain(logs, plan, position, connection)
            if found is not None:
                return found
    return None


def missing_states(logs: Logs) -> dict[str, int]:
    """In how many of all rows each column of the state has no value, also of rows that cannot be used for it."""
    schema = logs.schema
    asked = ", ".join(f"count(*) FILTER ({_without(name, schema)})" for name in schema.observation)
    with reading(logs.name), logs.connect() as connection:
        rows = view.rows(logs.plans, schema, connection, logs.step_base, keep_all=True)
        (found,) = connection.execute(f"SELECT {asked} FROM ({rows})").fetchall()
    return dict(zip(schema.observation, found, strict=True))


def _without(name: str, schema: Schema) -> str:
    """Whether a value of the state is missing, or stands for one that was missing and was kept."""
    column, type_ = quote(name), schema.types[name]
    if (gap := f"{name} missing") in schema.types:
        return f"{quote(gap)} IS NULL OR {quote(gap)} = 1"
    if type_ == "float":
        return f"NOT coalesce(isfinite({column}), false)"
    kept = f"{MISSING_NUMBER}" if type_ == "int" else literal(MISSING_WORD)
    return f"{column} IS NULL OR {column} = {kept}" if type_ != "bool" else f"{column} IS NULL"


def explain_gaps(logs: Logs) -> DataError | None:
    """What ``explain_rows`` says, if one of the gaps is there that scans pass over; None if there is none."""
    logs = logs.recorded
    for plan in logs.plans:
        for piece in plan.source.pieces:
            doubts = [f"coalesce(bool_or({doubt}), false)" for doubt in _gaps(plan, piece)]
            if doubts:
                with reading(piece.files[0]), logs.connect() as connection:
                    query = f"SELECT {' OR '.join(doubts)} FROM {piece.relation(connection)}"
                    if connection.execute(query).fetchall()[0][0]:
                        return explain_rows(logs)
    return None


def _gaps(plan: ReadingPlan, piece: Piece) -> Iterator[str]:
    """Conditions on raw columns of a piece; none where footers, types or counts tell that no row can meet it."""
    for name, column in plan.columns.items():
        found = _field(piece, column)
        if found is None or column.raw is None or name in plan.derived:
            continue
        raw, full = quote(column.raw), column.raw in piece.null_free
        if column.type == "bool" and not (full and found.kind == "bool"):
            yield _no_flag(raw, found)
        elif name == "episode_id" and not (full and found.kind != "float"):
            yield f"{view.cast(raw, found, column.type)} IS NULL"
        elif column.item == 0 and found.width is None:
            yield f"len({raw}) <> {_width(plan, column.raw)}"
        elif column.item is None and column.type == "int" and (found.kind == "float" or found.wide):
            yield _no_integer(raw, found)
        if column.item is None and found.kind == "string":
            yield _nul(raw)


def _field(piece: Piece, column: Column) -> Field | None:
    """What a piece stores for a column; a column may well be called ""."""
    return None if column.raw is None else piece.fields.get(column.raw)


def _no_flag(raw: str, found: Field) -> str:
    """Whether a value is neither true nor false."""
    other = f" OR {raw} NOT IN (0, 1)" if found.kind in {"int", "float"} else ""
    return f"({raw} IS NULL{other}{f' OR NOT isfinite({raw})' if found.kind == 'float' else ''})"


def _no_integer(raw: str, found: Field) -> str:
    """Whether a value, NaN apart, is no integer of 64 bits: as an id it would be a null, and its row be dropped."""
    floats = found.kind == "float" and not found.decimal
    given = f"(isfinite({raw}) OR isinf({raw}))" if floats else f"{raw} IS NOT NULL"
    return f"({given} AND {view.cast(raw, found, 'int')} IS NULL)"


def _nul(text: str) -> str:
    return f"contains({text}, chr(0))"


def _width(plan: ReadingPlan, raw: str) -> int:
    """How many elements the lists of a column are taken to have."""
    return sum(column.raw == raw for column in plan.columns.values())


def _stray(plan: ReadingPlan, piece: Piece) -> DataError | None:
    used = {column.raw for column in plan.columns.values()}
    return piece.explain_text({name: found.kind for name, found in piece.fields.items() if name in used})


def _explain(logs: Logs, plan: ReadingPlan, position: int, connection: Any) -> DataError | None:
    piece = plan.source.pieces[position]
    every = list(_checks(plan, piece, logs.schema))
    rows = view.raw_rows(plan, piece, position, connection, ordered=True, extra=_extras(plan, piece))
    if "terminated" in plan.derived:
        rows = view.with_episodes(plan, rows, ordered=True)
    found = first_rows([(check.condition, {"value": check.value}) for check in every], rows, connection)
    for check, (total, first) in zip(every, found, strict=True):
        if total:
            if check.problem.startswith("A propensity") and _all_logs(rows, connection, logs.schema.action_kind):
                check = _log_probabilities(check)  # noqa: PLW2901 (the same check, better said)
            where, places = locate(logs, first)
            return DataError(
                check.problem,
                where=where,
                column=check.column,
                rows=places,
                total=total,
                expected=check.expected,
                got=first[0]["value"],
                hint=check.hint,
            )
    return None


def first_rows(questions: Sequence[tuple[str, dict[str, str]]], rows: str, connection: Any) -> list[tuple[int, Any]]:
    """For each (condition, SQL of what to show): how many rows meet it, and the first five, in one pass."""
    asked = []
    for condition, shown in questions:
        fields = {"source": "source", "row": view.ROW} | shown
        packed = ", ".join(f"{quote(name)} := {value}" for name, value in fields.items())
        asked += [f"count(*) FILTER ({condition})", f"min(struct_pack({packed}), {SHOWN}) FILTER ({condition})"]
    found = connection.execute(f"SELECT {', '.join(asked)} FROM ({rows})").fetchall()[0] if asked else ()
    return list(zip(found[::2], found[1::2], strict=True))


def locate(logs: Logs, first: Sequence[Mapping[str, Any]]) -> tuple[str, list[int]]:
    """The file of the first of some rows, and those of them that lie in it, counted from 0 within the file."""
    source, piece = int(first[0]["source"]), int(first[0]["row"]) >> view.PIECE_SHIFT
    same = [r["row"] for r in first if r["source"] == source and r["row"] >> view.PIECE_SHIFT == piece]
    return logs.sources[source].locate(piece, [row - (piece << view.PIECE_SHIFT) for row in same])


def _all_logs(rows: str, connection: Any, action_kind: str) -> bool:
    """Whether propensities are logarithms: one is negative and none positive (logarithms of densities may be)."""
    high, low = connection.execute(f"SELECT max(propensity), min(propensity) FROM ({rows})").fetchall()[0]
    return bool(low < 0 and (high <= 0 or action_kind == "continuous"))


def _log_probabilities(check: RowCheck) -> RowCheck:
    problem = f"{check.column!r} looks like log-probabilities: name the column action_logp"
    hint = Advice(Setting("columns", {"action_logp": check.column, "action_prob": None}))
    return RowCheck(problem, check.column, check.condition, check.value, check.expected, hint)


def _extras(plan: ReadingPlan, piece: Piece) -> list[str]:
    """Raw values that checks need beside the canonical ones."""
    shown = []
    for name, column in plan.columns.items():
        field = None if column.raw is None else field_in(piece, column.raw)
        if field is None or column.raw is None or column.raw in piece.constants:
            continue
        if column.type == "int" and (field.kind == "float" or field.wide):
            shown.append(f"{quote(column.raw)} AS {quote('__raw.' + name)}")
        if column.item == 0 and field.width is None:
            shown.append(f"len({quote(column.raw)}) AS {quote('__len.' + name)}")
        if name == "propensity" or column.type == "bool":
            shown.append(f"{quote(column.raw)} AS {quote('__raw.' + name)}")
    return shown


def _checks(plan: ReadingPlan, piece: Piece, schema: Schema) -> Iterator[RowCheck]:
    """All checks that apply to a piece, the most telling first."""
    yield from _whole_numbers(plan, piece)
    yield from _lists(plan, piece)
    for name in (*plan.observation, *plan.action, "reward", "episode_id", "step"):
        if name not in plan.derived:
            yield _missing(plan, name)
    yield from _flags(plan, piece)
    yield from _texts(plan, piece)
    finite = ["reward"]
    finite += schema.numbers
    finite += [name for name in plan.action if schema.types[name] == "float"]
    for name in finite:
        yield _finite(plan, name, f"NOT isfinite({quote(name)})")
        yield _within(plan, name)
    if "next_observation" not in plan.derived:
        for name in (f"next_{name}" for name in schema.numbers):
            yield _finite(plan, name, f"NOT terminated AND NOT isfinite({quote(name)})")
            yield _within(plan, name, "NOT terminated")
    if "step" not in plan.derived:
        yield RowCheck(
            "A step is negative", _raw(plan, "step"), "step < 0", "step", "0, 1, 2 …", "number the steps from 0"
        )
    if plan.columns["propensity"].raw in piece.fields:
        yield from _propensities(plan, schema)
        yield _not_too_small(plan, schema)


def _raw(plan: ReadingPlan, name: str) -> str:
    return plan.columns[name].raw or name


def _missing(plan: ReadingPlan, name: str) -> RowCheck:
    notion = name.partition(".")[0]
    return RowCheck(
        f"The {notion} is missing",
        _raw(plan, name),
        f"{quote(name)} IS NULL",
        "'null'",
        "a value on every row",
        _remedy_of_gaps(plan, notion),
    )


def _within(plan: ReadingPlan, name: str, where: str = "true") -> RowCheck:
    notion = name.partition(".")[0]
    problem = f"The {notion} is too large to compute with"
    expected = f"numbers from {-LARGE:g} to {LARGE:g}"
    hint = "fix these rows; if all numbers are that large, record them in another unit"
    condition = f"{where} AND abs({quote(name)}) > {LARGE}"
    return RowCheck(problem, _raw(plan, name), condition, quote(name), expected, hint)


def _finite(plan: ReadingPlan, name: str, condition: str) -> RowCheck:
    notion = name.partition(".")[0]
    problem = f"The {notion} is not a finite number"
    return RowCheck(problem, _raw(plan, name), condition, quote(name), "finite numbers", _remedy_of_gaps(plan, notion))


def _remedy(notion: str) -> str:
    return f"drop the episodes with a bad {notion}, or fix how it is recorded"


def _remedy_of_gaps(plan: ReadingPlan, notion: str) -> str:
    """Of a state with several columns, what is known can be kept."""
    if notion not in {"observation", "next_observation"} or len(plan.observation) < 2 or plan.source.missing:
        return _remedy(notion)
    return Advice(f"{_remedy(notion)}, or keep what is known of such states: ", Setting("missing", "keep"))


def _whole_numbers(plan: ReadingPlan, piece: Piece) -> Iterator[RowCheck]:
    for name, column in plan.columns.items():
        field = None if column.raw is None or column.raw not in piece.fields else field_in(piece, column.raw)
        if field is None or column.type != "int" or not (field.kind == "float" or field.wide):
            continue
        raw = quote("__raw." + name)
        if field.kind == "float":
            problem = f"{name!r} is not a whole number"
            hint = Advice("store integers, or name another column: ", Setting("columns", {name: ...}))
            yield RowCheck(problem, str(column.raw), f"{raw} <> floor({raw})", raw, "integers", hint)
        problem, expected = f"{name!r} is beyond 64 bits", f"integers from {LEAST} to {GREATEST}, or strings"
        yield RowCheck(problem, str(column.raw), _no_integer(raw, field), raw, expected, AS_STRINGS)


def _flags(plan: ReadingPlan, piece: Piece) -> Iterator[RowCheck]:
    for name in ("terminated", "truncated"):
        column = plan.columns[name]
        found = _field(piece, column)
        if found is not None and name not in plan.derived:
            raw = quote("__raw." + name)
            shown, hint = f"coalesce(CAST({raw} AS VARCHAR), 'null')", "write false on rows that ended nothing"
            problem, expected = f"{name!r} is neither true nor false", "true or false, or 1 or 0, on every row"
            yield RowCheck(problem, _raw(plan, name), _no_flag(raw, found), shown, expected, hint)


def _texts(plan: ReadingPlan, piece: Piece) -> Iterator[RowCheck]:
    for name, column in plan.columns.items():
        found = _field(piece, column)
        if found is not None and found.kind == "string" and column.type == "string" and name not in plan.derived:
            shown = f"replace({quote(name)}, chr(0), '\\0')"
            hint = "remove it, or write the ids as numbers"
            problem = f"The {name.partition('.')[0]} holds a NUL character"
            yield RowCheck(problem, _raw(plan, name), _nul(quote(name)), shown, "text without NUL characters", hint)


def _lists(plan: ReadingPlan, piece: Piece) -> Iterator[RowCheck]:
    for name, column in plan.columns.items():
        raw = column.raw or ""
        if column.item == 0 and raw in piece.fields and piece.fields[raw].width is None:
            width = _width(plan, raw)
            length = quote("__len." + name)
            problem = "The lists have different lengths"
            hint = "pad them to one length, or read logs of one environment at a time"
            yield RowCheck(problem, raw, f"{length} <> {width}", length, f"{width} elements on every row", hint)


def _propensities(plan: ReadingPlan, schema: Schema) -> Iterator[RowCheck]:
    raw, column = quote("__raw.propensity"), _raw(plan, "propensity")
    if plan.log_propensity:
        hint = "store log-probabilities in action_logp and probabilities in action_prob"
        if schema.action_kind == "discrete":
            problem = "A log-probability of a discrete action is above 0"
            yield RowCheck(problem, column, f"{raw} > 0", raw, "at most 0", hint)
        problem = "A log-probability is not a number that can be used"
        yield RowCheck(
            problem,
            column,
            f"NOT isfinite({raw}) OR NOT isfinite(exp({raw})) OR exp({raw}) = 0",
            raw,
            "finite numbers",
            hint,
        )
    elif schema.action_kind == "discrete":
        problem = "A propensity is outside (0, 1]"
        hint = "give the probability with which the logger took this action; leave it empty where it is unknown"
        yield RowCheck(
            problem,
            column,
            "NOT isfinite(propensity) OR propensity <= 0 OR propensity > 1",
            "propensity",
            "above 0, at most 1",
            hint,
        )
    else:
        problem = "A propensity density is not a positive number"
        hint = "give the logger's density at this action; leave it empty where it is unknown"
        bad = "NOT isfinite(propensity) OR propensity <= 0"
        yield RowCheck(problem, column, bad, "propensity", "above 0, finite", hint)


def _not_too_small(plan: ReadingPlan, schema: Schema) -> RowCheck:
    least = 1 / LARGE if schema.action_kind == "discrete" else LEAST_DENSITY
    hint = "no logger acts so rarely and is seen to: fix how it is recorded, or leave it empty where it is unknown"
    problem, expected = "A propensity is too small to divide by", f"at least {least:g}"
    return RowCheck(problem, _raw(plan, "propensity"), f"propensity < {least}", "propensity", expected, hint)
