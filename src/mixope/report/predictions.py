"""A backtest as a report shows it: every logger as the others' rows predict it, beside what it really earned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mixope.report.words import clean


@dataclass(frozen=True)
class Prediction:
    """One logger; ``supported`` is whether the others' rows can carry a prediction."""

    label: str
    predicted: float
    low: float | None
    high: float | None
    earned: float
    covered: bool
    earned_low: float | None = None
    earned_high: float | None = None
    z: float | None = None
    supported: bool = True
    verdict: str = ""
    uncovered_mass: float | None = None
    estimand: str = ""
    policy: str = ""
    note: str = ""

    @property
    def kind(self) -> str:
        """How it is drawn: agreement is good, disagreement bad, no prediction a reference."""
        return "reference" if not self.supported else "good" if self.covered else "bad"

    @property
    def agrees(self) -> str:
        """In a word."""
        return "no prediction" if not self.supported else "yes" if self.covered else "no"


@dataclass(frozen=True)
class Predictions:
    """All of them and what they say together."""

    predictions: tuple[Prediction, ...]
    sentence: str
    notes: tuple[str, ...] = ()


def predictions(given: Any) -> Predictions | None:
    """A backtest, or any rows with these fields; None where there are none."""
    rows: Iterable[Any] = () if given is None else getattr(given, "rows", given)
    made = tuple(_prediction(row) for row in rows)
    if not made:
        return None
    agree = sum(p.covered for p in made)
    plain = f"{agree} of {len(made)} loggers earned what was predicted from the others' rows, within the interval"
    notes = tuple(clean(note) for note in getattr(given, "notes", ()))
    return Predictions(made, clean(getattr(given, "summary", plain)), notes)


def _prediction(row: Any) -> Prediction:
    return Prediction(
        label=clean(row.label),
        predicted=float(row.predicted),
        low=_maybe(row.low),
        high=_maybe(row.high),
        earned=float(row.earned),
        covered=bool(row.covered),
        earned_low=_maybe(getattr(row, "earned_low", None)),
        earned_high=_maybe(getattr(row, "earned_high", None)),
        z=_maybe(getattr(row, "z", None)),
        supported=bool(getattr(row, "supported", True)),
        verdict=clean(getattr(row, "verdict", "")),
        uncovered_mass=_maybe(getattr(row, "uncovered_mass", None)),
        estimand=clean(getattr(row, "estimand", "")),
        policy=clean(getattr(row, "policy", "")),
        note=clean(getattr(row, "note", "")),
    )


def _maybe(value: float | None) -> float | None:
    return None if value is None else float(value)
