"""The records of planning: a draft while the sources are compared, a plan when all is settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mixope.logs.layout import Part
from mixope.logs.mapping import Assignment
from mixope.logs.schema import ActionKind, ObservationKind, Type
from mixope.logs.sources import Source


@dataclass(frozen=True)
class Column:
    """One canonical column of one source: a raw column (None: absent), perhaps one element of its lists, and a type."""

    name: str
    type: Type
    raw: str | None
    item: int | None = None


@dataclass(frozen=True)
class Plan:
    """How one source becomes canonical rows. ``derived`` are the notions computed from other rows."""

    source: Source
    index: int
    columns: Mapping[str, Column]
    observation: tuple[str, ...]
    next_observation: tuple[str, ...]
    action: tuple[str, ...]
    derived: frozenset[str]
    log_propensity: bool


@dataclass
class Draft:
    """One source while the plan is being made."""

    source: Source
    found: Mapping[str, Assignment]
    observation: list[Part] = field(default_factory=list)
    action: list[Part] = field(default_factory=list)
    observation_kind: ObservationKind = "id"
    action_kind: ActionKind = "discrete"
