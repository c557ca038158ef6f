"""What a page shows: the record itself, and what else is known of it.

    Estimate | Comparison | Backtest | Experiment  →  Document  →  a page (html)

Its words are a sheet; figures are drawn from the records. Text is made safe to show and escaped where it is put out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

from mixope.answers.estimate import Estimate, Provenance
from mixope.backtesting import Backtest
from mixope.base.errors import Phrase, in_python
from mixope.base.rendering import ReportedRecord
from mixope.checks.stationarity import HELD_OUT, SOLVER
from mixope.checks.weights import LARGEST
from mixope.differences import Comparison, Differences, Selection
from mixope.distributions import Returns
from mixope.experiments.records import Experiment
from mixope.inspection import Coverage
from mixope.report.answer_sheets import answer_sheet
from mixope.report.backtest_sheet import backtest_sheet
from mixope.report.decision import choice, title
from mixope.report.experiment_sheet import experiment_sheet
from mixope.report.sheet import PAGE, Sheet
from mixope.report.trial_words import headline
from mixope.report.words import SYMBOL, judged, kind
from mixope.requests.weights import WeightBin
from mixope.uncertainty import Difference

_RANK = {name: place for place, name in enumerate(SYMBOL)}
_WORSE = ("good", "reference", "caution", "bad")
MOST_DETAILED = 12
"""Targets that have figures, checks and weights of their own on a page; tables have all."""


@dataclass(frozen=True)
class Answer:
    """One target: the estimate that answers for it, those beside it, and what else is known.

    The first estimate asked for answers, whatever its verdict: a report does not choose among estimates after seeing
    them. Those whose checks came out better are named.
    """

    estimate: Estimate
    beside: tuple[Estimate, ...]
    band: tuple[float, float] | None
    coverage: Coverage | None
    truth: float | None

    @property
    def better(self) -> tuple[Estimate, ...]:
        """Estimates with a better verdict."""
        return tuple(e for e in self.beside if _RANK[kind(e)] < _RANK[kind(self.estimate)])

    @property
    def weighs(self) -> bool:
        """Whether rows are weighted at all."""
        return self.estimate.effective_sample_size > 0

    @property
    def largest_weight(self) -> float | None:
        """The share of the heaviest row."""
        return next((d.value for d in self.estimate.diagnostics if d.name == LARGEST.name), None)

    @property
    def stationarity(self) -> list[Any]:
        """The checks that ask whether the world is steady and the weights reproduce the target's flow."""
        found = self.estimate.diagnostics
        return [d for d in found if d.section == "stationarity" and d.name != SOLVER.name]

    @property
    def held_out(self) -> bool:
        """Whether a residual on episodes that the weights were not solved from is among the checks."""
        return any(d.name == HELD_OUT.name for d in self.estimate.diagnostics)

    @property
    def bins(self) -> tuple[WeightBin, ...]:
        """The weights by size, from the first bin to the last that holds any row."""
        found = self.estimate.weights
        filled = [k for k, one in enumerate(found) if one.rows_share > 0]
        return found[filled[0] : filled[-1] + 1] if filled else ()


@dataclass(frozen=True)
class Document:
    """Everything that a page shows; of a backtest there are no answers. ``phrase`` has the words for settings."""

    record: ReportedRecord
    title: str
    unit: str
    backtest: Backtest | None
    provenance: Provenance | None
    command: str | None
    phrase: Phrase
    answers: tuple[Answer, ...] = ()
    differences: tuple[Differences, ...] = ()
    selections: tuple[Selection, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    risk: Returns | None = None
    no_risk_because: str | None = None

    @cached_property
    def sheet(self) -> Sheet:
        """What is said of it."""
        match self.record:
            case Backtest():
                return backtest_sheet(self.record, self)
            case Experiment():
                return experiment_sheet(self.record, self)
        return answer_sheet(self)

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """The identifiers of all chapters of the page, and what its contents call them."""
        return tuple((chapter.name, chapter.contents) for chapter in self.sheet.on(PAGE))

    @property
    def rows(self) -> tuple[tuple[Estimate, float | None], ...]:
        """Every estimate, and how far it is off where the truth is known."""
        return tuple(
            (e, None if answer.truth is None else e.value - answer.truth)
            for answer in self.answers
            for e in (answer.estimate, *answer.beside)
        )

    @cached_property
    def detailed(self) -> tuple[Answer, ...]:
        """The targets that have parts of their own: all, or the best of many."""
        if len(self.answers) <= MOST_DETAILED or not self.selections:
            return self.answers[:MOST_DETAILED]
        place = {rank.target: k for k, rank in enumerate(self.selections[0].ranks)}
        return tuple(sorted(self.answers, key=lambda a: place.get(a.estimate.target, len(place)))[:MOST_DETAILED])

    @property
    def first(self) -> Estimate:
        """The one that speaks for all: its logs and its estimand are everybody's."""
        return self.answers[0].estimate

    @property
    def scale(self) -> str:
        """What the axes show."""
        return f"{self.unit}, {self.first.estimand}"

    @property
    def alerts(self) -> tuple[str, ...]:
        """What should be known of the logs."""
        return tuple(dict.fromkeys(alert for estimate, _ in self.rows for alert in estimate.remarks))

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """Every target with its fingerprint."""
        return tuple(dict.fromkeys((e.target, e.provenance.target_fingerprint) for e, _ in self.rows))

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], str]:
        return {(e.estimator, e.target): kind(e) for e, _ in self.rows}

    def kind_of(self, estimator: str, target: str) -> str:
        """The verdict on a target by an estimator."""
        return self._kinds.get((estimator, target), "good")

    def pair_kind(self, found: Differences, pair: Difference) -> str:
        """The worse of the verdicts of the two targets by the same estimator."""
        return max((self.kind_of(found.estimator, name) for name in (pair.first, pair.second)), key=_WORSE.index)


