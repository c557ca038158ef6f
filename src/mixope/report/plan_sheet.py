"""The sheet of a plan: how much more data are needed, and of what."""

from __future__ import annotations

from mixope.planning import SURE, Need, Plan
from mixope.report.chapters import NOTES, note_lines, notes_chapter
from mixope.report.sheet import (
    CARD,
    TERMINAL,
    Brief,
    Chapter,
    Headline,
    Sheet,
    SheetFacts,
    SheetTable,
    Subtitle,
)
from mixope.report.words import kind_of_verdict, level_words, number, whole


def plan_sheet(found: Plan) -> Sheet:
    """What is needed first, then what it rests on."""
    enough = found.half_width <= found.precision
    kind = kind_of_verdict(found.verdict)
    pilot = pilot_words(found)
    facts = SheetFacts((("asked", found.question), ("pilot", pilot), ("its verdict", str(found.verdict))))
    rows = tuple(
        (need.what, whole(need.have), "no amount" if need.need is None else whole(need.need), _range(need))
        for need in found.needs
    )
    needs = SheetTable("what is needed", ("of", "#the pilot has", "#needed", f"range, at {SURE:.0%}"), rows)
    chapters = (
        Chapter("answer", "", (Subtitle(headline(found)), facts), places=frozenset({TERMINAL})),
        Chapter("needs", "What is needed", (needs,)),
        notes_chapter("notes", "Notes", found.notes, places=frozenset({CARD})),
    )
    return Sheet(
        Headline(
            "caution" if kind == "good" and not enough else kind,
            "the pilot is enough" if enough else "more data are needed",
            headline(found),
        ),
        (),
        chapters,
        note_lines(found.notes),
        brief=Brief(
            "caution" if kind == "good" and not enough else kind,
            "the pilot is enough" if enough else "more data are needed",
            headline(found),
            ("", ""),
            (
                ("asked", found.question),
                ("pilot", f"{pilot}; its verdict: {found.verdict}"),
                *((need.what, f"{whole(need.have)} in the pilot, {_needed(need)}") for need in found.needs),
            ),
            granted=found.notes,
            besides=NOTES,
        ),
    )


def headline(found: Plan) -> str:
    """What is needed, in one sentence."""
    ways = [words for need in found.needs if (words := _way(need))]
    if not ways:
        return f"No amount of such data gives ± {number(found.precision)}."
    if found.half_width <= found.precision:
        return f"The pilot is enough: it gives ± {found.half_width:.3g}, and ± {number(found.precision)} is asked."
    return f"± {number(found.precision)} takes {' or '.join(ways)}."


def _way(need: Need) -> str | None:
    if need.need is None:
        return None
    return f"{whole(need.need)} {need.what} ({_range(need)})"


def _needed(need: Need) -> str:
    return "no amount is enough" if need.need is None else f"{whole(need.need)} needed ({_range(need)})"


def _range(need: Need) -> str:
    return "–" if need.low is None or need.high is None else f"{whole(need.low)} to {whole(need.high)}"


def pilot_words(found: Plan) -> str:
    """What the pilot knows."""
    watched = ", however often one looks" if found.sequential else ""
    return f"{number(found.value)} ± {found.half_width:.3g} at {level_words(found.level)}{watched}"
