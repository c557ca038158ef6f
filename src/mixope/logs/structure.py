"""Whether the rows of an episode follow each other: exact, by window functions over all rows.

Along an episode, ordered by step: steps rise by one, nothing follows the end, and the next observation of a row is the
observation of the row after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mixope.errors import DataError
from mixope.logs import sql
from mixope.logs.failures import reading
from mixope.logs.sources import quote

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

Status = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """Something about the episodes: how often, in a sentence, and the error to raise if they cannot be used."""

    name: str
    status: Status
    count: int
    sentence: str
    error: DataError | None = None


@dataclass(frozen=True)
class _Question:
    """A finding to look for: a condition on a row that knows the row before it."""

    name: str
    status: Status
    condition: str
    sentence: str
    column: str
    value: str = "step"
    hint: str = ""


def explain_episodes(logs: Logs) -> tuple[Finding, ...]:
    """All findings whose count is not zero, errors first."""
    import duckdb

    questions = _questions(logs)
    with reading(logs.name), duckdb.connect() as connection:
        rows = _linked(logs, connection)
        counts = ", ".join(f"count(*) FILTER ({question.condition})" for question in questions)
        totals = connection.execute(f"SELECT {counts} FROM ({rows})").fetchall()[0]
        found = [
            _finding(logs, question, total, rows, connection)
            for question, total in zip(questions, totals, strict=True)
            if total
        ]
    order: tuple[Status, ...] = ("error", "warning", "note")
    return tuple(sorted(found, key=lambda finding: order.index(finding.status)))


def _linked(logs: Logs, connection: Any) -> str:
    """All rows, each with what it needs to know of the rows before it in its episode."""
    rows = sql.rows(logs.plans, logs.schema, connection, logs.step_base, numbered=True, keep_all=True)
    window = f"PARTITION BY source, policy_id, episode_id ORDER BY step, {sql.ROW}"
    before = f"OVER ({window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    lagged = ", ".join(f"lag({quote(name)}) OVER w AS {quote('__' + name)}" for name in logs.schema.next_observation)
    return (
        f"SELECT *, row_number() OVER w AS __place, lag(step) OVER w AS __step, lag(truncated) OVER w AS __truncated, "
        f"coalesce(bool_or(terminated) {before}, false) AS __ended, "
        f"coalesce(bool_or(truncated) {before}, false) AS __cut, {lagged} FROM ({rows}) WINDOW w AS ({window})"
    )


def _questions(logs: Logs) -> list[_Question]:
    derived = [str(plan.index) for plan in logs.plans if "next_observation" in plan.derived]
    inside = f"source IN ({', '.join(derived)})" if derived else "false"
    hole = "step > __step + 1"
    pairs = zip(logs.schema.observation, logs.schema.next_observation, strict=True)
    differ = " OR ".join(
        f"({quote('__' + after)} IS NOT NULL AND {quote('__' + after)} IS DISTINCT FROM {quote(now)})"
        for now, after in pairs
    )
    names = logs.schema.mapping
    step, end, cut = (str(names.get(notion, notion)) for notion in ("step", "terminated", "truncated"))
    after_hole = "give next_observation, which such logs need, or drop the episodes with holes"
    twice = (
        "number the rows of each episode 0, 1, 2 …; if episodes share a number, give each its own episode_id or label"
    )
    resets = "give each episode its own episode_id"
    return [
        _Question("duplicate-steps", "error", "step = __step", "rows repeat a step of their episode", step, hint=twice),
        _Question(
            "step-holes", "error", f"{hole} AND {inside}", "rows come after a hole in the steps", step, hint=after_hole
        ),
        _Question(
            "rows-after-end", "error", "__ended", "rows after the end of their episode (terminated)", end, hint=resets
        ),
        _Question("step-gaps", "warning", f"{hole} AND NOT {inside}", "rows come after a hole in the steps", step),
        _Question(
            "rows-after-cut", "warning", "__cut AND NOT __ended", "rows after a truncated row of their episode", cut
        ),
        _Question(
            "next-mismatch",
            "warning",
            f"NOT {inside} AND step = __step + 1 AND NOT __truncated AND ({differ})",
            "rows whose observation is not the next_observation of the row before",
            "next_observation",
        ),
        _Question(
            "late-starts",
            "note",
            f"__place = 1 AND step > {logs.step_base}",
            f"episodes begin later than step {logs.step_base}; they are not used as starts",
            step,
        ),
        *_partial(logs),
    ]


def _partial(logs: Logs) -> list[_Question]:
    sentence = "rows have no propensity while others do"
    return (
        [_Question("partial-propensity", "note", "propensity IS NULL", sentence, "")]
        if logs.schema.has_propensity
        else []
    )


def _finding(logs: Logs, question: _Question, total: int, rows: str, connection: Any) -> Finding:
    sentence = f"{total} {question.sentence}"
    error = _error(logs, question, total, rows, connection) if question.status == "error" else None
    return Finding(question.name, question.status, total, sentence, error)


def _error(logs: Logs, question: _Question, total: int, rows: str, connection: Any) -> DataError:
    query = f"SELECT source, {sql.ROW}, {question.value}, episode_id FROM ({rows}) WHERE {question.condition}"
    first = connection.execute(f"{query} ORDER BY source, {sql.ROW} LIMIT 5").fetchall()
    source, number, value, episode = first[0]
    piece = number >> sql.PIECE_SHIFT
    same = [row - (piece << sql.PIECE_SHIFT) for s, row, *_ in first if s == source and row >> sql.PIECE_SHIFT == piece]
    where, places = logs.sources[source].locate(piece, same)
    return DataError(
        f"{total} {question.sentence}",
        where=where,
        column=question.column,
        rows=places,
        total=total,
        expected="one row a step, rising by one, and none after the end",
        got=f"step {value} of episode {episode!r}",
        hint=question.hint,
    )
