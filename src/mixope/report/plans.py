"""A plan on a terminal: how much more data are needed, and of what."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from mixope.base.errors import Phrase, in_python
from mixope.planning import SURE, Need, Plan
from mixope.report.layout import Cell, Pieces, facts, notes, remarks, table
from mixope.report.words import level_words, number, whole


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


def _range(need: Need) -> str:
    return "–" if need.low is None or need.high is None else f"{whole(need.low)} to {whole(need.high)}"


def pilot_words(found: Plan) -> str:
    """What the pilot knows."""
    watched = ", however often one looks" if found.sequential else ""
    return f"{number(found.value)} ± {found.half_width:.3g} at {level_words(found.level)}{watched}"


def plan_view(found: Plan, phrase: Phrase = in_python) -> Group:
    """What is needed first, then what it rests on."""
    lines: list[tuple[str, Cell]] = [("asked", found.question), ("pilot", pilot_words(found))]
    lines.append(("its verdict", str(found.verdict)))
    rows = [
        (need.what, whole(need.have), "no amount" if need.need is None else whole(need.need), _range(need))
        for need in found.needs
    ]
    head = ("of", "#the pilot has", "#needed", f"range, at {SURE:.0%}")
    pieces: Pieces = [Text(headline(found), style="bold"), facts(lines), table(head, rows)]
    return Group(*pieces, *remarks(notes(found.notes), phrase))
