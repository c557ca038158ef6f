"""What is in these logs, before any estimate: which column is what, who wrote how much, what a target finds covered.

The checks of :mod:`mixope.logs.checks` (``check=False`` leaves them out), the transition counts that an evaluation
makes too, and one scan for everything else: the totals of every episode, and of vectors the moments of every column.
Rows that cannot be used stop it there: the inspection then says what is wrong and counts nothing but the bad values of
vectors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import Advice, DataError, Setting
from mixope.base.keywords import offers_names
from mixope.checks import episodes_are_new, judge_dropped
from mixope.engines import Engine, bounded, choose, settings_of, with_checkpoint
from mixope.inspection.coverage import cover
from mixope.inspection.records import (
    Bar,
    Columns,
    Component,
    Contents,
    Coverage,
    Inspection,
    Lengths,
    LoggerRows,
    Remark,
    Space,
    StateColumn,
    Vectors,
    Words,
)
from mixope.inspection.states import categories, columns_of_counts, columns_of_rows, requests_of
from mixope.logs import (
    EPISODE_KEYS,
    Logs,
    LogSource,
    Past,
    Schema,
    about_look_alikes,
    explain_episodes,
    explain_rows,
    lone_rows,
    look_alikes,
    missing_states,
)
from mixope.policies import PolicySource
from mixope.requests.episodes import SURVEYED
from mixope.requests.grouping import Aggregate, Grouped, Grouping, GroupSums
from mixope.requests.request import Batch, Request
from mixope.requests.transitions import Transitions
from mixope.session.questions import as_logs, resolve_policy
from mixope.session.session import Counted, Session, count, first_count, first_scan, no_rows, with_past
from mixope.session.sizes import refuse_too_large
from mixope.session.survey import Dropped, Survey, survey_of_episodes, unsaid_ends

_SEVERITY = {"pass": "note", "warn": "warning", "fail": "warning"}
"""Rows that are dropped stop no inspection."""
BINS = 8
LONE = 0.2
"""The share of rows that the past may make the only ones of their state and action, before less of it is advised."""
NOT_COVERED = (
    "what vectors cover of a target cannot be counted state by state; an evaluation says how its actions are supported"
)


@offers_names
def inspect(
    logs: LogSource,
    target: PolicySource | None = None,
    engine: str | Engine | None = None,
    *,
    check: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    lags: int = 0,
    history: str | Sequence[str] | None = None,
) -> Inspection:
    """Look at ``logs``, and at what they cover of ``target`` if one is given.

    :param logs: whatever :func:`mixope.read` takes, or what it gave.
    :param target: whatever :func:`mixope.read_policy` takes; None looks at the logs alone.
    :param engine: where rows are added up, as for :func:`mixope.evaluate`.
    :param check: look for rows that cannot be used, episodes whose rows do not fit together, and episodes that are
        copies of others: three more scans.
    :param checkpoint: a folder that keeps the answers of finished scans, as for :func:`mixope.evaluate`; what the
        checks find is not kept.
    :param unit: the column that says to whom an episode belongs, as for :func:`mixope.evaluate`.
    :param lags: so many earlier steps stand beside the state, as for :func:`mixope.evaluate`; a remark says how many
        rows are then the only ones of their state and action. So it is with ``history``.
    :returns: columns, rows, episodes, states and actions, remarks, and what of the target was never logged.

    >>> found = mixope.inspect("logs/*.parquet", "target.csv")
    >>> found.contents.episodes, [logger.label for logger in found.contents.loggers]
    (40, ['logger-0', 'logger-1'])
    >>> found.error is None
    True
    """
    past = Past.of(lags, history)
    logs = as_logs(logs) if unit is None else as_logs(logs).with_unit(unit)
    if past is not None:
        logs = with_past(logs, past, choose(engine, logs))
    chosen = with_checkpoint(choose(engine, logs), checkpoint)
    policy = None if target is None else resolve_policy(target, bounded(logs, chosen))
    key = settings_of(chosen), check
    found, counted = logs.recall("inspection", key), None
    if found is None:
        found, counted = _inspect_logs(logs, chosen, check=check)
        if found.error is None and checkpoint is None:
            logs.keep("inspection", key, found)
    if policy is None:
        return found
    if not logs.schema.discrete:
        return replace(found, notes=(*found.notes, NOT_COVERED))
    if found.contents is None:
        return found
    return replace(found, coverage=cover((counted or first_count(logs, chosen)).transitions, policy))


def _inspect_logs(given: Logs, engine: Engine, *, check: bool) -> tuple[Inspection, Counted | None]:
    """Whatever the target; with the counts of states that can be counted."""
    logs = bounded(given, engine)
    countable = logs.schema.discrete
    refuse_too_large(logs, counted=countable)
    bad_rows = explain_rows(logs) if check else None
    counted, contents, dropped = None, None, None
    shown = Shown()
    if bad_rows is None:
        counted = first_count(given, engine) if countable else None
        logs, contents, shown, dropped = _look(logs if counted is None else counted.logs, engine)
        shown = shown if counted is None else Shown(None, tuple(columns_of_counts(logs.schema, counted.transitions)))
    findings = explain_episodes(logs) if check and bad_rows is None else ()
    remarks = [Remark(f.name, f.status, f.count, f.sentence) for f in findings]
    if contents is not None:
        remarks += _remarks_on_ends(logs, dropped, contents)
        remarks += _remarks_on_labels([logger.label for logger in contents.loggers])
        remarks += _remarks_on_past(logs, counted)
        fit = check and all(finding.error is None for finding in findings)
        remarks += _remarks_on_copies(counted or first_scan(given, engine, fits=True)) if fit else []
    elif bad_rows is not None:
        remarks.append(Remark("bad-rows", "error", bad_rows.total, str(bad_rows)))
        shown = Shown() if countable else _bad_columns(logs, engine)
    found = Inspection(
        name=logs.name,
        engine=engine.name,
        total_rows=logs.total_rows(),
        observation_kind=logs.schema.observation_kind,
        observation=logs.schema.observation,
        action_kind=logs.schema.action_kind,
        has_propensity=logs.schema.has_propensity,
        columns=_columns(logs),
        drop_reason=logs.drop_reason,
        contents=contents,
        space=_space(counted.transitions) if counted else None,
        coverage=None,
        notes=logs.notes,
        remarks=tuple(remarks),
        checked=check,
        error=bad_rows or next((f.error for f in findings if f.error is not None), None),
        vectors=shown.vectors,
        state=shown.state,
    )
    return found, counted


def coverage_of(logs: Any, target: Any, engine: str | Engine | None = None) -> Coverage | None:
    """What the logs cover of a target, for a report; None where states are vectors. Counted logs are not read again."""
    if isinstance(logs, Session):
        counted = logs.counted
    else:
        logs = as_logs(logs)
        counted = count(logs, choose(engine, logs)) if logs.schema.discrete else None
    return None if counted is None else cover(counted.transitions, resolve_policy(target, counted.logs))


def _columns(logs: Logs) -> tuple[Columns, ...]:
    """The mapping of every source, those with equal ones together."""
    groups: dict[tuple[tuple[str, Words], ...], list[str]] = {}
    alone = len(logs.sources) == 1
    for source in logs.recorded.sources:
        mapping = logs.schema.mapping if alone else Logs([source]).schema.mapping
        groups.setdefault(tuple(mapping.items()), []).append(source.name)
    return tuple(Columns(tuple(names), dict(mapping)) for mapping, names in groups.items())


def _space(transitions: Transitions) -> Space:
    return Space(transitions.n_states, tuple(transitions.actions.tolist()), transitions.n_pairs)


def _remarks_on_ends(logs: Logs, dropped: Dropped | None, inside: Contents) -> list[Remark]:
    """How episodes end, where nothing says it, and what the rows earned that cannot be used."""
    found = []
    if logs.asks_for_ends:
        error = unsaid_ends(logs, dropped)
        found.append(Remark("ends-unsaid", "warning", None, Advice(error.reason, " Say ", error.hint or "")))
    if dropped is not None:
        judged = judge_dropped(dropped, inside.lowest_reward, inside.highest_reward, counted=logs.schema.discrete)
        found.append(Remark("dropped-rows", _SEVERITY[judged.status], dropped.rows, judged.sentence))
    return found


def _remarks_on_labels(labels: Sequence[str]) -> list[Remark]:
    """Loggers that a reader takes for one."""
    groups = look_alikes(labels)
    return [Remark("look-alikes", "warning", sum(map(len, groups)), said) for said in about_look_alikes(groups)]


def _remarks_on_copies(session: Session) -> list[Remark]:
    """Episodes that are exact copies of others."""
    repeats = session.rounds().run(session.structure()).repeats
    found = None if repeats is None else episodes_are_new(repeats)
    if found is None or repeats is None or found.status == "pass":
        return []
    return [Remark("repeated-episodes", _SEVERITY[found.status], repeats.copies, found.sentence)]


def _remarks_on_past(logs: Logs, counted: Counted | None) -> list[Remark]:
    """How many rows are the only ones of their state and action, where the past stands beside the state."""
    if logs.past is None or counted is None:
        return []
    alone, plain, total = lone_rows(logs), lone_rows(logs.recorded), counted.transitions.n_rows
    said = f"with their past, {alone:,} of {total:,.0f} rows ({alone / total:.0%}) are the only ones of their state and"
    said += f" action; as logged, {plain:,} are ({plain / total:.0%})"
    if alone - plain <= LONE * total:
        return [Remark("past", "note", alone, f"{said}. The logs can carry it")]
    less = {0: "fewer running means", 1: "a running mean in place of the lag: "}
    advice = less.get(logs.past.lags, "fewer lags, or a running mean in place of them: ")
    mean = (Setting("history", "reward"),) if logs.past.lags else ()
    return [Remark("past", "warning", alone, Advice(f"{said}. Try {advice}", *mean))]


class Shown(NamedTuple):
    """What is shown of the columns of states and actions."""

    vectors: Vectors | None = None
    state: tuple[StateColumn, ...] = ()


def _look(logs: Logs, engine: Engine) -> tuple[Logs, Contents, Shown, Dropped | None]:
    """One scan: the totals of the episodes, and the columns of states; and what the dropped rows earned.

    The logs are those whose loggers all count their steps from the same number.
    """
    schema = logs.schema
    by_episode = Grouped(Grouping((*EPISODE_KEYS, *schema.unit), SURVEYED))
    totals, *found = engine.scan(logs, [by_episode, *([] if schema.discrete else _of_columns(schema))])
    if totals is None or totals.n_groups == 0:
        raise no_rows(logs)
    survey = survey_of_episodes(logs, engine.name, totals, suspicious=None)
    alike = logs.counted_alike(survey.late)
    if alike is not logs:
        return _look(alike, engine)
    return logs, _contents(survey, totals), _shown(schema, found) if found else Shown(), survey.dropped


def _contents(survey: Survey, totals: GroupSums) -> Contents:
    episodes = np.bincount(survey.episodes.logger)
    return Contents(
        rows=survey.n_rows,
        episodes=survey.n_episodes,
        known_starts=int((survey.episodes.starts > 0).sum()),
        terminated=int(survey.episodes.ended.sum()),
        truncated=int(totals.column("cut").sum()),
        lowest_reward=survey.lowest,
        highest_reward=survey.highest,
        logged_mean=survey.mean,
        loggers=tuple(
            LoggerRows(j.label, j.rows, int(n), j.mean) for j, n in zip(survey.loggers, episodes, strict=True)
        ),
        lengths=_lengths(survey.episodes.rows.astype(np.int64)),
        rows_without_propensity=int(totals.column("unrecorded").sum()),
        units=survey.episodes.clusters().n_units,
    )


def _lengths(rows: AnyArray) -> Lengths:
    low, high = int(rows.min()), int(rows.max())
    edges = np.unique(np.linspace(low, high + 1, min(BINS, high - low + 1) + 1).astype(np.int64))
    counts, _ = np.histogram(rows, bins=edges)
    bars = tuple(Bar(int(a), int(b) - 1, int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True))
    return Lengths(low, float(np.median(rows)), float(rows.mean()), high, bars)


def _of_columns(schema: Schema) -> list[Request]:
    """The columns of floats and the categories; where actions are ids, how many rows each of them has."""
    names = _float_columns(schema)
    listed = Grouping(schema.action, (Aggregate("rows", "count"),))
    return [Measure((*names[0], *names[1])), *requests_of(schema), *([] if names[1] else [Grouped(listed)])]


def _shown(schema: Schema, found: Sequence[Any]) -> Shown:
    """From the answers to these requests."""
    measured, rest = found[0], found[1:]
    groups, actions = rest[: len(categories(schema))], rest[len(categories(schema)) :]
    vectors = _vectors(schema, measured, *actions)
    mixed = schema.observation_kind == "mixed"
    return Shown(vectors, tuple(columns_of_rows(schema, groups, vectors.observations)) if mixed else ())


def _float_columns(schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of the states, and those of the actions."""
    return schema.numbers, schema.action if schema.action_kind == "continuous" else ()


