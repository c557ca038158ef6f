"""The sheet of an experiment: the decision on every arm first, then how the difference goes on from what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mixope.experiments.records import ArmResult, Day, Experiment, Line
from mixope.report import trial_words as say
from mixope.report.chapters import (
    NOTES,
    card_line,
    manifest,
    note_lines,
    notes_chapter,
    provenance_chapter,
    verdict_cell,
)
from mixope.report.difference_words import amount, reach
from mixope.report.sheet import (
    CARD,
    IN_BRIEF,
    ON_PAGE,
    TERMINAL,
    Brief,
    Chapter,
    ChapterPart,
    ChecksMade,
    FigureNamed,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetFacts,
    SheetTable,
    Signed,
    Subtitle,
    most_urgent,
)
from mixope.report.words import by_urgency, level_words, percent, plural, rounded
from mixope.uncertainty import Difference, probability_words

if TYPE_CHECKING:
    from mixope.report.document import Document

ON_TERMINAL = frozenset({TERMINAL})


def experiment_sheet(found: Experiment, shown: Document) -> Sheet:
    """Every arm on every metric, then what all of them rest on."""
    arm = found.main
    others = [f"{one.arm} on {one.metric}: {say.headline(found, one)}" for one in found.arms[1:]]
    who = f"{say.who(found)}; the state is {', '.join(found.states)}."
    chapters = (
        *(chapter for k, one in enumerate(found.arms) for chapter in _arm(found, one, k)),
        *_rails(found),
        *_groups(found),
        Chapter("who", "", (Paragraph(f"{say.who(found)}; state: {', '.join(found.states)}"),), places=ON_TERMINAL),
        notes_chapter("alerts", "Notes", found.notes, "Nothing about this table needs mention."),
        notes_chapter("notes", "Notes", [*others, *found.notes], places=frozenset({CARD})),
        *provenance_chapter(found.provenance),
        *manifest(shown),
    )
    return Sheet(
        Headline(say.kind(arm), str(arm.long_run.verdict), say.headline(found, arm)),
        most_urgent([card_line(check) for check in arm.long_run.checks]),
        chapters,
        note_lines(found.notes),
        opening=(who,),
        headlines=tuple(_headline(found, one) for one in found.arms),
        brief=_brief(found),
    )


def _brief(found: Experiment) -> Brief:
    """The sentence, what the test showed against the long run, why caution; of several arms, a row for each."""
    arm, several = found.main, len(found.arms) > 1
    rows: list[tuple[SheetCell, ...]] = []
    for one in found.arms:
        whose = f"{one.arm}, {one.metric}: " if several else ""
        rows.append((f"{whose}during the test", *_ends(one.naive)))
        refused = one.decision == "not supported"
        rows.append((f"{whose}in the long run", *(("–", "not supported") if refused else _ends(one.long_run.effect))))
    rows += [(f"guardrail {rail.metric}, {rail.arm}", *_ends(rail.effect, rail.status)) for rail in found.guardrails]
    checks = arm.long_run.checks
    doubts = tuple(card_line(check) for check in by_urgency(checks) if check.status != "pass")
    verdict = verdict_cell(arm.long_run.verdict)
    why = f"Why {verdict.words} ({len(doubts)} of {plural(len(checks), 'check')})"
    sizes = f"{say.who(found)} · state: {', '.join(found.states)}"
    sentence = say.headline(found, arm)
    return Brief(
        *(say.kind(arm), verdict.words, sentence, ("", "#", ""), tuple(rows), why, doubts, found.notes, sizes),
        page=True,
        besides=NOTES,
    )


def _ends(effect: Difference, status: str = "") -> tuple[str, str]:
    around = f"({level_words(effect.interval.level)}: {reach(effect)})"
    return amount(effect.value, effect.standard_error), f"{around} {status}".rstrip()


def _headline(found: Experiment, arm: ArmResult) -> Headline:
    said = say.sentence(f"{say.chance(arm)}; {say.trust(arm)}")
    return Headline(say.kind(arm), str(arm.long_run.verdict), say.headline(found, arm), (said,))


def _arm(found: Experiment, arm: ArmResult, k: int) -> Iterator[Chapter]:
    """One arm on one metric: the decision, the ways to compute it, its path, and what speaks against it."""
    called = f"{arm.arm} less {found.control}, {arm.metric}"

    def short(words: str) -> str:
        return f"{arm.arm}, {arm.metric}: {words.lower()}" if len(found.arms) > 1 else words

    facts = SheetFacts(tuple(_facts(arm)))
    yield Chapter(f"answer-{k}", "", (Subtitle(say.headline(found, arm)), facts), places=ON_TERMINAL)
    path = (FigureNamed(f"path-{k}"), _lines(arm), _path(found, arm))
    yield Chapter(f"path-{k}", f"{called}: from the test to the long run", path, short("The difference"))
    parts = say.parts(arm)
    why = (Paragraph(say.sentence(parts) if parts else "", places=ON_PAGE), _drivers(found, arm))
    yield Chapter(f"states-{k}", f"{called}: the states behind it", why, short("States"))
    if arm.sensitivity is not None:
        flip: tuple[ChapterPart, ...] = (
            Sentences(tuple(one.sentence for one in arm.sensitivity.robustness), ON_PAGE),
            SheetTable(
                "what would flip it",
                ("assumption", "in words"),
                tuple((each.assumption, each.sentence) for each in arm.sensitivity.robustness),
                sentences=("in words",),
                places=IN_BRIEF,
            ),
            Sentences(tuple(say.compared(arm.sensitivity))),
            FigureNamed(f"flip-{k}"),
            FigureNamed(f"memory-{k}"),
        )
        yield Chapter(f"flip-{k}", f"{called}: what would flip it", flip, short("What would flip it"))
    checks = (ChecksMade(arm.long_run.checks),)
    yield Chapter(f"checks-{k}", f"{called}: checks behind the verdict", checks, short("Checks"))


def _facts(arm: ArmResult) -> Iterator[tuple[str, SheetCell]]:
    yield "verdict", Signed(str(arm.long_run.verdict), say.kind(arm))
    yield "how sure", say.chance(arm)
    if said := say.parts(arm):
        yield "why", said
    for check in arm.long_run.checks:
        if check.status == "fail":
            yield "refused", check.sentence
    yield "checks", say.trust(arm)


def _lines(arm: ArmResult) -> SheetTable:
    names = ("method", "#difference", "interval", f"#P({arm.arm} better)", "what it is")
    rows = tuple(_line(line) for line in arm.lines)
    return SheetTable("ways to compute the difference", names, rows, sentences=("what it is",))


def _line(line: Line) -> tuple[SheetCell, ...]:
    found = line.effect
    value = amount(found.value, found.standard_error)
    return line.name, value, reach(found), probability_words(found.probability_better), line.meaning


def _path(found: Experiment, arm: ArmResult) -> SheetTable:
    days = {day.day: day for day in arm.days}
    rows = tuple(_day(days[moment]) for moment in say.moments(found, arm))
    title = f"{arm.arm} less {found.control}, by {found.period} since entry"
    return SheetTable(title, (f"#{found.period}", "#seen", "#predicted", "interval"), rows, places=IN_BRIEF)


def _day(day: Day) -> tuple[SheetCell, ...]:
    error = (day.high - day.low) / 4
    seen = ""
    if day.seen is not None:
        seen = f"{amount(day.seen, day.seen_error)} ± {rounded(day.seen_error, day.seen_error)}"
    return (
        str(day.day + 1),
        seen,
        amount(day.predicted, error),
        f"{amount(day.low, error)} to {amount(day.high, error)}",
    )


def _drivers(found: Experiment, arm: ArmResult) -> SheetTable:
    error = arm.long_run.effect.standard_error
    rows = tuple(
        (
            ", ".join(f"{name} {value}" for name, value in driver.state.items()),
            percent(driver.control_share, 1),
            percent(driver.treatment_share, 1),
            amount(driver.at_once, error),
            amount(driver.carried, error),
        )
        for driver in arm.drivers
    )
    names = ("state", f"#share under {found.control}", f"#share under {arm.arm}", "#at once", "#carried over")
    return SheetTable("the states behind it", names, rows, explained="by what they add to the difference")


def _rails(found: Experiment) -> Iterator[Chapter]:
    if not found.guardrails:
        return
    rows = tuple(
        (
            f"{rail.metric}, {rail.arm}",
            Signed(rail.status, say.rail_kind(rail)),
            amount(rail.effect.value, rail.effect.standard_error),
            reach(rail.effect),
            f"should be {rail.side} {rail.bound:g}",
        )
        for rail in found.guardrails
    )
    names = ("metric", "result", "#long-run difference", "interval", "bound")
    table = SheetTable("guardrails", names, rows, ("metric",), explained="what must not become worse")
    yield Chapter("guardrails", "Guardrails", (table,))


def _groups(found: Experiment) -> Iterator[Chapter]:
    if not found.subgroups:
        return
    column, rows = found.subgroups[0].column, []
    for group in found.subgroups:
        effect, plain = group.long_run.effect, group.naive
        seen, value = amount(plain.value, plain.standard_error), amount(effect.value, effect.standard_error)
        whose = f"{group.arm}, {group.metric}"
        rows.append((group.value, f"{group.units:,}", whose, seen, value, reach(effect), str(group.long_run.verdict)))
    names = (column, "#units", "of", "#seen", "#long run", "interval", "verdict")
    table = SheetTable(f"by {column} at entry", names, tuple(rows), (column, "verdict"))
    yield Chapter("subgroups", f"By {column} at entry", (table,), "Groups")
