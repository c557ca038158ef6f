"""Whether times can order the rows of every episode: none is missing, and no two rows of an episode have the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixope.base.errors import Advice, DataError, Setting
from mixope.logs import view
from mixope.logs.database import connect
from mixope.logs.plan import ReadingPlan
from mixope.logs.sources import reading

SHOWN = 5
IN_ORDER = Advice("; or, if the rows are in their order already, say ", Setting("columns", {"step": None}))


def check_clocks(plans: Sequence[ReadingPlan]) -> None:
    """One pass over the episodes and times of each source whose rows are ordered by them."""
    for plan in plans:
        if plan.clock is not None:
            with reading(plan.source.name), connect() as connection:
                _refuse_missing(plan, connection)
                _refuse_ties(plan, connection)


def _rows(plan: ReadingPlan, connection: Any) -> str:
    pieces = enumerate(plan.source.pieces)
    return "\nUNION ALL\n".join(view.raw_rows(plan, piece, place, connection, ordered=True) for place, piece in pieces)


def _refuse_missing(plan: ReadingPlan, connection: Any) -> None:
    wrong = "time IS NULL" if plan.columns["time"].type == "int" else "(time IS NULL OR NOT isfinite(time))"
    rows = _rows(plan, connection)
    found = connection.execute(
        f"SELECT {view.ROW}, count(*) OVER () FROM ({rows}) WHERE {wrong} ORDER BY 1 LIMIT {SHOWN}"
    ).fetchall()
    if found:
        raise _error(
            plan,
            "A time is missing, or is none",
            [row for row, _ in found],
            found[0][1],
            expected="a time on every row, such as 2026-11-16T09:30:00",
            hint=Advice("mend these rows, or number the steps in a column step", IN_ORDER),
        )


def _refuse_ties(plan: ReadingPlan, connection: Any) -> None:
    known = [name for name in ("policy_id", "episode_id") if name in plan.columns and name not in plan.derived]
    rows, keys = _rows(plan, connection), [*known, "time"]
    listed = ", ".join(keys)
    ties = f"SELECT {listed}, count(*) AS n, min({view.ROW}) AS first FROM ({rows}) GROUP BY {listed} HAVING n > 1"
    found = connection.execute(f"SELECT {listed}, sum(n) OVER () FROM ({ties}) ORDER BY first LIMIT 1").fetchone()
    if found is None:
        return
    *values, total = found
    wanted = " AND ".join(f"{name} = ?" for name in keys)
    same = connection.execute(
        f"SELECT {view.ROW} FROM ({rows}) WHERE {wanted} ORDER BY 1 LIMIT {SHOWN}", values
    ).fetchall()
    which = f"episode {values[keys.index('episode_id')]!r}" if "episode_id" in keys else "the only episode"
    raise _error(
        plan,
        "Rows of one episode have the same time, so that their order is not known",
        [row for (row,) in same],
        int(total),
        expected="times that are all different within an episode",
        got=f"{len(same)} rows of {which} at one time",
        hint=Advice("store finer times, or number the steps in a column step", IN_ORDER),
    )


def _error(plan: ReadingPlan, problem: str, rows: Sequence[int], total: int, **words: Any) -> DataError:
    """About the rows of the first file that has some."""
    piece = rows[0] >> view.PIECE_SHIFT
    inside = [row - (piece << view.PIECE_SHIFT) for row in rows if row >> view.PIECE_SHIFT == piece]
    where, places = plan.source.locate(piece, inside)
    return DataError(problem, where=where, column=plan.clock, rows=places, total=total, **words)
