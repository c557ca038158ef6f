"""What is in these logs, before any estimate: which column is what, who wrote how much, what a target finds covered.

A few scans: the checks of :mod:`mixope.logs.validation` (``check=False`` leaves them out), one GROUP BY by episode,
and the transition counts that an evaluation makes too, or for vectors the moments of every column. Rows that cannot be
used stop it there: the inspection then says what is wrong and counts nothing but the bad values of vectors.
"""

from __future__ import annotations

from typing import Any

from mixope.engines import Engine, choose
from mixope.inspection.contents import sum_contents
from mixope.inspection.coverage import cover
from mixope.inspection.inspection import Inspection
from mixope.inspection.records import Columns, Coverage, Remark, Space, Words
from mixope.inspection.vectors import measure_vectors
from mixope.logs import Logs, explain_episodes, explain_rows, read
from mixope.statistics.transitions import Transitions
from mixope.tabular import count
from mixope.targets import resolve_policy

NOT_COVERED = (
    "what vectors cover of a target cannot be counted state by state; an evaluation says how its actions are supported"
)


def inspect(logs: Any, target: Any = None, engine: str | Engine | None = None, *, check: bool = True) -> Inspection:
    """Look at ``logs``, and at what they cover of ``target`` if one is given.

    ``check`` looks for rows that cannot be used and episodes whose rows do not fit together: two more scans.
    """
    logs = logs if isinstance(logs, Logs) else read(logs)
    chosen = choose(engine, logs)
    bad_rows = explain_rows(logs) if check else None
    policy = None if target is None else resolve_policy(target, logs)
    countable = logs.schema.discrete
    counted = count(logs, chosen) if bad_rows is None and countable else None
    findings = explain_episodes(logs) if check and bad_rows is None else ()
    remarks = [Remark(f.name, f.status, f.count, f.sentence) for f in findings]
    if bad_rows is not None:
        remarks.append(Remark("bad-rows", "error", bad_rows.total, str(bad_rows)))
    return Inspection(
        name=logs.name,
        engine=chosen.name,
        total_rows=logs.total_rows(),
        observation_kind=logs.schema.observation_kind,
        observation=logs.schema.observation,
        action_kind=logs.schema.action_kind,
        has_propensity=logs.schema.has_propensity,
        columns=_columns(logs),
        drop_reason=logs.drop_reason,
        contents=None if bad_rows else sum_contents(logs, chosen, counted),
        space=_space(counted.transitions) if counted else None,
        coverage=cover(counted.transitions, policy) if counted and policy else None,
        notes=logs.notes if countable or policy is None else (*logs.notes, NOT_COVERED),
        remarks=tuple(remarks),
        checked=check,
        error=bad_rows or next((f.error for f in findings if f.error is not None), None),
        vectors=None if countable else measure_vectors(logs, chosen, sound=bad_rows is None),
    )


def coverage_of(logs: Any, target: Any, engine: str | Engine | None = None) -> Coverage | None:
    """What the logs cover of a target, for a report; None where states are vectors."""
    logs = logs if isinstance(logs, Logs) else read(logs)
    if not logs.schema.discrete:
        return None
    return cover(count(logs, choose(engine, logs)).transitions, resolve_policy(target, logs))


def _columns(logs: Logs) -> tuple[Columns, ...]:
    """The mapping of every source, those with equal ones together."""
    groups: dict[tuple[tuple[str, Words], ...], list[str]] = {}
    for source in logs.sources:
        mapping = logs.schema.mapping if len(logs.sources) == 1 else Logs([source]).schema.mapping
        groups.setdefault(tuple(mapping.items()), []).append(source.name)
    return tuple(Columns(tuple(names), dict(mapping)) for mapping, names in groups.items())


def _space(transitions: Transitions) -> Space:
    return Space(transitions.n_states, tuple(transitions.actions.tolist()), transitions.n_pairs)