def _vectors(schema: Schema, measured: MeasuredColumns, actions: GroupSums | None = None) -> Vectors:
    states, moves = _float_columns(schema)
    parts = tuple(_component(n, found) for n, found in zip((*states, *moves), measured.measured, strict=True))
    listed: list[tuple[int | str, int]] = []
    if actions is not None:
        rows = actions.column("rows").astype(np.int64).tolist()
        listed = sorted(zip(actions.values(schema.action[0]).tolist(), rows, strict=True))
    return Vectors(measured.rows, parts[: len(states)], parts[len(states) :], tuple(listed))


def _bad_columns(logs: Logs, engine: Engine) -> Shown:
    """Of rows that cannot be used, what can be shown; nothing where a column does not hold numbers at all.

    What is missing is counted in all rows: a scan leaves out many of them for just that.
    """
    try:
        shown = _shown(logs.schema, engine.scan(logs, _of_columns(logs.schema)))
    except DataError:
        return Shown()
    gone = missing_states(logs) if shown.state else {}
    return shown._replace(state=tuple(replace(column, missing=gone[column.name]) for column in shown.state))


@dataclass(frozen=True)
class Measure:
    """The request: mean, spread and extremes of some columns; what is missing is no number."""

    names: tuple[str, ...]

    whole_episodes = False
    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """These columns, and those that say where they are missing."""
        gaps = (f"{name} missing" for name in self.names)
        return (*self.names, *(name for name in gaps if name in schema.observation), "reward")

    def of(self, batch: Batch) -> MeasuredColumns:
        """Of some rows."""
        columns = (self._values(batch, name) for name in self.names)
        return MeasuredColumns(tuple(_measured(column) for column in columns), len(batch))

    def _values(self, batch: Batch, name: str) -> FloatArray:
        values, gap = np.asarray(batch.table.column(name).to_numpy(), dtype=np.float64), f"{name} missing"
        if gap not in batch.schema.observation:
            return values
        return np.where(np.asarray(batch.table.column(gap).to_numpy(), dtype=np.float64) == 1, np.nan, values)


