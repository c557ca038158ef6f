"""The sheet of distributions of returns: the mean and the worst of every target, then the quantiles."""

from __future__ import annotations

from mixope.base.errors import Advice
from mixope.checks import Verdict
from mixope.distributions import Amount, Returns, TargetReturns
from mixope.report.chapters import note_lines, notes_chapter, verdict_cell
from mixope.report.sheet import (
    CARD,
    IN_BRIEF,
    ON_PAGE,
    TERMINAL,
    Brief,
    CardLine,
    Chapter,
    ChapterPart,
    ChecksMade,
    FigureNamed,
    Headline,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetTable,
)
from mixope.report.words import by_urgency, kind, kind_of_verdict, plural, rounded

MOST = 4
"""Targets whose quantiles stand side by side; the tables of the record have all."""
NO_RISK = "no risk against return: "


def returns_sheet(found: Returns) -> Sheet:
    """Means and tails of all targets, then their quantiles."""
    first = found.main
    lines = tuple(
        CardLine(
            kind_of_verdict(each.verdict),
            each.target,
            f"mean {amount_words(each.mean)}, worst {amount_words(each.tail)}",
        )
        for each in found.targets
    )
    chapters = (
        Chapter("asked", "", (Paragraph(subject(found)),), places=frozenset({TERMINAL})),
        Chapter("amounts", "Mean and worst", (amounts_table(found), _quantiles(found))),
        Chapter("checks", "Checks", tuple(ChecksMade(each.checks, each.target) for each in found.targets)),
        notes_chapter("notes", "Notes", refusals(found), places=frozenset({CARD})),
    )
    return Sheet(
        Headline(kind_of_verdict(first.verdict), str(first.verdict), headline(found)),
        lines,
        chapters,
        note_lines(refusals(found)),
        brief=Brief(
            kind_of_verdict(first.verdict),
            verdict_cell(first.verdict).words,
            headline(found),
            ("target", "mean", found.main.tail.name, "verdict"),
            tuple(_brief_row(each) for each in found.targets),
            "Checks that did not pass",
            tuple(
                CardLine(kind(check), f"{each.target}: {check.name}", check.sentence, check.remedy or "")
                for each in found.targets
                for check in by_urgency(each.checks)
                if check.status != "pass"
            ),
            tuple(refusals(found)),
            f"{plural(found.n_episodes, 'episode')} · {found.estimand} · intervals at {found.level:.4g}",
        ),
    )


def _brief_row(found: TargetReturns) -> tuple[SheetCell, ...]:
    """One target in one line; a refused one has no numbers."""
    refused = found.verdict is Verdict.UNSUPPORTED
    numbers = ("–", "–") if refused else (amount_words(found.mean), amount_words(found.tail))
    return found.target, *numbers, verdict_cell(found.verdict)


def amount_words(amount: Amount) -> str:
    """A number with its interval."""
    if amount.interval is None:
        return rounded(amount.value)
    half = amount.interval.width / 2 or None
    low, high = (rounded(end, half) for end in (amount.interval.low, amount.interval.high))
    return f"{rounded(amount.value, half)} ({low} to {high})"


def subject(found: Returns) -> str:
    """What is asked, and of how many episodes."""
    return f"{found.estimand}, {found.estimand.unit}; intervals at {found.level:.4g}; {found.n_episodes:,} episodes"


def amounts_table(found: Returns) -> SheetTable:
    """The mean of every target's episodes, and that of the worst of them."""
    rows = tuple(
        (
            *(each.target, amount_words(each.mean), amount_words(each.tail)),
            *(f"{each.effective_episodes:,.0f}", verdict_cell(each.verdict)),
        )
        for each in found.targets
    )
    return SheetTable(
        "what an episode returns under each target",
        ("target", "mean", found.main.tail.name, "#effective episodes", "verdict"),
        rows,
        ("target", "verdict"),
        explained=f"on average, and on average over its worst {found.alpha:.3g}",
    )


def _quantiles(found: Returns) -> SheetTable:
    listed = found.targets[:MOST]
    rows = tuple(
        (share.name.removeprefix("quantile "), *(amount_words(each.quantiles[k]) for each in listed))
        for k, share in enumerate(found.main.quantiles)
    )
    names = tuple(each.target for each in listed)
    return SheetTable("return at most so much", ("share of episodes", *names), rows, names)


def refusals(found: Returns) -> list[str]:
    """The targets that are left out, each with the reason."""
    return [Advice(f"{name} is left out: ", reason) for name, reason in found.refused]


def doubts(found: Returns) -> list[str]:
    """Of every target that is not trustworthy, the check that weighs most."""
    first = [(each.target, by_urgency(each.checks)[0]) for each in found.targets]
    return [Advice(f"{target}: ", check.sentence) for target, check in first if check.status != "pass"]


def risk_chapter(found: Returns | None, because: str | None) -> tuple[Chapter, ...]:
    """Risk and return of compared targets: who leads, a table, what is in doubt; or why there is none."""
    if found is None:
        if not because:
            return ()
        none = Paragraph(Advice("No risk against return: ", because, "."), "missing", ON_PAGE)
        brief = Sentences((Advice(NO_RISK, because),), IN_BRIEF)
        return (Chapter("risk", "Risk and return", (none, brief)),)
    asked = f"{headline(found)}. {subject(found)[0].upper()}{subject(found)[1:]}; each interval is that of one number"
    parts: tuple[ChapterPart, ...] = (
        Paragraph(f"{asked} alone, for one look.", "lead", ON_PAGE),
        Paragraph(f"{headline(found)}: {subject(found)}, for one look", places=IN_BRIEF),
        FigureNamed("risk"),
        amounts_table(found),
        Sentences((*refusals(found), *doubts(found))),
    )
    return (Chapter("risk", "Risk and return", parts),)


def headline(found: Returns) -> str:
    """Who is best on average, and who in the worst episodes; what the logs do not support never leads."""
    if len(found.targets) == 1 and found.main.verdict is Verdict.UNSUPPORTED:
        return f"these logs support no answer on the episodes of “{found.main.target}”"
    if len(found.targets) == 1:
        return f"{amount_words(found.main.mean)} on average, {amount_words(found.main.tail)} in the worst episodes"
    sound = [each for each in found.targets if each.verdict is not Verdict.UNSUPPORTED]
    if not sound:
        return "these logs support no answer on any target's episodes"
    means, tails = (max(sound, key=lambda t: getattr(t, what).value) for what in ("mean", "tail"))
    of = "" if len(sound) == len(found.targets) else f" of the {len(sound)} that are supported"
    worst = f"in the worst {found.alpha:.3g} of episodes"
    if means is tails:
        return f"{means.target} has the highest mean{of}, and the highest {worst}"
    return f"{means.target} has the highest mean{of}; {tails.target} the highest {worst}"
