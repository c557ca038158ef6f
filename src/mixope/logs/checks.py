"""What can be wrong with a single row: one record a check, as an SQL condition over the rows of a piece.

NaN is found by ``isfinite`` alone: Parquet statistics leave NaN out, and DuckDB answers ``isnan`` and ``>`` from them.
The conditions speak of canonical columns, and of a few raw ones that the cast would hide (``__raw.step``: a float).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mixope.logs.acceptance import field_in
from mixope.logs.draft import Plan
from mixope.logs.schema import Schema
from mixope.logs.sources import Piece, quote


@dataclass(frozen=True)
class Check:
    """A condition that no row may meet; ``value`` is the SQL of what to show, ``column`` the file's name for it."""

    problem: str
    column: str
    condition: str
    value: str
    expected: str
    hint: str


def extras(plan: Plan, piece: Piece) -> list[str]:
    """Raw values that checks need beside the canonical ones."""
    shown = []
    for name, column in plan.columns.items():
        field = None if column.raw is None else field_in(piece, column.raw)
        if field is None or column.raw is None or column.raw in piece.constants:
            continue
        if column.type == "int" and field.kind == "float":
            shown.append(f"{quote(column.raw)} AS {quote('__raw.' + name)}")
        if column.item == 0 and field.width is None:
            shown.append(f"len({quote(column.raw)}) AS {quote('__len.' + name)}")
        if name == "propensity":
            shown.append(f"{quote(column.raw)} AS {quote('__raw.propensity')}")
    return shown


def checks(plan: Plan, piece: Piece, schema: Schema) -> Iterator[Check]:
    """All checks that apply to a piece, the most telling first."""
    yield from _whole_numbers(plan, piece)
    yield from _lists(plan, piece)
    for name in (*plan.observation, *plan.action, "reward", "episode_id", "step"):
        if name not in plan.derived:
            yield _missing(plan, name)
    finite = ["reward"]
    finite += plan.observation if schema.observation_kind == "vector" else ()
    finite += plan.action if schema.action_kind == "continuous" else ()
    for name in finite:
        yield _finite(plan, name, f"NOT isfinite({quote(name)})")
    if schema.observation_kind == "vector" and "next_observation" not in plan.derived:
        for name in plan.next_observation:
            yield _finite(plan, name, f"NOT terminated AND NOT isfinite({quote(name)})")
    if "step" not in plan.derived:
        yield Check(
            "A step is negative", _raw(plan, "step"), "step < 0", "step", "0, 1, 2 …", "number the steps from 0"
        )
    if plan.columns["propensity"].raw in piece.fields:
        yield from _propensities(plan, schema)


def _raw(plan: Plan, name: str) -> str:
    return plan.columns[name].raw or name


def _missing(plan: Plan, name: str) -> Check:
    notion = name.partition(".")[0]
    return Check(
        f"The {notion} is missing",
        _raw(plan, name),
        f"{quote(name)} IS NULL",
        "'null'",
        "a value on every row",
        _mend(notion),
    )


def _finite(plan: Plan, name: str, condition: str) -> Check:
    notion = name.partition(".")[0]
    problem = f"The {notion} is not a finite number"
    return Check(problem, _raw(plan, name), condition, quote(name), "finite numbers", _mend(notion))


def _mend(notion: str) -> str:
    return f"drop the episodes with a bad {notion}, or mend how it is recorded"


def _whole_numbers(plan: Plan, piece: Piece) -> Iterator[Check]:
    for name, column in plan.columns.items():
        field = None if column.raw is None or column.raw not in piece.fields else field_in(piece, column.raw)
        if field is not None and field.kind == "float" and column.type == "int":
            raw = quote("__raw." + name)
            bad = f"{raw} <> floor({raw})"
            problem = f"{name!r} is not a whole number"
            yield Check(
                problem, str(column.raw), bad, raw, "integers", "store integers, or name another column: columns={…}"
            )


def _lists(plan: Plan, piece: Piece) -> Iterator[Check]:
    for name, column in plan.columns.items():
        raw = column.raw or ""
        if column.item == 0 and raw in piece.fields and piece.fields[raw].width is None:
            width = sum(other.raw == raw for other in plan.columns.values())
            length = quote("__len." + name)
            problem = "The lists have different lengths"
            hint = "pad them to one length, or read logs of one environment at a time"
            yield Check(problem, raw, f"{length} <> {width}", length, f"{width} elements on every row", hint)


def _propensities(plan: Plan, schema: Schema) -> Iterator[Check]:
    raw, column = quote("__raw.propensity"), _raw(plan, "propensity")
    if plan.log_propensity:
        hint = "store log-probabilities in action_logp and probabilities in action_prob"
        if schema.action_kind == "discrete":
            problem = "A log-probability of a discrete action is above 0"
            yield Check(problem, column, f"{raw} > 0", raw, "at most 0", hint)
        problem = "A log-probability is not a number that can be used"
        yield Check(
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
        yield Check(
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
        yield Check(problem, column, bad, "propensity", "above 0, finite", hint)
