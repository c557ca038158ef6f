"""The sheets of a selection of targets, and of the differences between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mixope.differences import Differences, Selection
from mixope.report.chapters import NOTES, ON_CARD, notes_chapter
from mixope.report.sheet import (
    IN_BRIEF,
    ON_PAGE,
    SHOWN,
    Brief,
    CardLine,
    Chapter,
    ChapterPart,
    FigureNamed,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetTable,
)
from mixope.report.words import NO_CONCLUSION, level_words, number, plural, rounded, short, standing, times
from mixope.uncertainty import Difference, probability_words

MOST_ON_CARD = 3


def selection_sheet(found: Selection) -> Sheet:
    """Which targets to take."""
    rows = tuple(
        ("–" if rank.place is None else str(rank.place), rank.target, short(rank.value, rank.interval), standing(rank))
        for rank in found.ranks
    )
    brief = Brief("", "", "", ("#", "target", "#value", "so"), rows, granted=found.alerts, besides=NOTES)
    return _sheet(found, found.alerts, (_which(found),), brief)


def differences_sheet(found: Differences) -> Sheet:
    """The question, which targets to take, and every pair."""
    asked = Chapter("asked", "", (Paragraph(f"{found.estimand}, {found.n_episodes:,} episodes"),))
    pairs = Chapter("differences", "Differences", differences_parts(found, "differences"))
    rows = tuple(
        (
            *(f"{pair.first} − {pair.second}", short(pair.value, pair.decisive)),
            f"{short(pair.decisive.low, pair.decisive)} to {short(pair.decisive.high, pair.decisive)}",
            pair.conclusion or NO_CONCLUSION,
        )
        for pair in (*found.pairs, *found.loggers)
    )
    sizes = f"{plural(found.n_episodes, 'episode')} · {found.estimand} · by {found.estimator}, intervals at"
    brief = Brief("", "", "", ("", "#difference", "interval", "so"), rows, granted=found.alerts, besides=NOTES)
    brief = replace(brief, sizes=f"{sizes} {found.level:.4g}")
    return _sheet(found.selection, found.alerts, (asked, _which(found.selection), pairs), brief)


def _which(chosen: Selection) -> Chapter:
    return Chapter("choice", f"which to take, by {chosen.estimator}", selection_parts(chosen, "selection"))


def _sheet(chosen: Selection, alerts: Sequence[str], chapters: tuple[Chapter, ...], brief: Brief) -> Sheet:
    sure = "good" if len(chosen.contenders) == 1 else "caution" if chosen.ranked else "bad"
    word = "one target is the best" if sure == "good" else "the best cannot be told apart" if chosen.ranked else ""
    word = "one target is ranked" if len(chosen.ranked) == 1 and not chosen.contenders else word
    return Sheet(
        Headline(sure, word or "no target can be ranked", chosen.summary),
        tuple(CardLine("caution", "note", alert) for alert in alerts[:MOST_ON_CARD]),
        (*chapters, notes_chapter("notes", "Notes", alerts, places=ON_CARD)),
        brief=replace(brief, kind=sure, word=word or "no target can be ranked", sentence=chosen.summary),
    )


def selection_parts(chosen: Selection, figure: str) -> tuple[ChapterPart, ...]:
    """Who is best, what to take, and of more than two targets the place of each and what is lost."""
    level = level_words(chosen.level)
    rows = tuple(
        (
            *("–" if rank.place is None else str(rank.place), rank.target),
            number(rank.value),
            "–" if rank.probability_best is None else probability_words(rank.probability_best),
            *(rank.span, standing(rank)),
        )
        for rank in chosen.ranks
    )
    losses = tuple((str(r.k), f"{r.expected:.3g}", f"{r.bound:.3g}", ", ".join(r.targets)) for r in chosen.losses)
    places = SheetTable(
        f"places by {chosen.estimator}",
        ("#by value", "target", "#value", "#P(best)", "#places", "so"),
        rows,
        ("target", "so"),
        explained="the chance that each target is the best, and the places it may have, for all of them together at"
        f" {level}; the last column asks for the best alone, which can be told more sharply",
        most=SHOWN,
    )
    lost = SheetTable(
        "what is lost if the first few are taken",
        ("#take the first", "#lost on average", f"#lost at most, at {chosen.level:.4g}", "which"),
        losses,
        ("which",),
        explained=f"against the best of all, on average given these estimates, and at most at {level}",
    )
    said: list[ChapterPart] = [
        Sentences((chosen.summary, *chosen.advice), IN_BRIEF),
        Sentences(chosen.advice or (chosen.summary,), ON_PAGE),
        FigureNamed(figure),
    ]
    if len(chosen.ranks) > 2 and chosen.regret:
        said += [places, lost]
    return (*said, Sentences(chosen.alerts))


def differences_parts(found: Differences, figure: str) -> tuple[ChapterPart, ...]:
    """The pairs, and how much narrower they are than from separate logs; and every target against every logger."""
    several = len(found.pairs) > 1
    held = "intervals that hold together" if several else "interval"
    whom = "" if found.compared == "all pairs" else " between the best and each of the others"
    return (
        FigureNamed(figure),
        pairs_table(
            f"differences{whom} by {found.estimator}, {held} at {found.level:.4g}",
            found.pairs,
            "and how many times narrower they are than from separate logs",
        ),
        pairs_table("against what loggers earn themselves", found.loggers, "on the same episodes"),
        Sentences(found.alerts),
    )


def pairs_table(title: str, pairs: Sequence[Difference], explained: str = "") -> SheetTable:
    """One row per pair."""
    rows = []
    for pair in pairs:
        half = pair.decisive.width / 2
        around = f"{rounded(pair.decisive.low, half)} to {rounded(pair.decisive.high, half)}"
        said = pair.conclusion or NO_CONCLUSION
        chance = probability_words(pair.probability_better)
        rows.append((pair.first, pair.second, rounded(pair.value, half), around, times(pair.narrower), chance, said))
    names = ("A", "B", "#A − B", "interval", "#narrower", "#P(A > B)", "so")
    return SheetTable(title, names, tuple(rows), ("A", "B", "so"), explained=explained, most=SHOWN)
