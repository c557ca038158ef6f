"""A sheet: everything that is said of a record, once, in the order in which a reader asks.

    record  →  Sheet  →  terminal · notebook card · page

    headline   the verdict, and the answer in a sentence
    urgent     what matters most about it: the checks that did not pass, with what to do next
    chapters   facts, tables, sentences, checks and the names of figures

A sheet holds words and no layout. Text is made safe to show, and remedies are put into the words of a surface, where
it is put out. What only one surface has room for says so (``places``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mixope.checks import Diagnostic
from mixope.report.words import by_urgency

TERMINAL, CARD, PAGE = "terminal", "card", "page"
EVERYWHERE = frozenset({TERMINAL, CARD, PAGE})
ON_PAGE = frozenset({PAGE})
IN_BRIEF = frozenset({TERMINAL, CARD})
"""Where there is no page beside it that says the same at length."""
Places = frozenset[str]
SHOWN = 40
"""Rows of a table, or lines of remarks, that a terminal shows of a list that may be of any length."""


@dataclass(frozen=True)
class Signed:
    """A cell that is an outcome: its word, and the kind that a colour or a sign shows."""

    words: str
    kind: str


SheetCell = str | Signed


@dataclass(frozen=True)
class SheetTable:
    """Columns whose names start with # hold numbers, ``wraps`` hold names, ``sentences`` hold sentences.

    ``explained`` goes on from the title where there is room. A terminal shows the first ``most`` rows and the ``last``
    ones.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[SheetCell, ...], ...]
    wraps: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    explained: str = ""
    most: int | None = None
    last: int = 0
    places: Places = EVERYWHERE


@dataclass(frozen=True)
class SheetFacts:
    """Names and what they are."""

    pairs: tuple[tuple[str, SheetCell], ...]
    places: Places = EVERYWHERE


@dataclass(frozen=True)
class Sentences:
    """One item per sentence."""

    lines: tuple[str, ...]
    places: Places = EVERYWHERE


@dataclass(frozen=True)
class Paragraph:
    """A text; its ``tone`` is plain, lead (what the chapter is about), missing (what is not there) or code."""

    words: str
    tone: str = "plain"
    places: Places = EVERYWHERE


@dataclass(frozen=True)
class ChecksMade:
    """All checks of one estimate; ``whose`` names the estimator."""

    made: tuple[Diagnostic, ...]
    whose: str = ""
    places: Places = EVERYWHERE

    @property
    def of_whom(self) -> str:
        """For a title."""
        return f" of {self.whose}" if self.whose else ""

    @property
    def urgent(self) -> tuple[Diagnostic, ...]:
        """Those that failed, then those that ask for caution."""
        return tuple(check for check in by_urgency(self.made) if check.status != "pass")

    @property
    def passed(self) -> tuple[Diagnostic, ...]:
        """The others."""
        return tuple(check for check in self.made if check.status == "pass")


@dataclass(frozen=True)
class FigureNamed:
    """The place of a figure, by its name; only pages have figures."""

    name: str
    otherwise: str = ""
    """What to say where there is none."""
    places: Places = ON_PAGE


@dataclass(frozen=True)
class Subtitle:
    """Whom the rest of a chapter is about."""

    words: str
    places: Places = EVERYWHERE


ChapterPart = SheetTable | SheetFacts | Sentences | Paragraph | ChecksMade | FigureNamed | Subtitle


@dataclass(frozen=True)
class Chapter:
    """A part of a sheet under a title; ``short`` is its title in the contents of a page."""

    name: str
    title: str
    parts: tuple[ChapterPart, ...]
    short: str = ""
    places: Places = EVERYWHERE

    def on(self, place: str) -> tuple[ChapterPart, ...]:
        """What a surface shows of it."""
        return tuple(part for part in self.parts if place in part.places and _holds(part))

    @property
    def contents(self) -> str:
        """Its title in a list of chapters."""
        return self.short or self.name.capitalize()


@dataclass(frozen=True)
class Headline:
    """A verdict, and the answer in a sentence; what explains it on a page."""

    kind: str
    word: str
    words: str
    explained: tuple[str, ...] = ()
    by: str = ""
    """What was asked, of whom, and how it was answered."""


@dataclass(frozen=True)
class CardLine:
    """One thing that matters, with the outcome that its sign shows."""

    kind: str
    name: str
    sentence: str
    remedy: str = ""
    """What to do about it."""


@dataclass(frozen=True)
class Brief:
    """The first screen: a verdict in a word and the sentence that answers, numbers, doubts, what is taken for granted.

    ``heads`` name the columns of ``rows``, as those of a table, and may all be empty. ``why`` stands above the doubts,
    ``sizes`` is the last line; ``page`` says that a page can be made.
    """

    kind: str
    word: str
    sentence: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[SheetCell, ...], ...] = ()
    why: str = ""
    doubts: tuple[CardLine, ...] = ()
    granted: tuple[str, ...] = ()
    sizes: str = ""
    page: bool = False
    besides: str = "Taken for granted"
    """What stands above the last sentences."""

    @property
    def named(self) -> bool:
        """Whether the columns have names."""
        return any(name.lstrip("#") for name in self.heads)


@dataclass(frozen=True)
class Sheet:
    """What is said of a record.

    ``brief`` is the first screen; where there is none, the ``headline`` with the lines ``under`` it is. ``remarks`` are
    sentences with their status. A page opens with ``headlines``, of several answers under a ``title`` of all.
    """

    headline: Headline
    urgent: tuple[CardLine, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    opening: tuple[str, ...] = ()
    title: str = ""
    headlines: tuple[Headline, ...] = field(default=())
    brief: Brief | None = None
    under: tuple[str, ...] = ()

    def on(self, place: str) -> tuple[Chapter, ...]:
        """The chapters that a surface shows; on a page all that it has are shown, elsewhere those that hold a part."""
        return tuple(one for one in self.chapters if place in one.places and (place == PAGE or one.on(place)))


def _holds(part: ChapterPart) -> bool:
    """Whether there is something to show."""
    match part:
        case SheetTable():
            return bool(part.rows)
        case SheetFacts():
            return bool(part.pairs)
        case Sentences():
            return bool(part.lines)
        case ChecksMade():
            return bool(part.made)
        case Paragraph():
            return bool(part.words)
    return True


def most_urgent(lines: Sequence[CardLine], most: int = 3) -> tuple[CardLine, ...]:
    """Those that matter most: failed, then warned, in the order of the checks; of those that passed, the first."""
    doubts = [line for line in lines if line.kind in ("bad", "caution")]
    return tuple(sorted(doubts or lines, key=lambda line: _URGENT[line.kind])[:most])


_URGENT = {"bad": 0, "caution": 1, "good": 2, "reference": 3}
