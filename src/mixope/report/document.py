"""What a report shows, as one frozen record: built from an estimate or a comparison and what else is known.

    Estimate | Comparison  →  Document  →  a page (html), a notebook cell (html), a terminal (console), JSON

All text in it is safe to show (:func:`mixope.report.words.clean`) but not escaped: escaping belongs to the page.
Records from elsewhere (a backtest, an outer band, a coverage) are taken by their fields, not by their type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mixope.diagnostics import Verdict
from mixope.report.manifest import Manifest, manifest
from mixope.report.text import number
from mixope.report.words import clean, interval_words, meaning, value_words, why

if TYPE_CHECKING:
    from mixope.estimate import Comparison, Estimate

KIND = {
    Verdict.TRUSTWORTHY: "good",
    Verdict.CAUTION: "caution",
    Verdict.UNSUPPORTED: "bad",
    Verdict.REFERENCE: "reference",
}
SYMBOL = {"good": "✓", "caution": "!", "bad": "✕", "reference": "○"}
RANK = {"good": 0, "caution": 1, "bad": 2, "reference": 3}
STATUS = {"pass": "good", "warn": "caution", "fail": "bad"}
RESIDUALS = ("solver", "stationar", "residual", "drift", "mean weight", "leaked")
"""Words in the names of the checks that ask whether the weights solve the target's own equations."""


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
class Band:
    """The outer band: the value if what was never logged earned the least, and the most."""

    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """An action of the target that was never logged in a state."""

    state: str
    action: str
    probability: float
    state_rows: int
    mass: float


@dataclass(frozen=True)
class Coverage:
    """What of the target the logs have seen, at the states as they were logged."""

    covered_rows: float
    uncovered_mass: float
    gaps: int
    worst: tuple[Gap, ...]


@dataclass(frozen=True)
class Prediction:
    """One logger predicted from the others, and what it really earned."""

    label: str
    predicted: float
    low: float | None
    high: float | None
    earned: float
    covered: bool


@dataclass(frozen=True)
class Answer:
    """What is said about one target: the estimate that answers, in words, and everything it rests on.

    The first one asked for answers, whatever its verdict: a report does not choose among estimates after seeing them.
    Those whose checks came out ``better`` are named.
    """

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
    effective_sample_size: float | None
    largest_weight: float | None
    uncovered_mass: float | None
    outside_mass: float | None
    band: Band | None
    truth: float | None

    @property
    def symbol(self) -> str:
        """The verdict as a sign."""
        return SYMBOL[self.row.kind]


@dataclass(frozen=True)
class Document:
    """Everything a report shows, in the order in which it is shown."""

    answers: tuple[Answer, ...]
    estimand: str
    unit: str
    n_rows: int
    n_episodes: int
    n_dropped: int
    logged_mean: float
    coverage: Coverage | None
    backtest: tuple[Prediction, ...]
    alerts: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    manifest: Manifest

    @property
    def title(self) -> str:
        """The first line, as text."""
        return "; ".join(f"{a.row.target}: {a.row.verdict}, {a.value_words}" for a in self.answers)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every estimate."""
        return tuple(row for answer in self.answers for row in (answer.row, *answer.beside))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def to_json(self, indent: int | None = 2) -> str:
        """The report as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


def document(
    record: Estimate | Comparison,
    *,
    command: str | None = None,
    backtest: Any = None,
    band: Any = None,
    truth: float | Mapping[str, float] | None = None,
    coverage: Any = None,
) -> Document:
    """The report of a result; of a comparison, ``band`` and ``truth`` may be mappings from targets."""
    estimates: tuple[Estimate, ...] = getattr(record, "estimates", None) or (record,)  # type: ignore[assignment]
    asked = {(e.target, e.estimator) for e in estimates}
    every = tuple(
        e
        for estimate in estimates
        for e in (estimate, *(b for b in estimate.beside if (b.target, b.estimator) not in asked))
    )
    first = every[0]
    answers = []
    for target in dict.fromkeys(e.target for e in every):
        mine = [e for e in every if e.target == target]
        answers.append(_answer(mine, _band(_of(band, target)), _of(truth, target)))
    return Document(
        answers=tuple(answers),
        estimand=clean(first.estimand),
        unit=clean(first.unit),
        n_rows=first.n_rows,
        n_episodes=first.n_episodes,
        n_dropped=first.n_dropped,
        logged_mean=first.logged_mean,
        coverage=_coverage(coverage),
        backtest=_predictions(backtest),
        alerts=tuple(dict.fromkeys(clean(alert) for e in every for alert in e.alerts)),
        skipped=tuple((clean(name), clean(reason)) for name, reason in getattr(record, "skipped", ())),
        manifest=manifest(first.provenance, [(e.target, e.provenance.target_fingerprint) for e in every], command),
    )


def _answer(mine: list[Estimate], band: Band | None, truth: float | None) -> Answer:
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
        effective_sample_size=chosen.effective_sample_size if chosen.effective_sample_size > 0 else None,
        largest_weight=next((d.value for d in chosen.diagnostics if d.name == "largest weight"), None),
        uncovered_mass=chosen.uncovered_mass if judged else None,
        outside_mass=chosen.outside_mass if judged else None,
        band=band,
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


def _of(given: Any, target: str) -> Any:
    """What is given for all targets, or for this one."""
    return given.get(target) if isinstance(given, Mapping) else given


def _band(given: Any) -> Band | None:
    if given is None:
        return None
    low, high = (given.low, given.high) if hasattr(given, "low") else given
    return Band(float(low), float(high))


def _predictions(given: Any) -> tuple[Prediction, ...]:
    rows: Iterable[Any] = () if given is None else getattr(given, "rows", given)
    return tuple(
        Prediction(clean(r.label), float(r.predicted), _maybe(r.low), _maybe(r.high), float(r.earned), bool(r.covered))
        for r in rows
    )


def _coverage(given: Any) -> Coverage | None:
    if given is None:
        return None
    worst = tuple(
        Gap(clean(", ".join(map(str, gap.state))), clean(gap.action), gap.probability, gap.state_rows, gap.mass)
        for gap in given.worst
    )
    return Coverage(given.covered_rows, given.uncovered_mass, given.gaps, worst)


def _maybe(value: float | None) -> float | None:
    return None if value is None else float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    return value
