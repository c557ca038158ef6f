"""What is said about one target: the estimate that answers, in words, and everything it rests on.

The first estimate asked for answers, whatever its verdict: a report does not choose among estimates after seeing them.
Those whose checks came out better are named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixope.diagnostics import Verdict
from mixope.report.text import number
from mixope.report.words import clean, interval_words, meaning, value_words, why

if TYPE_CHECKING:
    from mixope.estimate import Estimate
    from mixope.inspection.records import Coverage

KIND = {
    Verdict.TRUSTWORTHY: "good",
    Verdict.CAUTION: "caution",
    Verdict.UNSUPPORTED: "bad",
    Verdict.REFERENCE: "reference",
}
SYMBOL = {"good": "✓", "caution": "!", "bad": "✕", "reference": "○"}
RANK = {"good": 0, "caution": 1, "bad": 2, "reference": 3}
STATUS = {"pass": "good", "warn": "caution", "fail": "bad"}
RESIDUALS = ("solver", "stationar", "residual", "drift", "over episodes", "over steps", "mean weight", "leaked")
"""Words in the names of the checks that ask whether the world is steady and the weights reproduce the target's flow."""


@dataclass(frozen=True)
class Row:
    """One estimate on one line."""

    target: str
    estimator: str
    value: float
    low: float | None
    high: float | None
    interval: str
    effective_sample_size: float | None
    uncovered_mass: float | None
    verdict: str
    kind: str
    off_by: float | None = None


@dataclass(frozen=True)
class Check:
    """One diagnostic."""

    name: str
    value: str
    threshold: str
    kind: str
    word: str
    sentence: str


@dataclass(frozen=True)
class Logger:
    """One logger: rows, what it earned, and how much rests on it."""

    label: str
    rows: int
    rows_share: float
    logged_mean: float
    weight_share: float | None
    effective_sample_size: float | None


@dataclass(frozen=True)
class Bin:
    """Weights between two multiples of the mean weight: their share of the rows and of all weight."""

    label: str
    rows_share: float
    weight_share: float


@dataclass(frozen=True)
class Band:
    """The outer band: the value if what was never logged earned the least, and the most."""

    low: float
    high: float


@dataclass(frozen=True)
class Answer:
    """One target."""

    row: Row
    value_words: str
    interval_words: str
    method: str | None
    meaning: str
    why: str
    beside: tuple[Row, ...]
    better: tuple[Row, ...]
    checks: tuple[Check, ...]
    residuals: tuple[Check, ...]
    residual: float
    solver: str
    loggers: tuple[Logger, ...]
    weights: tuple[Bin, ...]
    effective_sample_size: float | None
    largest_weight: float | None
    uncovered_mass: float | None
    outside_mass: float | None
    band: Band | None
    coverage: Coverage | None
    truth: float | None

    @property
    def held_out(self) -> bool:
        """Whether a residual on episodes that the weights were not solved from is among the checks."""
        return any("stationar" in check.name or "residual" in check.name for check in self.checks)

    @property
    def symbol(self) -> str:
        """The verdict as a sign."""
        return SYMBOL[self.row.kind]


def answer(mine: list[Estimate], band: Any, coverage: Coverage | None, truth: float | None) -> Answer:
    """The first estimate that is no reference line answers; the others stand beside it."""
    chosen = next((e for e in mine if e.verdict is not Verdict.REFERENCE), mine[0])
    judged = chosen.verdict is not Verdict.REFERENCE
    beside = [_row(e, truth) for e in mine if e is not chosen]
    checks = tuple(_check(d) for d in chosen.diagnostics)
    return Answer(
        row=_row(chosen, truth),
        value_words=value_words(chosen),
        interval_words=interval_words(chosen),
        method=clean(chosen.interval.method) if chosen.interval else None,
        meaning=meaning(chosen),
        why=why(chosen),
        beside=tuple(beside),
        better=tuple(row for row in beside if RANK[row.kind] < RANK[KIND[chosen.verdict]]),
        checks=checks,
        residuals=tuple(c for c in checks if any(word in c.name for word in RESIDUALS)),
        residual=chosen.residual,
        solver=clean(chosen.solver),
        loggers=_loggers(chosen),
        weights=_bins(chosen.weights),
        effective_sample_size=chosen.effective_sample_size if chosen.effective_sample_size > 0 else None,
        largest_weight=next((d.value for d in chosen.diagnostics if d.name == "largest weight"), None),
        uncovered_mass=chosen.uncovered_mass if judged else None,
        outside_mass=chosen.outside_mass if judged else None,
        band=_band(chosen.band if band is None else band),
        coverage=coverage,
        truth=truth,
    )


def _row(estimate: Estimate, truth: float | None) -> Row:
    found, judged = estimate.interval, estimate.verdict is not Verdict.REFERENCE
    return Row(
        target=clean(estimate.target),
        estimator=clean(estimate.estimator),
        value=estimate.value,
        low=found.low if found else None,
        high=found.high if found else None,
        interval=f"{number(found.low)} to {number(found.high)}" if found else "–",
        effective_sample_size=estimate.effective_sample_size if judged and estimate.effective_sample_size else None,
        uncovered_mass=estimate.uncovered_mass if judged else None,
        verdict=clean(estimate.verdict),
        kind=KIND[estimate.verdict],
        off_by=None if truth is None else estimate.value - truth,
    )


def _check(found: Any) -> Check:
    word = {"pass": "ok", "warn": "caution", "fail": "failed"}[found.status]
    return Check(
        clean(found.name),
        number(found.value),
        number(found.threshold),
        STATUS[found.status],
        word,
        clean(found.sentence),
    )


def _loggers(estimate: Estimate) -> tuple[Logger, ...]:
    total = max(sum(logger.rows for logger in estimate.loggers), 1)
    return tuple(
        Logger(
            clean(logger.label),
            logger.rows,
            logger.rows / total,
            logger.logged_mean,
            logger.weight_share,
            logger.effective_sample_size,
        )
        for logger in estimate.loggers
    )


def _bins(given: Iterable[Any]) -> tuple[Bin, ...]:
    """From the first to the last that holds any row."""
    made = [Bin(_multiple(b.low, b.high), b.rows_share, b.weight_share) for b in given]
    filled = [k for k, found in enumerate(made) if found.rows_share > 0]
    return tuple(made[filled[0] : filled[-1] + 1]) if filled else ()


def _multiple(low: float | None, high: float | None) -> str:
    """Two bounds on the weight, as multiples of the mean weight."""
    if low is None:
        return "0 or less"
    return f"{low:g} × or more" if high is None else f"{low:g} to {high:g} ×"


def _band(given: Any) -> Band | None:
    if given is None:
        return None
    low, high = (given.low, given.high) if hasattr(given, "low") else given
    return Band(float(low), float(high))
