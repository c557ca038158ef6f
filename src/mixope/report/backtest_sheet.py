"""The sheet of a backtest: every logger as the rows of the others predict it, and what it earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixope.backtesting import Backtest, BacktestRow
from mixope.base.errors import Advice
from mixope.report.chapters import NOTES, manifest, note_lines, notes_chapter, provenance_chapter
from mixope.report.sheet import (
    CARD,
    ON_PAGE,
    SHOWN,
    TERMINAL,
    Brief,
    CardLine,
    Chapter,
    ChapterPart,
    FigureNamed,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetTable,
    Signed,
    Subtitle,
    most_urgent,
)
from mixope.report.words import demand, kind, level_words, outcome, percent, plural, rounded, signed
from mixope.uncertainty import probability_words

if TYPE_CHECKING:
    from mixope.report.document import Document

EXPLAINED = (
    "Would these logs have predicted what their own loggers earned? Each labelled logger is left out in turn, its"
    " policy is evaluated from the rows of the others by {}, and the prediction is held against what the logger really"
    " earned.",
    "A prediction agrees if the two differ by no more than both errors allow. Loggers that agree speak for the logs and"
    " the estimator near these policies; a target may be farther away.",
)


def backtest_sheet(found: Backtest, shown: Document) -> Sheet:
    """One entry per logger, the summary, and the reasons where there is no prediction to use."""
    lines = [
        CardLine(
            kind(row),
            row.label,
            f"predicted {rounded(row.predicted)}, earned {rounded(row.earned)}, z {signed(row.z, 1)}"
            if row.supported
            else row.note or outcome(row),
        )
        for row in found.rows
    ]
    explained = tuple(words.format(found.estimator) for words in EXPLAINED)
    agree = f"{found.agree} of {len(found.supported)} predictions agree with what was earned"
    summary = Subtitle(found.summary, frozenset({TERMINAL}))
    chapters = (
        Chapter("backtest", "Predicted and earned", (*predictions(found), summary), short="Backtest"),
        notes_chapter("alerts", "Notes", found.notes, "Nothing about these logs needs mention.", ON_PAGE | {CARD}),
        *provenance_chapter(found.provenance),
        *manifest(shown),
    )
    return Sheet(
        Headline(kind(found), "backtest", agree),
        most_urgent(lines),
        chapters,
        note_lines([*_reasons(found), *found.notes]),
        headlines=(Headline(kind(found), "backtest", found.summary, explained),),
        brief=Brief(
            kind(found),
            "backtest",
            found.summary,
            ("logger", "predicted", "earned", "#z", "agrees"),
            tuple(_brief_row(row) for row in found.rows),
            granted=(*_reasons(found), *found.notes),
            sizes=f"{plural(len(found.rows), 'logger')} · {found.subject} · estimator {found.estimator}",
            page=True,
            besides=NOTES,
        ),
    )


def _brief_row(row: BacktestRow) -> tuple[SheetCell, ...]:
    """One logger in one line; without a prediction that can be used, only what it earned."""
    spread = max((high - low for low, high in _spans(row) if low is not None and high is not None), default=0.0) / 2
    predicted = rounded(row.predicted, spread) if row.supported else "–"
    return row.label, predicted, rounded(row.earned, spread), signed(row.z, 1), Signed(outcome(row), kind(row))


def _spans(row: BacktestRow) -> tuple[tuple[float | None, float | None], ...]:
    return (row.low, row.high), (row.earned_low, row.earned_high)


def predictions(found: Backtest) -> tuple[ChapterPart, ...]:
    """Every logger, what agreeing means, and why some cannot be predicted."""
    names = ("logger", "#predicted", "#earned", "#z", "#chance", "#uncovered", "agrees", "verdict")
    rows = tuple((row.label, *_cells(row)) for row in found.rows)
    title = f"what each logger earns, predicted from the rows of the others: {found.subject}"
    means = ""
    if found.check:
        means = (
            f"A prediction agrees if it is off by no more than {level_words(found.level)} of all predictions are by"
            " chance; “chance” is the probability that one of so many loggers is as far off. As one check, over all"
            " loggers together and the farthest of them, in standard deviations of a normal law:"
            f" {demand(found.check)}."
        )
    reasons = tuple(_reasons(found))
    return (
        FigureNamed("backtest"),
        SheetTable(title, names, rows, ("logger", "verdict"), most=SHOWN),
        Paragraph(means, places=ON_PAGE),
        *([Subtitle("Why some cannot be predicted", ON_PAGE)] if reasons else []),
        Sentences(reasons, ON_PAGE),
    )


def _reasons(found: Backtest) -> list[str]:
    return [Advice(f"{row.label}: ", row.note) for row in found.rows if not row.supported and row.note]


def _cells(row: BacktestRow) -> tuple[str | Signed, ...]:
    """Both values with their intervals, rounded alike; and the verdict on the prediction."""
    spans = _spans(row)
    wide = max((high - low for low, high in spans if low is not None and high is not None), default=None)
    spread = None if wide is None else wide / 2
    predicted, earned = (
        rounded(value, spread) + ("" if low is None else f"\n({rounded(low, spread)} to {rounded(high, spread)})")
        for value, (low, high) in zip((row.predicted, row.earned), spans, strict=True)
    )
    chance = "–" if row.chance is None else probability_words(row.chance)
    agrees = Signed(outcome(row), kind(row))
    return predicted, earned, signed(row.z, 1), chance, percent(row.uncovered_mass), agrees, row.verdict
