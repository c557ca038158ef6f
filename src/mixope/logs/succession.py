"""How rows follow each other, by window functions over all rows, also those that the canonical view drops.

Along an episode, ordered by step, steps rise by one, nothing follows the end, and the next observation of a row is the
observation of the row after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mixope.base.errors import DataError
from mixope.logs import view
from mixope.logs.checks import first_rows, locate
from mixope.logs.schema import EPISODE_KEYS, Type
from mixope.logs.sources import literal, quote, reading

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

Status = Literal["error", "warning", "note"]
SAME = 1e-6
"""Relative difference up to which two numbers are the same observation."""


@dataclass(frozen=True)
class Finding:
    """Something about the episodes: how often, in a sentence, and where it is seen first.

    ``rows`` are the first rows, counted from 0 within the file ``where``; ``error`` is what to raise if the episodes
    cannot be used.
    """

    name: str
    status: Status
    count: int
    sentence: str
    where: str
    rows: tuple[int, ...]
    error: DataError | None = None

    @property
    def place(self) -> str:
        """The first rows and their file, in words."""
        return f"row{'s' if len(self.rows) > 1 else ''} {', '.join(map(str, self.rows))} of {self.where}"


@dataclass(frozen=True)
class _Question:
    """A finding to look for: a condition on a row that knows the row before it."""

    name: str
    status: Status
    condition: str
    sentence: str
    column: str
    hint: str = ""


def explain_episodes(logs: Logs) -> tuple[Finding, ...]:
    """All findings whose count is not zero, errors first."""
    logs = logs.recorded
    questions = _questions(logs)
    with reading(logs.name), logs.connect() as connection:
        shown = {"step": "step", "episode": "episode_id"}
        asked = [(question.condition, shown) for question in questions]
        counted = first_rows(asked, _linked(logs, connection), connection)
        found = [_finding(logs, *every) for every in zip(questions, counted, strict=True) if every[1][0]]
    order: tuple[Status, ...] = ("error", "warning", "note")
    return tuple(sorted(found, key=lambda finding: order.index(finding.status)))


def explain_steps(logs: Logs, late: Sequence[str]) -> tuple[str, ...]:
    """Of some loggers without a known start, those whose episodes all begin one step after the first."""
    if not late:
        return ()
    with reading(logs.name), logs.connect() as connection:
        rows = view.rows(logs.plans, logs.schema, connection, logs.step_base, keep_all=True)
        chosen = ", ".join(map(literal, late))
        by_episode = (
            f"SELECT policy_id, min(step) AS first FROM ({rows}) WHERE policy_id IN ({chosen})"
            f" GROUP BY {', '.join(EPISODE_KEYS)}"
        )
        first = f"min(first) = {logs.step_base + 1} AND max(first) = {logs.step_base + 1}"
        found = connection.execute(
            f"SELECT policy_id FROM ({by_episode}) GROUP BY policy_id HAVING {first} ORDER BY policy_id"
        )
        return tuple(label for (label,) in found.fetchall())


def _linked(logs: Logs, connection: Any) -> str:
    """All rows, each with what it needs to know of the rows before it in its episode."""
    rows = view.rows(logs.plans, logs.schema, connection, logs.step_base, numbered=True, keep_all=True)
    window = f"PARTITION BY source, policy_id, episode_id ORDER BY step, {view.ROW}"
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
    moved = " OR ".join(differ(now, after, logs.schema.types[now]) for now, after in pairs)
    gone = f"(NOT __truncated AND ({moved}))"
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
        _Question(
            "step-gaps",
            "warning",
            f"{hole} AND NOT {inside} AND {gone} IS NOT TRUE",
            "rows come after a hole in the steps",
            step,
        ),
        _Question(
            "missing-rows",
            "warning",
            f"{hole} AND NOT {inside} AND {gone}",
            "rows come after a hole in the steps and do not begin where the row before it led: rows are missing",
            step,
        ),
        _Question(
            "rows-after-cut", "warning", "__cut AND NOT __ended", "rows after a truncated row of their episode", cut
        ),
        _Question(
            "next-mismatch",
            "warning",
            f"NOT {inside} AND step = __step + 1 AND NOT __truncated AND ({moved})",
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


def differ(now: str, after: str, type_: Type) -> str:
    """Whether the row before expected another value; numbers may differ in the seventh digit, where storage rounds."""
    expected, found = quote("__" + after), quote(now)
    if type_ != "float":
        return f"({expected} IS NOT NULL AND {expected} IS DISTINCT FROM {found})"
    return f"abs({expected} - {found}) > {SAME} * greatest(abs({expected}), abs({found}))"


def _partial(logs: Logs) -> list[_Question]:
    sentence = "rows have no propensity while others do"
    return (
        [_Question("partial-propensity", "note", "propensity IS NULL", sentence, "")]
        if logs.schema.has_propensity
        else []
    )


def _finding(logs: Logs, question: _Question, counted: tuple[int, Any]) -> Finding:
    total, first = counted
    where, places = locate(logs, first)
    sentence = f"{total} {question.sentence}"
    error = DataError(
        sentence,
        where=where,
        column=question.column,
        rows=places,
        total=total,
        expected="one row per step, with steps that rise by one, and no row after the end",
        got=f"step {first[0]['step']} of episode {first[0]['episode']!r}",
        hint=question.hint,
    )
    fatal = question.status == "error"
    return Finding(question.name, question.status, total, sentence, where, tuple(places), error if fatal else None)
