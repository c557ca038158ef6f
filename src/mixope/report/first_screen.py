"""The first screen: the verdict and its sentence, the numbers, why caution, what is taken for granted, how much data.

At most sixteen lines, whatever the width: what does not fit is in the whole rendering, and the last line says how to
get it. Sentences give way first, then the last rows of numbers; the headline never.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Phrase, Setting, clean, phrased
from mixope.report.layout import STYLE, shortened
from mixope.report.sheet import Brief, CardLine, SheetCell, Signed

MOST = 16
"""Lines."""
GRANTED, DOUBTS = 3, 4
"""Lines that are kept free for what is taken for granted, beside so many for the doubts."""
ONE_SENTENCE = 2
"""Lines under which a heading is not worth its place."""
HEADLINE = 4
"""Lines of the headline, where a name is very long."""
LONGEST_NAME, LONGEST_LABEL = 24, 44
ELLIPSIS = "…"
SEPARATOR = " · "


@dataclass(frozen=True)
class FirstScreen:
    """What a console prints of a record before anybody asks for more."""

    brief: Brief
    phrase: Phrase

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many lines as there is room for."""
        width = options.max_width
        head, last = (
            Text("\n").join(_cut(list(self._headline().wrap(console, width)), HEADLINE, width)),
            self._last(width),
        )
        rows = self._numbers(console, options, MOST - _height(console, options, head, last))
        room = MOST - _height(console, options, head, *rows, last)
        granted = self._granted(console, width)
        kept = min(len(granted), GRANTED) if room >= GRANTED + DOUBTS else 0
        doubts = self._doubts(console, width, room - kept)
        yield head
        yield from rows
        yield from doubts
        if room - len(doubts) >= ONE_SENTENCE:
            yield from _cut(granted, room - len(doubts), width)
        yield last

    def _headline(self) -> Text:
        style = STYLE[self.brief.kind]
        return Text.assemble((self.brief.word.upper(), style), "   ", _clean(self.brief.sentence, self.phrase))

    def _numbers(self, console: Console, options: ConsoleOptions, room: int) -> list[RenderableType]:
        """The rows of numbers under their heads, as many as there is room for."""
        listed = list(self.brief.rows)
        while listed:
            left = len(self.brief.rows) - len(listed)
            rows = [self._row(row) for row in listed]
            if self.brief.named:
                rows.insert(0, [Text(name.lstrip("#"), style="dim") for name in self.brief.heads])
            if left:
                rows.append([Text(f"{ELLIPSIS} and {left:,} more", style="dim")])
            made = self._table(rows)
            if _height(console, options, made) <= room or len(listed) == 1:
                return [made]
            listed.pop()
        return []

    def _table(self, rows: list[list[Text]]) -> Table:
        """Columns in line, those of numbers to the right; the first and the last may wrap."""
        made = Table.grid(padding=(0, 2, 0, 0))
        made.add_column(width=0)
        for k, name in enumerate(self.brief.heads):
            wraps = k in (0, len(self.brief.heads) - 1)
            made.add_column(no_wrap=not wraps, overflow="fold", justify="right" if name.startswith("#") else "left")
        for row in rows:
            made.add_row("", *row)
        return made

    def _row(self, row: tuple[SheetCell, ...]) -> list[Text]:
        cells = [
            Text(clean(cell.words), style=STYLE[cell.kind])
            if isinstance(cell, Signed)
            else Text(_clean(cell, self.phrase))
            for cell in row
        ]
        return [Text(_named(cells[0].plain, LONGEST_LABEL)), *cells[1:]]

    def _doubts(self, console: Console, width: int, room: int) -> list[Text]:
        """Each doubt under its name, with what to do next; the last one shortened to what there is room for."""
        listed = self.brief.doubts
        if not listed or room < ONE_SENTENCE:
            return []
        names = min(max(len(_clean(each.name, self.phrase)) for each in listed), LONGEST_NAME)
        lines = [Text(self.brief.why, style="bold")]
        for k, each in enumerate(listed):
            said = _wrapped(console, self._doubt(each), width - names - 4)
            rest, more = room - len(lines), len(listed) - k - 1
            if rest < 2 and (more or len(said) > rest):
                lines.append(Text(f"  {ELLIPSIS} and {more + 1:,} more", style="dim"))
                break
            said = _cut(said, rest - bool(more), width - names - 4)
            name = _named(_clean(each.name, self.phrase), names)
            for line, words in zip(said, [name, *[""] * len(said)], strict=False):
                lines.append(Text.assemble(f"  {words:<{names}}  ", line))
        return lines

    def _doubt(self, found: CardLine) -> str:
        said = _clean(found.sentence, self.phrase)
        remedy = _clean(found.remedy, self.phrase)
        return f"{_ended(said)} {_ended(remedy)}" if remedy else _ended(said)

    def _granted(self, console: Console, width: int) -> list[Text]:
        """What is taken for granted, in one paragraph."""
        said = [_clean(line, self.phrase) for line in dict.fromkeys(self.brief.granted)]
        if not said:
            return []
        body = _wrapped(console, SEPARATOR.join(said), width - 2)
        return [Text(self.brief.besides, style="bold"), *(Text.assemble("  ", line) for line in body)]

    def _last(self, width: int) -> Text:
        """The size of it all, and how to see the rest."""
        ways = [Setting("full"), *([Setting("page")] if self.brief.page else [])]
        more = "More: " + ", ".join(self.phrase(way) for way in ways)
        sizes = _clean(self.brief.sizes, self.phrase)
        gap = width - len(sizes) - len(more)
        between = " " * gap if gap >= 3 else "\n"
        return Text.assemble((f"{sizes}{between}" if sizes else ""), (more, "dim"))


def _clean(text: str, phrase: Phrase) -> str:
    return " ".join(shortened(clean(phrased(text, phrase))).split())


def _named(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}{ELLIPSIS}"


def _ended(sentence: str) -> str:
    """With a capital at its beginning and a full stop."""
    said = f"{sentence[:1].upper()}{sentence[1:]}"
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _wrapped(console: Console, text: str, width: int) -> list[Text]:
    return list(Text(text).wrap(console, max(width, 20)))


def _cut(lines: list[Text], most: int, width: int) -> list[Text]:
    """The first of them, with a sign where something is missing."""
    if most <= 0 or len(lines) <= most:
        return lines[: max(most, 0)]
    last = lines[most - 1].plain.rstrip()[: width - 2].rstrip()
    return [*lines[: most - 1], Text(last if last.endswith(ELLIPSIS) else f"{last} {ELLIPSIS}")]


def _height(console: Console, options: ConsoleOptions, *pieces: RenderableType) -> int:
    return sum(len(console.render_lines(piece, options)) for piece in pieces)
