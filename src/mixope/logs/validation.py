"""What exactly is wrong with the rows: run on demand, after a cheap sign of trouble or by ``mixope inspect``.

``explain_rows`` looks at single rows, in one pass over each input; ``explain_episodes`` (``structure``) at their order.
Both look at all rows, also those that the canonical view drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixope.errors import DataError
from mixope.logs.checks import Check, checks, extras
from mixope.logs.delimited import DelimitedFiles, stray_text
from mixope.logs.failures import reading
from mixope.logs.sql import PIECE_SHIFT, ROW, raw_rows
from mixope.logs.structure import Finding, explain_episodes

if TYPE_CHECKING:
    from mixope.logs.draft import Plan
    from mixope.logs.logs import Logs
    from mixope.logs.sources import Piece

__all__ = ["Finding", "explain_episodes", "explain_rows"]


def explain_rows(logs: Logs) -> DataError | None:
    """The first thing that makes rows unusable, with file, column, rows, count and remedy; None if all are sound."""
    import duckdb

    for plan in logs.plans:
        for position, piece in enumerate(plan.source.pieces):
            with reading(piece.files[0]), duckdb.connect() as connection:
                found = _stray(plan, piece) or _explain(logs, plan, position, connection)
            if found is not None:
                return found
    return None


def _stray(plan: Plan, piece: Piece) -> DataError | None:
    if not isinstance(piece, DelimitedFiles):
        return None
    used = dict.fromkeys(column.raw for column in plan.columns.values())
    return stray_text(piece, [name for name in used if name is not None and name in piece.fields])


def _explain(logs: Logs, plan: Plan, position: int, connection: Any) -> DataError | None:
    piece = plan.source.pieces[position]
    every = list(checks(plan, piece, logs.schema))
    rows = raw_rows(plan, piece, position, connection, ordered=True, extra=extras(plan, piece))
    counts = ", ".join(f"count(*) FILTER ({check.condition})" for check in every)
    totals = connection.execute(f"SELECT {counts} FROM ({rows})").fetchall()[0]
    for check, total in zip(every, totals, strict=True):
        if total:
            query = f"SELECT {ROW}, {check.value} FROM ({rows}) WHERE {check.condition} ORDER BY {ROW} LIMIT 5"
            first = connection.execute(query).fetchall()
            if check.problem.startswith("A propensity") and _all_logs(rows, connection, logs.schema.action_kind):
                check = _log_probabilities(check)  # noqa: PLW2901 (the same check, better said)
            return _error(plan, position, check, total, first)
    return None


def _all_logs(rows: str, connection: Any, action_kind: str) -> bool:
    """Whether propensities are logarithms: one is negative and none positive (logarithms of densities may be)."""
    high, low = connection.execute(f"SELECT max(propensity), min(propensity) FROM ({rows})").fetchall()[0]
    return bool(low < 0 and (high <= 0 or action_kind == "continuous"))


def _log_probabilities(check: Check) -> Check:
    problem = f"{check.column!r} looks like log-probabilities: name the column action_logp"
    hint = f"columns={{'action_logp': {check.column!r}, 'action_prob': None}}"
    return Check(problem, check.column, check.condition, check.value, check.expected, hint)


def _error(plan: Plan, position: int, check: Check, total: int, first: Sequence[tuple[int, Any]]) -> DataError:
    offset = position << PIECE_SHIFT
    where, rows = plan.source.locate(position, [row - offset for row, _ in first])
    return DataError(
        check.problem,
        where=where,
        column=check.column,
        rows=rows,
        total=total,
        expected=check.expected,
        got=first[0][1],
        hint=check.hint,
    )
