"""The table of an experiment, brought into order once: one row per unit and period, with what came before and after.

    unit  step  day  action  assigned  bucket   state …   next …   before …   metric …

``step`` counts the periods since the unit's first row. A row has a next state only if the unit has a row in the very
next period: what happens over a gap is not one step. Units fall into buckets by a hash of their name, whatever the
order of the rows; buckets are what uncertainty is computed from (:mod:`mixope.experiments.counts`).

States are classes. A number with many values is cut at its quantiles, and a note says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixope.answers.estimate import Provenance
from mixope.base.errors import DataError
from mixope.experiments.absences import away, watch_of, with_units
from mixope.experiments.classes import coded_state, season_state
from mixope.experiments.design import ExperimentDesign
from mixope.experiments.ordering import NONE, earlier, names_of, ordered, written
from mixope.experiments.table import arms_of, raw_view, refuse_gaps, refuse_missing, with_states
from mixope.logs import Logs
from mixope.logs.database import connect, resident_bytes
from mixope.logs.readers import open_sources, read_found
from mixope.logs.sources import quote, reading
from mixope.logs.sources.copies import refuse_copies
from mixope.logs.sources.found import Finds
from mixope.version import __version__

ROOM = 400_000_000
"""Bytes that DuckDB may take besides what is held already; beyond them, the disk is used."""


@dataclass(frozen=True)
class Panel:
    """The rows in order, written once, and what was assumed on the way. ``states`` are the columns of the state."""

    design: ExperimentDesign
    name: str
    steps: Finds
    """Rows with a next state."""
    last: Finds | None
    """Rows without one, if there are any."""
    states: tuple[str, ...]
    classes: Mapping[str, tuple[str, ...]]
    """What the numbers of each column mean."""
    notes: tuple[str, ...]
    inputs: tuple[Mapping[str, Any], ...] = ()
    """The files that were read: path, rows, sha256."""

    def provenance(self, seed: int) -> Provenance:
        """Where the answer comes from; the arms are policies that need no fingerprint."""
        said = repr(([record["sha256"] for record in self.inputs], self.design))
        digest = hashlib.sha256(said.encode()).hexdigest()[:16]
        return Provenance(__version__, seed, "embedded", digest, "arms", self.inputs)

    @contextmanager
    def open(self) -> Iterator[tuple[Any, str]]:
        """A connection, and all rows as a relation of it."""
        found = [source for part in (self.steps, self.last) if part is not None for source in open_sources(part)]
        with connect(memory()) as connection, reading(self.name):
            pieces = (piece.relation(connection) for source in found for piece in source.pieces)
            rows = " UNION ALL BY NAME ".join(f"SELECT * FROM {piece}" for piece in pieces)
            connection.execute(f"CREATE TEMP VIEW panel AS {rows}")
            yield connection, "panel"

    @property
    def base(self) -> tuple[str, ...]:
        """The columns of the state without those of earlier periods."""
        return self.states[: len(self.states) // (self.design.lags + 1)]

    @property
    def oldest(self) -> tuple[str, ...]:
        """Those of the earliest period in the state."""
        return tuple(earlier(name, self.design.lags) for name in self.base)

    def words(self, codes: Sequence[int]) -> tuple[str, ...]:
        """What the numbers of a state mean."""
        pairs = zip(self.states, codes, strict=True)
        return tuple("none" if code == NONE else self.classes[name][code] for name, code in pairs)

    @cached_property
    def facts(self) -> Facts:
        """Counted once."""
        with self.open() as (connection, rows):
            longest_away = len(self.classes.get(away(self.design), ())) - 1
            return _facts(connection, rows, self.design, longest_away)

    def part(self, column: str, code: int) -> Panel:
        """The units that entered with one class of a column of the state."""
        entered = f"SELECT unit FROM panel WHERE step = 0 AND {quote(f'state {column}')} = {code}"
        with self.open() as (connection, rows):
            query = f"SELECT *, coalesce(follows, false) AS usable FROM {rows} WHERE unit IN ({entered})"
            called = f"{self.name}, {column} {self.classes[column][code]}"
            steps, last = written(connection, [query], called, {})
        return replace(self, name=called, steps=steps, last=last)

    def logs(self, metric: str) -> Logs:
        """As logs: an arm is an action, a metric the reward, and who was assigned to an arm wrote its rows."""
        columns: dict[str, Any] = {
            "episode_id": "unit",
            "step": "step",
            "action": "action",
            "reward": f"metric {metric}",
            "observation": [f"state {name}" for name in self.states],
            "next_observation": [f"next {name}" for name in self.states],
        }
        if self.facts.fixed:
            columns["policy_id"] = "assigned"
        return read_found(self.steps, columns=columns, ends="truncated")


@dataclass(frozen=True)
class Facts:
    """How large the experiment is. ``fixed``: no unit changed its arm. ``gaps``: rows with a period missing after.

    ``left``: units of each arm without a row at the end of the time for which they were watched; ``added``: rows that
    the table did not have; ``long_away``: of each arm the rows of units that have been away for long, and how often one
    came back from there (:mod:`mixope.experiments.absences`).
    """

    rows: int
    units: int
    longest: int
    arms: tuple[tuple[str, int, int], ...]
    """Each arm with its units and its rows."""
    fixed: bool
    gaps: int
    left: Mapping[str, int]
    added: int
    long_away: Mapping[str, tuple[int, int]]

    @property
    def names(self) -> tuple[str, ...]:
        """The arms, sorted."""
        return tuple(arm for arm, _, _ in self.arms)


def memory() -> str:
    """The limit of memory for this process: what it holds, and room."""
    return f"{(resident_bytes() + ROOM) // 1_000_000}MB"


def make_panel(data: Any, design: ExperimentDesign, **how: str | None) -> Panel:
    """Read the table (``how``: its format and encoding), check it, and bring it into order."""
    sources = open_sources(_as_table(data, design), **how)
    refuse_copies(sources, lambda source: False)
    name = sources[0].name if len(sources) == 1 else f"{sources[0].name} and {len(sources) - 1} more"
    design, notes = with_states(sources, design)
    refuse_missing(sources, design.columns)
    with connect(memory()) as connection, reading(name):
        connection.execute("SET preserve_insertion_order = false")
        raw = raw_view(connection, sources, design)
        refuse_gaps(connection, raw, design, name)
        arms = arms_of(connection, raw, design, name)
        coded = {state: coded_state(connection, raw, state, design, name) for state in design.states}
        notes += [found.note for found in coded.values() if found.note]
        if design.season is not None:
            coded["season"] = season_state(design.season)
        watch = None
        if design.absent == "zero":
            watch = watch_of(connection, raw, design, name)
            coded = watch.states(coded, design)
        rows = ordered(connection, raw, coded, design, watch)
        steps, last = written(connection, rows, name, {"arms": list(arms)})
    classes = {earlier(state, lag): found.classes for state, found in coded.items() for lag in range(design.lags + 1)}
    inputs = tuple(record for source in sources for record in source.inputs())
    panel = Panel(design, name, steps, last, names_of(coded, design.lags), classes, tuple(notes), inputs)
    _refuse_doubles(panel)
    return panel


def _as_table(data: Any, design: ExperimentDesign) -> Any:
    """A dict of columns as a table; anything else as it is."""
    if not isinstance(data, Mapping) or design.unit not in data:
        return data
    import pyarrow as pa

    columns = {str(name): np.asarray(values) for name, values in data.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise DataError("The columns have different lengths", expected="one entry per unit and period", got=shown)
    return pa.table(columns)


def _refuse_doubles(panel: Panel) -> None:
    design = panel.design
    with panel.open() as (connection, rows):
        count, first = connection.execute(
            f"SELECT count(*) FILTER (doubled), min(CAST(unit AS VARCHAR)) FILTER (doubled) FROM {rows}"
        ).fetchall()[0]
    if count:
        raise DataError(
            f"{count:,} rows have the unit and the {design.period} of another row",
            where=panel.name,
            expected=f"one row per {design.unit} and {design.time}",
            got=f"{design.unit} {first} has several rows in one {design.period}",
            hint=f"add up the metrics of each {design.unit} and {design.period} first",
        )


def _facts(connection: Any, rows: str, design: ExperimentDesign, longest_away: int) -> Facts:
    now, later = (quote(f"{when} {away(design)}") if design.absent == "zero" else "0" for when in ("state", "next"))
    total, gaps, filled = connection.execute(
        f"SELECT count(*), count(*) FILTER (NOT follows), count(*) FILTER ({now} > 0) FROM {rows}"
    ).fetchall()[0]
    lost = f"{now} > 0 AND {now} = {longest_away}"
    arms = connection.execute(
        f"""SELECT assigned, count(DISTINCT unit), count(*), count(*) FILTER ({lost}),
        count(*) FILTER ({lost} AND {later} = 0) FROM {rows} GROUP BY 1 ORDER BY 1"""
    ).fetchall()
    units = connection.execute(
        f"""{with_units(rows)} SELECT arm, count(*), bool_and(one_arm), any_value(longest),
        count(*) FILTER (last < until) FROM units GROUP BY arm"""
    ).fetchall()
    return Facts(
        rows=total,
        units=sum(n for _, n, *_ in units),
        longest=units[0][3],
        arms=tuple((arm, n, n_rows) for arm, n, n_rows, *_ in arms),
        fixed=all(one for _, _, one, _, _ in units),
        gaps=gaps,
        left={arm: gone for arm, _, _, _, gone in units if gone},
        added=filled,
        long_away={arm: (away_rows, came) for arm, _, _, away_rows, came in arms},
    )
