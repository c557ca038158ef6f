"""Chapters and cells that sheets of several records share."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from mixope.answers.estimate import Provenance
from mixope.checks import Diagnostic, Verdict
from mixope.report.sheet import (
    CARD,
    ON_PAGE,
    CardLine,
    Chapter,
    ChapterPart,
    Paragraph,
    Places,
    Sentences,
    SheetFacts,
    SheetTable,
    Signed,
)
from mixope.report.words import kind, kind_of_verdict, whole

if TYPE_CHECKING:
    from mixope.report.document import Document

LIBRARIES = ("numpy", "scipy", "pyarrow", "duckdb", "scikit-learn", "matplotlib")
ON_CARD = frozenset({CARD})
NOTES = "Notes"
NO_COMMAND = "No command: this report was made from a program, or the command was not recorded."


def card_line(found: Diagnostic) -> CardLine:
    """A check among what matters most."""
    return CardLine(kind(found), found.name, found.sentence, found.remedy or "")


def verdict_cell(verdict: Verdict | str) -> Signed:
    """A verdict in few words."""
    words = str(verdict).removesuffix(" by these logs").removesuffix(" only")
    return Signed(words, kind_of_verdict(Verdict(verdict)))


def note_lines(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Sentences as remarks, each once."""
    return tuple(("note", line) for line in dict.fromkeys(lines))


def notes_chapter(
    name: str, title: str, lines: Iterable[str], otherwise: str = "", places: Places = ON_PAGE
) -> Chapter:
    """One line per note, each once; ``otherwise`` is said on a page where there are none."""
    every = tuple(dict.fromkeys(lines))
    parts: list[ChapterPart] = [Sentences(every)]
    if otherwise and not every:
        parts.append(Paragraph(otherwise, places=ON_PAGE))
    return Chapter(name, title, tuple(parts), places=places)


def provenance_chapter(known: Provenance | None) -> tuple[Chapter, ...]:
    """Version, seed, engine and fingerprints, where no manifest has them."""
    if known is None:
        return ()
    pairs = [("mixope", known.version), ("seed", str(known.seed)), ("engine", known.engine)]
    pairs += [("logs", known.logs_fingerprint), ("target", known.target_fingerprint)]
    rows = tuple((name, found) for name, found in pairs if found)
    table = SheetTable("", ("what", "which"), rows)
    return (Chapter("provenance", "Where it comes from", (table,), places=ON_CARD),)


def manifest(shown: Document) -> tuple[Chapter, ...]:
    """How to make the page again: command, versions, seed, fingerprints of everything that was read."""
    known = shown.provenance
    if known is None:
        return ()
    asked = Paragraph(NO_COMMAND, "missing") if shown.command is None else Paragraph(shown.command, "code")
    facts = [
        ("versions", ", ".join(f"{name} {found}" for name, found in versions(known))),
        ("seed", str(known.seed)),
        ("engine", known.engine),
        ("logs", known.logs_fingerprint),
        *((f"target “{name}”", mark) for name, mark in shown.targets),
    ]
    rows = tuple(
        (str(each.get("path", "–")), whole(each.get("rows")), str(each.get("sha256", "–"))) for each in known.inputs
    )
    inputs = SheetTable("inputs", ("input", "#rows", "sha256"), rows, ("input",), ("sha256",))
    last = inputs if rows else Paragraph("No input was recorded.", "missing")
    return (Chapter("manifest", "Manifest", (asked, SheetFacts(tuple(facts)), last), places=ON_PAGE),)


def versions(provenance: Provenance) -> list[tuple[str, str]]:
    """What computed the result; no date and no machine, so that the same record gives the same bytes."""
    found = [("mixope", provenance.version), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
