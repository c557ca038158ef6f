"""What is in these logs, before any estimate: which column is what, who wrote how much, what a target finds covered.

A few scans: the checks of :mod:`mixope.logs.validation` (``check=False`` leaves them out), one GROUP BY by episode,
and the transition counts that an evaluation makes too, or for vectors the moments of every column. Rows that cannot be
used stop it there: the inspection then says what is wrong and counts nothing but the bad values of vectors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.engines import Engine, choose
from mixope.engines.protocol import in_order
from mixope.errors import DataError, MixopeError
from mixope.logs import EPISODE_KEYS, Logs, explain_episodes, explain_rows, read
from mixope.policies import DiscretePolicy, Policy
from mixope.problem import state_probabilities
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums
from mixope.statistics.transitions import Transitions
from mixope.tabular import Counted, count
from mixope.targets import resolve_policy

SHOWN_GAPS = 10
BINS = 8
NOT_COVERED = (
    "what vectors cover of a target cannot be counted state by state; an evaluation says how its actions are supported"
)
_BY_EPISODE = Grouping(
    EPISODE_KEYS,
    (
        Aggregate("rows", "count"),
        Aggregate("reward", "sum", ("reward",)),
        Aggregate("lowest", "min", ("reward",)),
        Aggregate("highest", "max", ("reward",)),
        Aggregate("starts", "sum", ("start",)),
        Aggregate("terminated", "max", ("terminated",)),
        Aggregate("truncated", "max", ("truncated",)),
    ),
)

Words = str | tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Which column of the files each notion came from, or how it was derived; the same for all ``sources``."""

    sources: tuple[str, ...]
    mapping: Mapping[str, Words]


@dataclass(frozen=True)
class Remark:
    """Something found in the rows: ``status`` is error, warning or note."""

    name: str
    status: str
    count: int | None
    sentence: str


@dataclass(frozen=True)
class LoggerRows:
    """What one logger wrote and earned."""

    label: str
    rows: int
    episodes: int
    logged_mean: float


@dataclass(frozen=True)
class Bar:
    """How many episodes have a length from ``low`` to ``high``."""

    low: int
    high: int
    episodes: int


@dataclass(frozen=True)
class Lengths:
    """How long the episodes are, in rows that can be used."""

    shortest: int
    median: float
    mean: float
    longest: int
    histogram: tuple[Bar, ...]


@dataclass(frozen=True)
class Contents:
    """What the usable rows hold."""

    rows: int
    episodes: int
    known_starts: int
    terminated: int
    truncated: int
    lowest_reward: float
    highest_reward: float
    logged_mean: float
    loggers: tuple[LoggerRows, ...]
    lengths: Lengths
    rows_without_propensity: int


@dataclass(frozen=True)
class Space:
    """The states and actions that were seen; only for logs whose states and actions can be counted."""

    states: int
    actions: tuple[int | str, ...]
    pairs: int


@dataclass(frozen=True)
class Component:
    """One column of floats, its numbers over the finite values; ``at_lowest`` and ``at_highest`` count the rows there.

    Many rows exactly on an extreme are an atom: actions that were clipped to a box before they were recorded.
    """

    name: str
    mean: float
    sd: float
    lowest: float
    highest: float
    at_lowest: int
    at_highest: int
    not_finite: int


@dataclass(frozen=True)
class Vectors:
    """The columns of vector states and of continuous actions; ``action_rows`` counts the rows of discrete ones."""

    rows: int
    observations: tuple[Component, ...]
    actions: tuple[Component, ...]
    action_rows: tuple[tuple[int | str, int], ...]


@dataclass(frozen=True)
class Gap:
    """An action of the target that was never logged in a state: its probability, and its share of all steps."""

    state: tuple[int | str, ...]
    action: int | str
    probability: float
    state_rows: int
    mass: float


