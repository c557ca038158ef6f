"""What of the target the logs have seen, at the states as they were logged: by logger, and the heaviest gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mixope.report.words import clean


@dataclass(frozen=True)
class Gap:
    """An action of the target that was never logged in a state."""

    state: str
    action: str
    probability: float
    state_rows: int
    mass: float


@dataclass(frozen=True)
class LoggerCoverage:
    """How much of the target's actions one logger has taken itself, and how much only it has."""

    label: str
    covered: float
    alone: float


@dataclass(frozen=True)
class Coverage:
    """Everything that is known of it."""

    covered_rows: float
    uncovered_mass: float
    gaps: int
    worst: tuple[Gap, ...]
    loggers: tuple[LoggerCoverage, ...] = ()


def coverage(given: Any) -> Coverage | None:
    """What an inspection found, made showable."""
    if given is None:
        return None
    worst = tuple(
        Gap(clean(", ".join(map(str, gap.state))), clean(gap.action), gap.probability, gap.state_rows, gap.mass)
        for gap in given.worst
    )
    loggers = tuple(LoggerCoverage(clean(c.label), c.covered, c.alone) for c in getattr(given, "loggers", ()))
    return Coverage(given.covered_rows, given.uncovered_mass, given.gaps, worst, loggers)
