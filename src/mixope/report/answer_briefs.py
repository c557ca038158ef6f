"""The first screens of an estimate and of a comparison.

    “new” looks better than what ran     the target, what ran, and the difference, each with its interval

Digits are those that an interval leaves: two of its half-width. A refused answer has no number of the target here, and
nothing that follows from one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mixope.answers.estimate import Estimate
from mixope.base.errors import Advice
from mixope.checks import Diagnostic, Verdict
from mixope.differences import Comparison
from mixope.logs import UNLABELLED
from mixope.report.chapters import card_line, verdict_cell
from mixope.report.decision import choice, claim
from mixope.report.difference_words import chance_words
from mixope.report.sheet import Brief, CardLine, SheetCell
from mixope.report.words import bounds_words, by_urgency, judged, kind, level_words, of_units, plural, short, unanswered
from mixope.uncertainty import Interval, probability_words

if TYPE_CHECKING:
    from mixope.report.document import Document

Row = tuple[SheetCell, ...]


def brief_of_one(shown: Document) -> Brief:
    """Of one estimate."""
    found = shown.first
    rows = [*_answer(found)]
    if shown.backtest is not None:
        agree = f"{shown.backtest.agree} of {len(shown.backtest.supported)}"
        rows.append(("backtest", agree, "", "predictions of loggers agree with what they earned"))
    missing = [] if found.interval else [Advice("no interval: ", found.no_interval_because or "none was made")]
    return Brief(
        kind(found),
        verdict_cell(found.verdict).words,
        claim(found),
        ("", "#", "", ""),
        tuple(rows),
        why_words(found),
        doubts_of(found.diagnostics),
        (*bounds_words(found), *missing, *unanswered(found), *found.remarks),
        sizes(found),
        page=True,
    )


def _answers(found: Estimate) -> bool:
    return found.verdict is not Verdict.UNSUPPORTED


def _answer(found: Estimate) -> Iterator[Row]:
    """The target, what ran, and the target less that."""
    per, logs = found.unit.removeprefix("reward "), found.against_logs
    if _answers(found):
        yield found.target, short(found.value, found.interval), per, around(found.interval)
    if not judged(found) or logs.value is None:
        return
    yield "what ran", short(logs.value, logs.interval), per, around(logs.interval)
    if logs.difference is not None and _answers(found):
        gain = logs.difference
        chance = chance_words("better", gain.probability_better)
        yield "difference", short(gain.value, gain.interval), "", f"{around(gain.interval)}, {chance}"


def around(found: Interval | None) -> str:
    """An interval in brackets, with its level."""
    if found is None:
        return "(no interval)"
    return f"({level_words(found.level)}: {short(found.low, found)} to {short(found.high, found)})"


def why_words(found: Estimate, whose: str = "") -> str:
    """What stands above the checks that did not pass."""
    bad = sum(check.status != "pass" for check in found.diagnostics)
    return f"Why {verdict_cell(found.verdict).words}{whose} ({bad:,} of {plural(len(found.diagnostics), 'check')})"


def doubts_of(checks: Sequence[Diagnostic]) -> tuple[CardLine, ...]:
    """The checks that did not pass, the most urgent first."""
    return tuple(card_line(check) for check in by_urgency(checks) if check.status != "pass")


def sizes(found: Estimate) -> str:
    """How much data, what is asked, and how it was answered."""
    labels = {logger.label for logger in found.loggers} - {UNLABELLED}
    dropped = f" ({found.n_dropped:,} more dropped)" if found.n_dropped else ""
    data = [f"{plural(found.n_rows, 'row')}{dropped}", f"{plural(found.n_episodes, 'episode')}{of_units(found)}"]
    data += [plural(len(labels), "logger")] if labels else []
    return f"{', '.join(data)} · {found.estimand} · estimator {found.estimator}, seed {found.provenance.seed}"


def brief_of_several(shown: Document, best: Estimate | None) -> Brief:
    """Of a comparison: the targets by their places, or the estimators of one target; ``best`` is in the first place."""
    record = shown.record
    assert isinstance(record, Comparison)
    several, first = len(shown.answers) > 1, best or next(iter(record.estimates), None)
    left = [Advice(f"{name} was left out: ", reason) for name, reason in shown.skipped]
    no_risk = [Advice("no risk against return: ", shown.no_risk_because)] if shown.no_risk_because else []
    whose = f" for {first.target}" if first and several else ""
    return Brief(
        "bad" if best is None else kind(best),
        "no target can be ranked" if best is None else verdict_cell(best.verdict).words,
        claim(best) if best is not None and not several else choice(record),
        ("target", "#value", "interval", "#P(best)", "verdict") if several else ("estimator", "#value", "interval", ""),
        tuple(_targets(record) if several else _estimators(record)),
        "" if first is None else why_words(first, whose),
        () if first is None else doubts_of(first.diagnostics),
        (*left, *no_risk, *shown.alerts),
        "" if first is None else sizes(first),
        page=True,
    )


def _targets(record: Comparison) -> Iterator[Row]:
    """One row per target by the estimator that ranks them, the best first."""
    chosen = record.selections[0] if record.selections else None
    places = {rank.target: k for k, rank in enumerate(chosen.ranks)} if chosen else {}
    chances = {rank.target: rank.probability_best for rank in chosen.ranks} if chosen else {}
    by_target: dict[str, Estimate] = {}
    for found in record.estimates:
        if chosen is None or found.estimator == chosen.estimator:
            by_target.setdefault(found.target, found)
    for name in sorted(by_target, key=lambda target: places.get(target, len(places))):
        chance = chances.get(name)
        words = "–" if chance is None else probability_words(chance)
        yield (name, *_value(by_target[name]), words, verdict_cell(by_target[name].verdict))


def _estimators(record: Comparison) -> Iterator[Row]:
    for found in record.estimates:
        yield (found.estimator, *_value(found), verdict_cell(found.verdict))


def _value(found: Estimate) -> tuple[str, str]:
    """A refused answer has no number here."""
    return (short(found.value, found.interval), around(found.interval)) if _answers(found) else ("–", "–")