@dataclass(frozen=True)
class MeasuredColumns:
    """One measurement per column, and the rows."""

    measured: tuple[_Measured, ...]
    rows: int

    def merge(self, other: MeasuredColumns) -> MeasuredColumns:
        """Of the rows of both."""
        both = zip(self.measured, other.measured, strict=True)
        return MeasuredColumns(tuple(_merged(a, b) for a, b in both), self.rows + other.rows)


class _Measured(NamedTuple):
    """Some values of a column: rows, the finite ones, their mean and squared deviations, extremes and rows on them."""

    rows: int
    finite: int
    mean: float
    squares: float
    lowest: float
    at_lowest: int
    highest: float
    at_highest: int


_NOTHING = _Measured(0, 0, 0.0, 0.0, math.inf, 0, -math.inf, 0)


def _measured(values: FloatArray) -> _Measured:
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return _NOTHING._replace(rows=len(values))
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that an evaluation refuses, but an inspection shows
        mean = float(finite.mean())
        squares = float(((finite - mean) ** 2).sum())
    ends = int((finite == low).sum()), int((finite == high).sum())
    return _Measured(len(values), len(finite), mean, squares, low, ends[0], high, ends[1])


def _merged(a: _Measured, b: _Measured) -> _Measured:
    """Both together; the squares of deviations are moved to the common mean."""
    finite = a.finite + b.finite
    if finite == 0:
        return a._replace(rows=a.rows + b.rows)
    step = b.mean - a.mean
    low, high = min(a.lowest, b.lowest), max(a.highest, b.highest)
    return _Measured(
        rows=a.rows + b.rows,
        finite=finite,
        mean=a.mean + step * b.finite / finite,
        squares=a.squares + b.squares + step * step * a.finite * b.finite / finite,
        lowest=low,
        at_lowest=sum(x.at_lowest for x in (a, b) if x.lowest == low),
        highest=high,
        at_highest=sum(x.at_highest for x in (a, b) if x.highest == high),
    )


def _component(name: str, found: _Measured) -> Component:
    known = found.finite > 0
    return Component(
        name=name,
        mean=found.mean if known else math.nan,
        sd=math.sqrt(found.squares / found.finite) if known else math.nan,
        lowest=found.lowest if known else math.nan,
        highest=found.highest if known else math.nan,
        at_lowest=found.at_lowest,
        at_highest=found.at_highest,
        not_finite=found.rows - found.finite,
    )
