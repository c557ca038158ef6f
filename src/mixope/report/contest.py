"""Which target is better, as a report shows it: differences with intervals that hold together, and the ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixope.report.words import clean, level_words

_WORSE = ("good", "reference", "caution", "bad")


@dataclass(frozen=True)
class Pair:
    """One less another; ``narrower`` is None where the two are the same on every episode."""

    first: str
    second: str
    value: float
    low: float
    high: float
    narrower: float | None
    chance: str
    conclusion: str
    kind: str

    @property
    def label(self) -> str:
        """A − B."""
        return f"{self.first} − {self.second}"


@dataclass(frozen=True)
class Place:
    """One target in the ranking."""

    target: str
    value: float
    chance_of_best: str
    places: str


@dataclass(frozen=True)
class Contest:
    """All pairs by one estimator, all targets against the loggers, and the ranking, best first."""

    estimator: str
    level: str
    sentence: str
    pairs: tuple[Pair, ...]
    loggers: tuple[Pair, ...]
    ranking: tuple[Place, ...]
    notes: tuple[str, ...]


def contest(given: Any, kinds: Mapping[str, str]) -> Contest:
    """One record of differences; ``kinds`` are the verdicts of the targets, and a pair has the worse of two."""
    return Contest(
        estimator=clean(given.estimator),
        level=level_words(given.level),
        sentence=clean(given.summary),
        pairs=_pairs(given.pairs, kinds),
        loggers=_pairs(given.loggers, kinds),
        ranking=tuple(Place(clean(r.target), r.value, _chance(r.probability_best), r.span) for r in given.ranking),
        notes=tuple(clean(alert) for alert in given.alerts),
    )


def _pairs(given: Sequence[Any], kinds: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            first=clean(p.first),
            second=clean(p.second),
            value=p.value,
            low=p.joint.low,
            high=p.joint.high,
            narrower=p.narrower if math.isfinite(p.narrower) else None,
            chance=_chance(p.probability_first_is_better),
            conclusion=clean(p.conclusion),
            kind=max((kinds.get(name, "good") for name in (p.first, p.second)), key=_WORSE.index),
        )
        for p in given
    )


def _chance(value: float) -> str:
    """Three digits, never rounded to certainty."""
    return "< 0.001" if value < 0.001 else "> 0.999" if value > 0.999 else f"{value:.3f}"