@dataclass(frozen=True)
class Coverage:
    """What of the target the logs have seen, at the states as they were logged.

    ``covered_rows`` is the share of rows in states where every action of the target was logged;
    ``uncovered_mass`` is Σ_s n(s)/N Σ_{a unseen at s} π(a|s).
    """

    covered_rows: float
    uncovered_mass: float
    gaps: int
    worst: tuple[Gap, ...]


@dataclass(frozen=True)
class Inspection:
    """What logs hold; ``contents`` is None where the rows cannot be used (then ``error`` says why)."""

    name: str
    engine: str
    total_rows: int
    observation_kind: str
    observation: tuple[str, ...]
    action_kind: str
    has_propensity: bool
    columns: tuple[Columns, ...]
    drop_reason: str
    contents: Contents | None
    space: Space | None
    coverage: Coverage | None
    notes: tuple[str, ...]
    remarks: tuple[Remark, ...]
    checked: bool
    error: DataError | None = None
    vectors: Vectors | None = None

    @property
    def dropped(self) -> int:
        """Rows of the inputs that could not be used."""
        return self.total_rows - self.contents.rows if self.contents else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record = {key: value for key, value in asdict(self).items() if key != "error"}
        record["dropped_rows"] = self.dropped
        record["drop_reason"] = self.drop_reason if self.dropped else None
        record["usable"] = self.error is None
        plain: dict[str, Any] = _plain(record)
        return plain

    def to_json(self, indent: int | None = 2) -> str:
        """The record as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


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
        contents=None if bad_rows else _contents(logs, chosen, counted),
        space=_space(counted.transitions) if counted else None,
        coverage=cover(counted.transitions, policy) if counted and policy else None,
        notes=logs.notes if countable or policy is None else (*logs.notes, NOT_COVERED),
        remarks=tuple(remarks),
        checked=check,
        error=bad_rows or next((f.error for f in findings if f.error is not None), None),
        vectors=None if countable else _vectors(logs, chosen, sound=bad_rows is None),
    )


def coverage_of(logs: Any, target: Any, engine: str | Engine | None = None) -> Coverage | None:
    """What the logs cover of a target, for a report; None where states are vectors."""
    logs = logs if isinstance(logs, Logs) else read(logs)
    if not logs.schema.discrete:
        return None
    return cover(count(logs, choose(engine, logs)).transitions, resolve_policy(target, logs))


def cover(transitions: Transitions, policy: Policy, shown: int = SHOWN_GAPS) -> Coverage:
    """The target's actions against the logged ones, weighted by the rows of each state."""
    visited = np.flatnonzero(_state_rows(transitions) > 0)
    share = _state_rows(transitions)[visited] / transitions.n_rows
    actions, probabilities = _laws(policy, transitions, visited)
    unseen = (probabilities > 0) & ~_logged(transitions, actions)[visited]
    mass = np.where(unseen, share[:, None] * probabilities, 0.0)
    order = np.argsort(-mass, axis=None, kind="stable")[: min(shown, int(unseen.sum()))]
    worst = [
        Gap(
            state=tuple(np.atleast_1d(transitions.observations[visited[s]]).tolist()),
            action=actions[a : a + 1].tolist()[0],
            probability=float(probabilities[s, a]),
            state_rows=int(_state_rows(transitions)[visited[s]]),
            mass=float(mass[s, a]),
        )
        for s, a in zip(*np.unravel_index(order, mass.shape), strict=True)
    ]
    return Coverage(float(share[~unseen.any(axis=1)].sum()), float(mass.sum()), int(unseen.sum()), tuple(worst))


def _laws(policy: Policy, transitions: Transitions, states: AnyArray) -> tuple[AnyArray, FloatArray]:
    """The actions to look for, and π of them in some states."""
    if isinstance(policy, DiscretePolicy):
        return policy.actions, policy.probs(transitions.observations[states])
    return transitions.actions, state_probabilities(policy, transitions)[states]


