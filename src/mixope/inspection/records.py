"""What an inspection finds, as records: columns, remarks, rows and episodes, states and actions, gaps, all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mixope.base.errors import DataError
from mixope.base.rendering import Record, Rows
from mixope.inspection.grids import Grid

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
    units: int | None = None
    """Users, patients or machines, where they are named and some have several episodes."""


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
class StateColumn:
    """One column of a state: its role; the number of values and the most frequent ones, or the range; rows without it.

    ``values`` is None for a number, ``lowest`` and ``highest`` are None for anything else.
    """

    name: str
    role: str
    values: int | None
    most: tuple[tuple[str, int], ...]
    lowest: float | None
    highest: float | None
    missing: int


@dataclass(frozen=True)
class Gap:
    """An action of the target that was never logged in a state: its probability, and its share of all steps."""

    state: tuple[int | str, ...]
    action: int | str
    probability: float
    state_rows: int
    mass: float


@dataclass(frozen=True)
class LoggerCoverage:
    """The share of the target's actions, at the logged states, that a logger has taken there, and that only it has."""

    label: str
    covered: float
    alone: float


@dataclass(frozen=True)
class Coverage:
    """What of the target the logs have seen, at the states as they were logged.

    ``covered_rows`` is the share of rows in states where every action of the target was logged;
    ``uncovered_mass`` is Σ_s n(s)/N Σ_{a unseen at s} π(a|s). ``factors`` are the names of what a state consists of,
    where it is no id; ``grid`` is a map of the states, where they lie on one.
    """

    covered_rows: float
    uncovered_mass: float
    gaps: int
    worst: tuple[Gap, ...]
    loggers: tuple[LoggerCoverage, ...] = ()
    factors: tuple[str, ...] = ()
    grid: Grid | None = None


@dataclass(frozen=True)
class Inspection(Record):
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
    state: tuple[StateColumn, ...] = ()
    """The columns of a state, where it has several of ids or categories."""

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
        return self._written(record)

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; of an error that made the rows unusable, its sentence is among the remarks."""
        said = [r for r in _objects(written.get("remarks")) if r.get("status") == "error"]
        words = str(said[0].get("sentence")) if said else "these logs cannot be used; the error was not written"
        error = None if written.get("usable", True) else DataError(words)
        return {**written, "drop_reason": written.get("drop_reason") or "", "error": error}

    def tables(self) -> dict[str, Rows]:
        """One row per logger, per notion and the column it came from, per remark, and per gap of the target."""
        return {
            "loggers": [asdict(found) for found in self.contents.loggers] if self.contents else [],
            "columns": [
                {"sources": ", ".join(group.sources), "notion": notion, "column": _joined(column)}
                for group in self.columns
                for notion, column in group.mapping.items()
            ],
            "remarks": [asdict(found) for found in self.remarks],
            "gaps": [_gap(found) for found in self.coverage.worst] if self.coverage else [],
        }


def _objects(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _joined(column: Words) -> str:
    return column if isinstance(column, str) else ", ".join(column)


def _gap(found: Gap) -> dict[str, Any]:
    """A state may have words and numbers in it, which a column of a table cannot."""
    return {**asdict(found), "state": ", ".join(map(str, found.state)), "action": str(found.action)}
