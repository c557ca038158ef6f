"""Sheets on a terminal: one rendering, which ``print`` and the command line share.

:func:`view` gives something that a ``rich`` console prints in colours and at its own width; :func:`text` is the same in
plain characters. Text goes in as ``rich`` text, never as markup, so that a logger named ``[red]`` keeps its name.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Phrase, clean, in_python, phrased
from mixope.estimators import Entry
from mixope.report.first_screen import FirstScreen
from mixope.report.layout import STYLE, Cell, Pieces, advice, bullets, facts, heading, remarks, status, table
from mixope.report.sheet import (
    TERMINAL,
    Chapter,
    ChapterPart,
    ChecksMade,
    FigureNamed,
    Paragraph,
    Sentences,
    Sheet,
    SheetCell,
    SheetFacts,
    SheetTable,
    Signed,
    Subtitle,
)
from mixope.report.sheets import sheet
from mixope.report.words import remedies

WIDTH = 110
"""Columns where there is no terminal to ask."""


def text(record: Any, *, full: bool = False) -> str:
    """The record as plain characters, on lines of a fixed width: its first screen, or all of it."""
    return plain(view(record, full=full))


def plain(what: RenderableType, width: int = WIDTH) -> str:
    """What a console would print, without colours."""
    page = io.StringIO()
    console = Console(file=page, width=width, color_system=None, force_jupyter=False, force_terminal=False)
    console.print(what)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


def view(record: Any, *, full: bool = False, phrase: Phrase = in_python, **extras: Any) -> RenderableType:
    """The first screen of a record, or all of it; ``phrase`` has the words for what the reader could set."""
    shown = sheet(record, **extras)
    return whole(shown, phrase) if full or shown.brief is None else FirstScreen(shown.brief, phrase)


def whole(shown: Sheet, phrase: Phrase) -> Group:
    """Every chapter that a terminal has room for, then the remarks."""
    pieces: Pieces = []
    for chapter in shown.on(TERMINAL):
        pieces += _chapter(chapter, phrase, untitled=not pieces)
    if pieces and isinstance(pieces[0], Text):
        pieces[0] = Text(pieces[0].plain.lstrip("\n"), style=pieces[0].style)
    said = remarks(shown.remarks, phrase)
    return Group(*pieces, *([Text(), *said] if said else []))


def _chapter(found: Chapter, phrase: Phrase, *, untitled: bool) -> Pieces:
    """Its parts; under its title, unless its first part has one, or facts that come first need none."""
    parts = found.on(TERMINAL)
    first = parts[0]
    named = isinstance(first, (Subtitle, ChecksMade)) or (isinstance(first, SheetTable) and first.title)
    bare = untitled and isinstance(first, (SheetFacts, Paragraph))
    pieces: Pieces = [] if bare or named or not found.title else [heading(found.title)]
    for part in parts:
        pieces += _part(part, phrase)
    return pieces


def _part(part: ChapterPart, phrase: Phrase) -> Pieces:
    match part:
        case SheetFacts():
            return [facts((name, _cell(value, phrase)) for name, value in part.pairs)]
        case SheetTable():
            return [*([heading(part.title)] if part.title else []), sheet_table(part, phrase)]
        case Sentences():
            return [bullets(phrased(line, phrase) for line in part.lines)]
        case Paragraph():
            return [Text(clean(phrased(part.words, phrase)), style="dim" if part.tone == "missing" else "")]
        case Subtitle():
            return [heading(part.words)]
        case ChecksMade():
            return [heading(f"checks{part.of_whom}"), *_checks(part, phrase)]
        case FigureNamed():
            return []


def _checks(found: ChecksMade, phrase: Phrase) -> Pieces:
    rows = [(status(check.status), check.name, phrased(check.sentence, phrase)) for check in found.made]
    return [table(("", "check", "in words"), rows, folded=("in words",)), *advice(remedies(found.made), phrase)]


def sheet_table(found: SheetTable, phrase: Phrase = in_python) -> Table:
    """A table in the characters of a terminal."""
    rows = [[_cell(cell, phrase) for cell in row] for row in found.rows]
    return table(found.columns, rows, (*found.wraps, *found.sentences), most=found.most, last=found.last)


def _cell(cell: SheetCell, phrase: Phrase) -> Cell:
    return Text(clean(cell.words), style=STYLE[cell.kind]) if isinstance(cell, Signed) else phrased(cell, phrase)


KNOWN = "needs to know the loggers?"


def registry_view(registry: Mapping[str, Entry]) -> Table:
    """One estimator per line."""
    rows = [
        (name, entry.family, "yes" if "features" in entry.takes else "no", entry.needs or "no", entry.when)
        for name, entry in registry.items()
    ]
    return table(("name", "family", "vectors", KNOWN, "when to use it"), rows, folded=(KNOWN, "when to use it"))