def _logged(transitions: Transitions, actions: AnyArray) -> AnyArray:
    """Whether each of ``actions`` was logged in each state."""
    position = {action: column for column, action in enumerate(actions.tolist())}
    column = np.array([position.get(action, -1) for action in transitions.actions.tolist()])[transitions.pair_action]
    seen = np.zeros((transitions.n_states, len(actions)), dtype=bool)
    seen[transitions.pair_state[column >= 0], column[column >= 0]] = True
    return seen


def _state_rows(transitions: Transitions) -> FloatArray:
    rows = np.bincount(transitions.state, weights=transitions.rows, minlength=transitions.n_states)
    return np.asarray(rows, dtype=np.float64)


def _columns(logs: Logs) -> tuple[Columns, ...]:
    """The mapping of every source, those with equal ones together."""
    groups: dict[tuple[tuple[str, Words], ...], list[str]] = {}
    for source in logs.sources:
        mapping = logs.schema.mapping if len(logs.sources) == 1 else Logs([source]).schema.mapping
        groups.setdefault(tuple(mapping.items()), []).append(source.name)
    return tuple(Columns(tuple(names), dict(mapping)) for mapping, names in groups.items())


def _contents(logs: Logs, engine: Engine, counted: Counted | None) -> Contents:
    sums = engine.group_sums(logs, _BY_EPISODE)
    rows = sums.column("rows")
    if len(rows) == 0:
        raise DataError("no row can be used", where=logs.name, hint=f"all rows were dropped: {logs.drop_reason}")
    return Contents(
        rows=int(rows.sum()),
        episodes=len(rows),
        known_starts=int((sums.column("starts") > 0).sum()),
        terminated=int(sums.column("terminated").sum()),
        truncated=int(sums.column("truncated").sum()),
        lowest_reward=float(sums.column("lowest").min()),
        highest_reward=float(sums.column("highest").max()),
        logged_mean=float(sums.column("reward").sum() / rows.sum()),
        loggers=_loggers(sums),
        lengths=_lengths(rows.astype(np.int64)),
        rows_without_propensity=_without_propensity(logs, engine, counted, int(rows.sum())),
    )


def _loggers(sums: GroupSums) -> tuple[LoggerRows, ...]:
    assert sums.table is not None
    labels, logger = np.unique(np.asarray(sums.table.column("policy_id").to_numpy()).astype(str), return_inverse=True)
    rows, reward = (np.bincount(logger, weights=sums.column(name)) for name in ("rows", "reward"))
    episodes = np.bincount(logger)
    return tuple(
        LoggerRows(str(label), int(rows[j]), int(episodes[j]), float(reward[j] / rows[j]))
        for j, label in enumerate(labels)
    )


def _lengths(rows: AnyArray) -> Lengths:
    low, high = int(rows.min()), int(rows.max())
    edges = np.unique(np.linspace(low, high + 1, min(BINS, high - low + 1) + 1).astype(np.int64))
    counts, _ = np.histogram(rows, bins=edges)
    bars = tuple(Bar(int(a), int(b) - 1, int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True))
    return Lengths(low, float(np.median(rows)), float(rows.mean()), high, bars)


def _without_propensity(logs: Logs, engine: Engine, counted: Counted | None, rows: int) -> int:
    """Rows without one. Counts that have an inverse in every group need no further look."""
    if not logs.schema.has_propensity:
        return rows
    if (
        counted is not None
        and counted.transitions.inverse is not None
        and np.isfinite(counted.transitions.inverse).all()
    ):
        return 0

    def missing(fragment: Any) -> int:
        return int(np.isnan(np.asarray(fragment.column("propensity").to_numpy(), dtype=np.float64)).sum())

    return sum(n for _, n in engine.map_fragments(logs, missing, ("propensity",)))


