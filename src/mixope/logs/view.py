"""The plan as SQL: canonical rows for DuckDB. ``table`` carries out the same plan by other means.

Layers, each only where it is needed: the raw columns renamed and cast (per piece); episodes cut by row order; steps
counted; the next row's observation; last, the filter. A Parquet log that has all its columns is a plain projection
with neither window nor sort, so a GROUP BY over the view costs what it costs over the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixope.logs.parts import ColumnPart
from mixope.logs.plan import Column, ReadingPlan
from mixope.logs.roles import is_null
from mixope.logs.schema import EPISODE_KEYS, UNFOLLOWED, UNLABELLED, Schema, Type
from mixope.logs.sources import Piece, field_in, literal, quote
from mixope.logs.types import Field

ROW = "__row"
PIECE_SHIFT = 40
"""The row number of a source is piece · 2⁴⁰ + row within the piece."""

SQL_TYPE: dict[Type, str] = {"int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
EPISODE = "PARTITION BY policy_id, episode_id"


def rows(
    plans: Sequence[ReadingPlan],
    schema: Schema,
    connection: Any,
    base: int,
    *,
    numbered: bool = False,
    keep_all: bool = False,
) -> str:
    """A SELECT of the canonical rows of all sources; ``numbered`` adds row numbers, ``keep_all`` skips the filter."""
    return "\nUNION ALL\n".join(
        _canonical(plan, schema, connection, base, numbered=numbered, keep_all=keep_all) for plan in plans
    )


def steps(plans: Sequence[ReadingPlan], connection: Any) -> str:
    """A SELECT of the explicit steps of all sources, for the smallest one."""
    parts = [
        f"SELECT {expression_of(plan.columns['step'], piece)} AS step FROM {piece.relation(connection)}"
        for plan in plans
        if "step" not in plan.derived
        for piece in plan.source.pieces
    ]
    return "\nUNION ALL\n".join(parts)


def rewards(plans: Sequence[ReadingPlan], connection: Any) -> str:
    """A SELECT of the logger and the reward of every row of all sources, also of those that are dropped."""
    return "\nUNION ALL\n".join(
        f"SELECT {_labelled(expression_of(plan.columns['policy_id'], piece), plan, piece)} AS policy_id, "
        f"{expression_of(plan.columns['reward'], piece)} AS reward FROM {piece.relation(connection)}"
        for plan in plans
        for piece in plan.source.pieces
    )


def marked(plans: Sequence[ReadingPlan], schema: Schema, connection: Any) -> str:
    """A SELECT of the keys, step, reward and end of every row, and of whether it is ``used``: what came next is known.

    Also of rows that are dropped.
    """
    shown = ", ".join((*EPISODE_KEYS, "step", "reward", "terminated"))
    return "\nUNION ALL\n".join(
        f"SELECT {shown}, NOT {UNFOLLOWED} AS used FROM "
        f"({_canonical(plan, schema, connection, 0, numbered=False, keep_all=True)})"
        for plan in plans
    )


def _canonical(plan: ReadingPlan, schema: Schema, connection: Any, base: int, *, numbered: bool, keep_all: bool) -> str:
    inner = _derived(plan, connection, numbered=numbered)
    never_ends = plan.knows("terminated", "all_false")
    shown = []
    for name in schema.columns:
        if name == "start":
            start = f"{step_of(plan)} = {base}"
            sure = "step" in plan.derived or plan.knows("step", "null_free")
            shown.append(f"{start if sure else f'coalesce({start}, false)'} AS start")
        elif name == UNFOLLOWED:
            shown.append(f"{'false' if plan.keeps_all else f'NOT ({_followed(plan)})'} AS {UNFOLLOWED}")
        elif name in schema.next_observation and not never_ends:
            shown.append(f"CASE WHEN terminated THEN NULL ELSE {quote(name)} END AS {quote(name)}")
        elif name == "step" and plan.from_one:
            shown.append(f"{step_of(plan)} AS step")
        else:
            shown.append(quote(name))
    shown += [quote(ROW)] if numbered else []
    keep = "" if keep_all or plan.keeps_all else f" WHERE {_followed(plan)} OR ({_tells(plan, schema)})"
    return f"SELECT {', '.join(shown)} FROM ({inner}){keep}"


def step_of(plan: ReadingPlan) -> str:
    """The step of a row, counted from the same number by all loggers."""
    if not plan.from_one:
        return "step"
    return f"(step - CAST(policy_id IN ({', '.join(map(literal, plan.from_one))}) AS BIGINT))"


def _followed(plan: ReadingPlan) -> str:
    """Whether the row ended its episode, or what came next is known."""
    present = " AND ".join(f"{quote(name)} IS NOT NULL" for name in plan.next_observation)
    return f"terminated OR ({present})"


def _tells(plan: ReadingPlan, schema: Schema) -> str:
    """Whether a row says something by itself: what was seen, done and earned."""
    said = (
        f"coalesce(isfinite({quote(name)}), false)" if schema.types[name] == "float" else f"{quote(name)} IS NOT NULL"
        for name in plan.told
    )
    return " AND ".join(said)


def _derived(plan: ReadingPlan, connection: Any, *, numbered: bool) -> str:
    ordered = numbered or "step" in plan.derived or "episode_id" in plan.derived
    inner = "\nUNION ALL\n".join(
        raw_rows(plan, piece, position, connection, ordered=ordered)
        for position, piece in enumerate(plan.source.pieces)
    )
    return with_episodes(plan, inner, ordered=ordered)


def with_episodes(plan: ReadingPlan, inner: str, *, ordered: bool) -> str:
    """Rows with what is derived from the other rows of their episode."""
    ended = "truncated" if "terminated" in plan.derived else "(terminated OR truncated)"
    if "episode_id" in plan.derived:
        number = f"sum(CAST({ended} AS BIGINT)) OVER (ORDER BY {ROW} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        to = SQL_TYPE[plan.columns["episode_id"].type]
        inner = f"SELECT *, CAST(CAST(coalesce({number}, 0) AS BIGINT) AS {to}) AS episode_id FROM ({inner})"
    if "step" in plan.derived:
        order = ROW if plan.clock is None else f"time, {ROW}"
        inner = f"SELECT *, row_number() OVER ({EPISODE} ORDER BY {order}) - 1 AS step FROM ({inner})"
    following = ["lead(1) OVER w IS NULL AS terminated"] if "terminated" in plan.derived else []
    if "next_observation" in plan.derived:
        following += [
            f"CASE WHEN {ended} THEN NULL ELSE lead({quote(now)}) OVER w END AS {quote(after)}"
            for now, after in zip(plan.observation, plan.next_observation, strict=True)
        ]
    if following:
        order = f"step, {ROW}" if ordered else "step"
        inner = f"SELECT *, {', '.join(following)} FROM ({inner}) WINDOW w AS ({EPISODE} ORDER BY {order})"
    return inner


def raw_rows(
    plan: ReadingPlan, piece: Piece, position: int, connection: Any, *, ordered: bool, extra: Sequence[str] = ()
) -> str:
    """A SELECT of one piece: what needs no other row, renamed and cast, numbered if ``ordered``."""
    shown = [f"CAST({plan.index} AS INTEGER) AS source"]
    for name, column in plan.columns.items():
        if name in plan.derived:
            continue
        expression = expression_of(column, piece)
        if name == "policy_id":
            expression = _labelled(expression, plan, piece)
        elif name == "propensity" and plan.log_propensity:
            expression = f"exp({expression})"
        shown.append(f"{expression} AS {quote(name)}")
    if ordered:
        shown.append(f"{position << PIECE_SHIFT} + row_number() OVER () - 1 AS {ROW}")
    return f"SELECT {', '.join([*shown, *extra])} FROM {piece.relation(connection)}"


def _labelled(expression: str, plan: ReadingPlan, piece: Piece) -> str:
    raw, label = plan.columns["policy_id"].raw, literal(plan.source.label or UNLABELLED)
    if raw is None or field_in(piece, raw) is None:
        return label
    return expression if raw in piece.null_free or raw in piece.constants else f"coalesce({expression}, {label})"


def expression_of(column: Column, piece: Piece) -> str:
    """The raw column as the canonical type; missing values are filled where that was asked for."""
    value = _value_of(column, piece)
    if not column.state or column.raw is None:
        return value
    null, to = is_null(piece, ColumnPart(None, column.raw, column.item)), SQL_TYPE[column.type]
    unknown = " AND ".join(is_null(piece, part) for part in column.state)
    if column.indicates:
        return f"CASE WHEN {unknown} THEN NULL ELSE CAST({null} AS {to}) END"
    filled = f"CASE WHEN {unknown} THEN NULL ELSE CAST({literal(column.fill)} AS {to}) END"
    return f"CASE WHEN {null} THEN {filled} ELSE {value} END"


def _value_of(column: Column, piece: Piece) -> str:
    """The raw column as the canonical type; an absent flag is false, another absent column null."""
    field = None if column.raw is None else field_in(piece, column.raw, column.item)
    if field is None or column.raw is None or field.kind == "null":
        return "false" if column.type == "bool" else f"CAST(NULL AS {SQL_TYPE[column.type]})"
    if column.raw in piece.fields:
        value = quote(column.raw) + (f"[{column.item + 1}]" if column.item is not None else "")
    else:
        value = literal(piece.constants[column.raw])
    if column.type == "bool":
        return _flag(value, field, sure=column.raw in piece.null_free)
    return cast(value, field, column.type)


def cast(value: str, field: Field, to: Type) -> str:
    """A value of some kind as a canonical type, without a cast where none is needed."""
    value = _plain(value, field)
    if field.kind == to and field.exact:
        return value
    if to == "int" and field.kind == "float":
        return f"CASE WHEN {value} = floor({value}) THEN TRY_CAST({value} AS BIGINT) END"
    if to == "string" and field.kind == "float":
        return f"coalesce(CAST({cast(value, field, 'int')} AS VARCHAR), CAST({value} AS VARCHAR))"
    return f"{'TRY_CAST' if field.wide else 'CAST'}({value} AS {SQL_TYPE[to]})"


def _plain(value: str, field: Field) -> str:
    """A decimal with digits after the point as the float that it stands for."""
    return f"CAST({value} AS DOUBLE)" if field.decimal and field.kind == "float" else value


def _flag(value: str, field: Field, *, sure: bool) -> str:
    value = _plain(value, field)
    if field.kind == "float":
        return f"coalesce({value} <> 0 AND isfinite({value}), false)"
    truth = value if field.kind == "bool" else f"{value} <> 0"
    return truth if sure else f"coalesce({truth}, false)"
