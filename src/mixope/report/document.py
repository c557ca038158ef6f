"""What a report shows, as one frozen record: built from a result and what else is known.

    Estimate | Comparison  →  Document          ┐
    Backtest               →  BacktestDocument  ┴→  a page (html), a notebook cell (html), a terminal, JSON

All text in it is safe to show (:func:`mixope.report.words.clean`) but not escaped: escaping belongs to the page.
Records from elsewhere (a backtest, an outer band, a coverage) are taken by their fields, not by their type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mixope.report.answer import KIND, SYMBOL, Answer, Row, answer
from mixope.report.contest import Contest, contest
from mixope.report.coverage import coverage as shown_coverage
from mixope.report.manifest import Manifest, manifest
from mixope.report.plain import plain
from mixope.report.predictions import Predictions, predictions
from mixope.report.words import clean

if TYPE_CHECKING:
    from mixope.backtesting import Backtest
    from mixope.estimate import Comparison, Estimate

Section = tuple[str, str]
"""An identifier and a title."""


@dataclass(frozen=True)
class Document:
    """Everything a report of a result shows, in the order in which it is shown."""

    answers: tuple[Answer, ...]
    estimand: str
    unit: str
    contests: tuple[Contest, ...]
    n_rows: int
    n_episodes: int
    n_dropped: int
    logged_mean: float
    backtest: Predictions | None
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

    @property
    def sections(self) -> tuple[Section, ...]:
        """In order; differences only where there are several targets."""
        return (
            ("estimates", "Estimates"),
            *([("differences", "Differences")] if len(self.answers) > 1 else []),
            ("checks", "Checks"),
            ("weights", "Weights"),
            ("coverage", "Coverage"),
            ("stationarity", "Stationarity"),
            ("backtest", "Backtest"),
            ("alerts", "Alerts"),
            ("data", "Data"),
            ("manifest", "Manifest"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that do not exist are None."""
        found: dict[str, Any] = plain(asdict(self))
        return found

    def to_json(self, indent: int | None = 2) -> str:
        """The report as one JSON object."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


@dataclass(frozen=True)
class BacktestDocument:
    """Everything a report of a backtest shows."""

    kind: str
    estimator: str
    level: float
    unit: str
    backtest: Predictions
    manifest: Manifest | None

    @property
    def title(self) -> str:
        """The first line, as text."""
        return f"Backtest: {self.backtest.sentence}"

    @property
    def symbol(self) -> str:
        """How it went, as a sign."""
        return SYMBOL[self.kind]

    @property
    def sections(self) -> tuple[Section, ...]:
        """In order."""
        always = (("backtest", "Backtest"), ("alerts", "Notes"))
        return (*always, ("manifest", "Manifest")) if self.manifest else always

    def to_json(self, indent: int | None = 2) -> str:
        """The report as one JSON object."""
        return json.dumps(plain(asdict(self)), indent=indent, ensure_ascii=False)


AnyDocument = Document | BacktestDocument


def document(
    record: Estimate | Comparison,
    *,
    command: str | None = None,
    backtest: Any = None,
    band: Any = None,
    truth: float | Mapping[str, float] | None = None,
    coverage: Any = None,
) -> Document:
    """The report of a result; of a comparison, ``band``, ``truth`` and ``coverage`` may be mappings from targets."""
    estimates: tuple[Estimate, ...] = getattr(record, "estimates", None) or (record,)  # type: ignore[assignment]
    every = _every(estimates)
    first = every[0]
    answers = []
    for target in dict.fromkeys(e.target for e in every):
        mine = [e for e in every if e.target == target]
        answers.append(answer(mine, _of(band, target), shown_coverage(_of(coverage, target)), _of(truth, target)))
    return Document(
        answers=tuple(answers),
        estimand=clean(first.estimand),
        unit=clean(first.unit),
        contests=tuple(contest(d, _kinds(every, d.estimator)) for d in getattr(record, "differences", ())),
        n_rows=first.n_rows,
        n_episodes=first.n_episodes,
        n_dropped=first.n_dropped,
        logged_mean=first.logged_mean,
        backtest=predictions(backtest),
        alerts=tuple(dict.fromkeys(clean(alert) for e in every for alert in e.alerts)),
        skipped=tuple((clean(name), clean(reason)) for name, reason in getattr(record, "skipped", ())),
        manifest=manifest(first.provenance, [(e.target, e.provenance.target_fingerprint) for e in every], command),
    )


def backtest_document(record: Backtest, *, command: str | None = None) -> BacktestDocument:
    """The report of a backtest."""
    shown = predictions(record)
    assert shown is not None  # a backtest has at least one labelled logger
    known = record.provenance
    return BacktestDocument(
        kind=record.kind,
        estimator=clean(record.estimator),
        level=record.level,
        unit="reward per step",
        backtest=shown,
        manifest=manifest(known, (), command) if known else None,
    )


def _every(estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
    """The estimates, each followed by what stands beside it; one that was asked for too stands once."""
    asked = {(e.target, e.estimator) for e in estimates}
    return tuple(
        e
        for estimate in estimates
        for e in (estimate, *(b for b in estimate.beside if (b.target, b.estimator) not in asked))
    )


def _kinds(estimates: tuple[Estimate, ...], estimator: str) -> dict[str, str]:
    return {e.target: KIND[e.verdict] for e in estimates if e.estimator == estimator}


def _of(given: Any, target: str) -> Any:
    """What is given for all targets, or for this one."""
    return given.get(target) if isinstance(given, Mapping) else given
