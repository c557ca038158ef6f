"""What a notebook shows of a record: a card with the answer, what matters most about it, a picture, and details folded.

    a record  →  Card  →  HTML (card.html.j2)

A card holds words only; they are made safe to show and escaped where they are put out, as on a page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import count

from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.base.errors import Phrase, in_python
from mixope.checks import Diagnostic
from mixope.differences import Comparison, Differences, Selection
from mixope.experiments.records import Experiment
from mixope.inspection import Contents, Inspection
from mixope.logs import Logs
from mixope.report import difference_words, folds, trial_words
from mixope.report.charts import Chart, chart
from mixope.report.decision import choice, decision
from mixope.report.words import (
    earned_words,
    interval_words,
    judged,
    kind,
    level_words,
    number,
    outcome,
    percent,
    rounded,
    signed,
    span,
    unanswered,
    value_words,
    whole,
)

MOST_CHECKS = 3
MOST_DRAWN = 6
_URGENT = {"bad": 0, "caution": 1, "good": 2, "reference": 3}
_REMARKS = {"error": "bad", "warning": "caution", "note": "reference"}
_serial = count(1)


@dataclass(frozen=True)
class CardLine:
    """One thing that matters, with the outcome that its sign shows."""

    kind: str
    name: str
    sentence: str
    remedy: str = ""
    """What to do about it."""


@dataclass(frozen=True)
class Card:
    """What a card shows; ``word`` is the verdict, ``under`` the lines below the headline."""

    kind: str
    word: str
    headline: str
    under: tuple[str, ...]
    checks: tuple[CardLine, ...]
    folds: tuple[folds.Fold, ...]
    chart: Chart | None
    phrase: Phrase = in_python

    @property
    def mark(self) -> str:
        """Tells this card from all others of a notebook, also from the same one shown twice."""
        said = repr((self.word, self.headline, self.under, self.checks)).encode("utf-8", "replace")
        return f"mx-{hashlib.sha256(said).hexdigest()[:8]}-{next(_serial)}"


@singledispatch
def card(record: object) -> Card:
    """The card of a record."""
    raise TypeError(f"{type(record).__name__} has no card")


@card.register
def _(record: Estimate) -> Card:
    return Card(
        kind(record),
        str(record.verdict),
        decision(record),
        (value_words(record), interval_words(record), *_ran(record), _subject(record)),
        _most_urgent(_check(found) for found in record.diagnostics),
        folds.present(
            folds.checks(record.diagnostics),
            folds.estimates("Estimates beside it", record.beside),
            folds.loggers(record),
            folds.notes(record.confounding.sentences if record.confounding else (), "If hidden reasons chose actions"),
            folds.notes([*unanswered(record), *record.remarks]),
            folds.provenance(record.provenance),
        ),
        chart(record, MOST_DRAWN),
    )


def _subject(record: Estimate) -> str:
    dropped = f", {whole(record.n_dropped)} more dropped" if record.n_dropped else ""
    rows = f"{whole(record.n_rows)} rows in {whole(record.n_episodes)} episodes{dropped}"
    return f"“{record.target}” by {record.estimator}, from {rows}"


def _ran(record: Estimate) -> list[str]:
    """What those who wrote the logs earn themselves, where that is known."""
    logs = record.against_logs
    return [f"what ran earns {earned_words(logs)}"] if judged(record) and logs.value is not None else []


@card.register
def _(record: Comparison) -> Card:
    chosen = record.selections[0] if record.selections else None
    best = _leader(record, chosen)
    several = len({e.target for e in record.estimates}) > 1
    first = tuple(e for e in record.estimates if chosen is None or e.estimator == chosen.estimator)
    urgent = [
        CardLine(line.kind, f"{e.target}, {line.name}" if several else line.name, line.sentence, line.remedy)
        for e in first
        for line in map(_check, e.diagnostics)
    ]
    return Card(
        "bad" if best is None else kind(best),
        "no target can be ranked" if best is None else f"{best.target}: {best.verdict}",
        choice(record) if several or best is None else decision(best),
        (
            *([] if best is None else [value_words(best), interval_words(best), *_ran(best), _subject(best)]),
            *((chosen.summary, *chosen.advice) if chosen and several else ()),
        ),
        _most_urgent(urgent),
        folds.present(
            folds.estimates("Estimates", record.estimates),
            *map(folds.pairs, record.differences),
            folds.risk(record.risk),
            folds.checks_of_all(record.estimates),
            folds.notes([record.no_risk_because] if record.no_risk_because else [], "No risk against return"),
            folds.notes(dict.fromkeys(note for e in record.estimates for note in e.remarks)),
            folds.notes([f"{name}: {reason}" for name, reason in record.skipped], "Estimators that do not apply"),
            folds.provenance(record.estimates[0].provenance if record.estimates else None),
        ),
        chart(replace(record, estimates=first) if several else record, MOST_DRAWN),
    )


def _leader(record: Comparison, chosen: Selection | None) -> Estimate | None:
    """The target in the first place; of a single target, its first estimate."""
    if chosen is not None and chosen.ranked:
        first = chosen.ranked[0].target
        return next((e for e in record.estimates if (e.target, e.estimator) == (first, chosen.estimator)), None)
    alone = len({e.target for e in record.estimates}) == 1
    return record.estimates[0] if alone else None


@card.register
def _(record: Selection) -> Card:
    return _contest(record, [folds.places(record)], record.alerts, chart(record, 2 * MOST_DRAWN))


@card.register
def _(record: Differences) -> Card:
    details = [folds.pairs(record), folds.places(record.selection)]
    return _contest(record.selection, details, record.alerts, chart(record, 2 * MOST_DRAWN))


def _contest(chosen: Selection, details: Sequence[folds.Fold], alerts: Sequence[str], drawn: Chart | None) -> Card:
    """Which targets to take."""
    sure = "good" if len(chosen.contenders) == 1 else "caution" if chosen.ranked else "bad"
    by = f"by {chosen.estimator}, at {level_words(chosen.level)}"
    lines = tuple(CardLine("caution", "note", alert) for alert in alerts[:MOST_CHECKS])
    word = "one target is the best" if sure == "good" else "the best cannot be told apart" if chosen.ranked else ""
    word = "one target is ranked" if len(chosen.ranked) == 1 and not chosen.contenders else word
    return Card(
        sure,
        word or "no target can be ranked",
        chosen.summary,
        (*chosen.advice, by),
        lines,
        folds.present(*details, folds.notes(alerts)),
        drawn,
    )


@card.register
def _(record: Experiment) -> Card:
    arm = record.main
    others = [f"{one.arm} on {one.metric}: {trial_words.headline(record, one)}" for one in record.arms[1:]]
    lines = tuple(
        (
            line.name,
            difference_words.amount(line.effect.value, line.effect.standard_error),
            difference_words.reach(line.effect),
        )
        for line in arm.lines
    )
    return Card(
        trial_words.kind(arm),
        str(arm.long_run.verdict),
        trial_words.headline(record, arm),
        (trial_words.chance(arm), trial_words.parts(arm) or trial_words.trust(arm), trial_words.who(record)),
        _most_urgent(_check(found) for found in arm.long_run.checks),
        folds.present(
            folds.Fold("Ways to compute the difference", ("method", "#difference", "interval"), lines),
            folds.checks(arm.long_run.checks),
            folds.notes([*others, *record.notes]),
            folds.provenance(record.provenance) if record.provenance else None,
        ),
        chart(record, MOST_DRAWN),
    )


@card.register
def _(record: Backtest) -> Card:
    lines = [
        CardLine(
            kind(row),
            row.label,
            f"predicted {rounded(row.predicted)}, earned {rounded(row.earned)}, z {signed(row.z, 1)}"
            if row.supported
            else row.note or outcome(row),
        )
        for row in record.rows
    ]
    return Card(
        kind(record),
        "backtest",
        f"{record.agree} of {len(record.supported)} predictions agree with what was earned",
        (
            f"each logger predicted from the rows of the others by {record.estimator}: {record.subject}",
            record.summary,
        ),
        _most_urgent(lines),
        folds.present(
            folds.Fold(
                folds.title("Loggers", len(record.rows)),
                ("logger", "#predicted", "interval", "#earned", "interval", "#z", "#uncovered", "agrees"),
                tuple(
                    (
                        *(row.label, number(row.predicted), span(row.low, row.high), number(row.earned)),
                        *(span(row.earned_low, row.earned_high), signed(row.z), percent(row.uncovered_mass)),
                        outcome(row),
                    )
                    for row in record.rows[: folds.MOST_LISTED]
                ),
            ),
            folds.notes(record.notes),
            folds.provenance(record.provenance),
        ),
        chart(record, MOST_DRAWN),
    )


@card.register
def _(record: Inspection) -> Card:
    lines = [CardLine(_REMARKS[found.status], found.name, found.sentence) for found in record.remarks]
    usable = record.error is None
    warned = any(line.kind != "reference" for line in lines)
    word = ("usable, with warnings" if warned else "usable") if usable else "cannot be used as they are"
    inside = record.contents
    return Card(
        "bad" if not usable else "caution" if warned else "good" if record.checked else "reference",
        word if record.checked or not usable else "not checked",
        f"{whole(record.total_rows)} rows" + (f" in {whole(inside.episodes)} episodes" if inside else ""),
        (record.name, *_contents(record, inside)),
        _most_urgent(lines),
        folds.present(
            *([folds.logger_rows(inside)] if inside else []),
            *(folds.mapping(", ".join(group.sources), group.mapping) for group in record.columns),
            folds.gaps(record),
            folds.notes(record.notes),
            folds.Fold("As text", text=str(record)),
        ),
        chart(record, MOST_DRAWN),
    )


def _contents(record: Inspection, inside: Contents | None) -> list[str]:
    """States, actions and rewards, and what was dropped."""
    space, vectors = record.space, record.vectors
    seen = f"{whole(space.states)} states, {whole(len(space.actions))} actions" if space else None
    columns = f"states of {len(record.observation)} columns, actions {record.action_kind}" if vectors else None
    said = [found for found in (seen or columns,) if found]
    if inside:
        rewards = span(inside.lowest_reward, inside.highest_reward)
        said.append(f"rewards {rewards}, {number(inside.logged_mean)} per step on average")
    if record.coverage:
        said.append(f"{percent(record.coverage.uncovered_mass)} of the target's actions were never logged")
    return said + ([f"{whole(record.dropped)} rows are dropped: {record.drop_reason}"] if record.dropped else [])


@card.register
def _(record: Logs) -> Card:
    """Nothing is read for it: what is not known yet is not said."""
    schema = record.schema
    pieces = [piece for source in record.sources for piece in source.pieces]
    known = [piece.known_rows() for piece in pieces]
    files = [name for piece in pieces for name in piece.files]
    sure = [rows for rows in known if rows is not None]
    rows = f"{whole(sum(sure))} rows" if len(sure) == len(known) else "rows not counted yet"
    wide = f" ({len(schema.observation)} columns)" if len(schema.observation) > 1 else ""
    propensities = "propensities recorded" if schema.has_propensity else "no propensities"
    return Card(
        "caution" if record.assumed else "reference",
        "logs, with assumptions" if record.assumed else "logs",
        rows + (f" in {whole(len(files))} files" if len(files) > 1 else ""),
        (
            record.name,
            f"states: {schema.observation_kind}{wide}; actions: {schema.action_kind}; {propensities}",
        ),
        tuple(CardLine("caution", "assumed", note) for note in record.assumed[:MOST_CHECKS]),
        folds.present(
            folds.mapping("", schema.mapping),
            folds.notes(record.notes),
            folds.listed("Files", "file", files),
        ),
        chart(record, MOST_DRAWN),
    )


def _check(found: Diagnostic) -> CardLine:
    return CardLine(kind(found), found.name, found.sentence, found.remedy or "")


def _most_urgent(lines: Iterable[CardLine]) -> tuple[CardLine, ...]:
    """The three that matter most: failed, then warned, then passed, each in the order of the checks."""
    return tuple(sorted(lines, key=lambda line: _URGENT[line.kind])[:MOST_CHECKS])