@singledispatch
def document(record: object, **extras: Any) -> Document:
    """What a page shows of a record; which ``extras`` there are depends on the record."""
    raise TypeError(f"{type(record).__name__} has no page")


@document.register
def _(record: Backtest, *, command: str | None = None, phrase: Phrase = in_python) -> Document:
    title = f"Backtest: {record.summary}"
    return Document(record, title, record.unit, record, record.provenance, command, phrase)


@document.register
def _(record: Experiment, *, command: str | None = None, phrase: Phrase = in_python) -> Document:
    unit = f"per {record.unit} and {record.period}"
    return Document(record, headline(record, record.main), unit, None, record.provenance, command, phrase)


@document.register(Estimate)
@document.register(Comparison)
def _(
    record: Estimate | Comparison,
    *,
    command: str | None = None,
    phrase: Phrase = in_python,
    backtest: Backtest | None = None,
    band: Any = None,
    truth: float | Mapping[str, float] | None = None,
    coverage: Coverage | Mapping[str, Coverage] | None = None,
    target: str | None = None,
) -> Document:
    """Of a comparison, ``band``, ``truth`` and ``coverage`` may be mappings from targets.

    ``target`` is what the user calls the policy of a single estimate.
    """
    compared = record if isinstance(record, Comparison) else Comparison((_called(record, target),))
    every = list(_with_companions(compared.estimates))
    by_target: dict[str, list[Estimate]] = {}
    for estimate in every:
        by_target.setdefault(estimate.target, []).append(estimate)
    answers = [
        _answer(mine, _of(band, target), _of(coverage, target), _of(truth, target))
        for target, mine in by_target.items()
    ]
    return Document(
        record=record,
        title=_title(answers, compared),
        unit=every[0].unit if every else "",
        backtest=backtest,
        provenance=every[0].provenance if every else None,
        command=command,
        phrase=phrase,
        answers=tuple(answers),
        differences=compared.differences,
        selections=compared.selections,
        skipped=compared.skipped,
        risk=compared.risk,
        no_risk_because=compared.no_risk_because,
    )


def _called(record: Estimate, target: str | None) -> Estimate:
    """The estimate, and those beside it, by another name of their target."""
    if target is None:
        return record
    return replace(record, target=target, beside=tuple(replace(e, target=target) for e in record.beside))


def _title(answers: Sequence[Answer], compared: Comparison) -> str:
    """The decision: on the target, or between several."""
    if len(answers) == 1:
        return title(answers[0].estimate)
    return choice(compared)


def _answer(mine: list[Estimate], band: Any, coverage: Coverage | None, truth: float | None) -> Answer:
    chosen = next((e for e in mine if judged(e)), mine[0])
    beside = tuple(e for e in mine if e is not chosen)
    return Answer(chosen, beside, chosen.band if band is None else _pair(band), coverage, truth)


def _with_companions(estimates: tuple[Estimate, ...]) -> Iterable[Estimate]:
    """The estimates, each followed by what stands beside it; one that was asked for too stands once."""
    asked = {(e.target, e.estimator) for e in estimates}
    for estimate in estimates:
        yield estimate
        yield from (b for b in estimate.beside if (b.target, b.estimator) not in asked)


def _of(given: Any, target: str) -> Any:
    """What is given for all targets, or for this one."""
    return given.get(target) if isinstance(given, Mapping) else given


def _pair(band: Any) -> tuple[float, float]:
    """A pair, or a record with low and high."""
    low, high = band if isinstance(band, tuple) else (band.low, band.high)
    return float(low), float(high)