def _vectors(logs: Logs, engine: Engine, *, sound: bool) -> Vectors | None:
    """One pass over the columns of floats; where rows are bad it shows what can be shown, or nothing."""
    states = logs.schema.observation if logs.schema.observation_kind == "vector" else ()
    moves = logs.schema.action if logs.schema.action_kind == "continuous" else ()
    names = (*states, *moves)

    def measure(fragment: Any) -> list[_Measured]:
        return [_measured(np.asarray(fragment.column(name).to_numpy(), dtype=np.float64)) for name in names]

    try:
        total = [_NOTHING] * len(names)
        for part in in_order(engine.map_fragments(logs, measure, names)):
            total = [_merged(a, b) for a, b in zip(total, part, strict=True)]
        listed = () if moves else _action_rows(logs, engine)
    except MixopeError:
        if sound:
            raise
        return None
    found = tuple(_component(name, measured) for name, measured in zip(names, total, strict=True))
    return Vectors(total[0].rows, found[: len(states)], found[len(states) :], listed)


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
    mean, low, high = float(finite.mean()), float(finite.min()), float(finite.max())
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


def _action_rows(logs: Logs, engine: Engine) -> tuple[tuple[int | str, int], ...]:
    sums = engine.group_sums(logs, Grouping(logs.schema.action, (Aggregate("rows", "count"),)))
    assert sums.table is not None
    actions = np.asarray(sums.table.column(logs.schema.action[0]).to_numpy())
    rows = sums.column("rows").astype(np.int64)
    order = np.argsort(actions, kind="stable")
    return tuple(zip(actions[order].tolist(), rows[order].tolist(), strict=True))


def _space(transitions: Transitions) -> Space:
    return Space(transitions.n_states, tuple(transitions.actions.tolist()), transitions.n_pairs)


def _lines(found: Inspection) -> list[str]:
    """The inspection as plain text, one fact a line."""
    lines = [f"{found.name}: {found.total_rows:,} rows"]
    for group in found.columns:
        lines += [f"  {notion} <- {words(column)}" for notion, column in group.mapping.items()]
    if found.dropped:
        lines.append(f"  {found.dropped:,} rows dropped: {found.drop_reason}")
    if found.contents:
        inside, lengths = found.contents, found.contents.lengths
        lines.append(
            f"  {inside.episodes:,} episodes of {lengths.shortest} to {lengths.longest} rows "
            f"(median {lengths.median:g}), {inside.terminated:,} terminated, {inside.truncated:,} truncated"
        )
        lines += [
            f"  logger {j.label}: {j.rows:,} rows, {j.episodes:,} episodes, {j.logged_mean:.6g} a step"
            for j in inside.loggers
        ]
    if found.space:
        lines.append(
            f"  {found.space.states:,} states, {len(found.space.actions):,} actions, {found.space.pairs:,} pairs"
        )
    if found.vectors:
        lines += [f"  {component_words(c)}" for c in (*found.vectors.observations, *found.vectors.actions)]
        lines += [f"  action {action}: {rows:,} rows" for action, rows in found.vectors.action_rows]
    if found.coverage:
        lines.append(
            f"  target: {found.coverage.covered_rows:.2%} of the rows in states where all its actions were logged,"
            f" {found.coverage.uncovered_mass:.2%} of its mass uncovered"
        )
    lines += [f"  note {note}" for note in found.notes]
    return lines + [f"  {remark.status} {remark.sentence}" for remark in found.remarks]


def component_words(found: Component) -> str:
    """A column of floats in one line."""
    bad = f", {found.not_finite:,} not finite" if found.not_finite else ""
    span = f"{found.lowest:.6g} to {found.highest:.6g}"
    return f"{found.name}: mean {found.mean:.6g}, sd {found.sd:.6g}, {span}{bad}"


def words(column: Words) -> str:
    """A column, or the columns of the factors."""
    return column if isinstance(column, str) else ", ".join(column)


def _plain(value: Any) -> Any:
    """Finite numbers to twelve digits, so that engines that add in another order print the same."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    return value
