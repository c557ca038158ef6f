"""What records on a terminal are made of: tables, facts, remarks, and the characters of all that.

Text goes in as ``rich`` text, never as markup, so that a logger named ``[red]`` keeps its name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mixope.base.errors import Phrase, clean, in_python, phrased
from mixope.report.sheet import SHOWN
from mixope.report.words import NEXT

STYLE = {"good": "bold green", "caution": "bold yellow", "bad": "bold red", "reference": "dim"}
STATUS = {
    "pass": ("ok", "green"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
    "error": ("error", "bold red"),
    "warning": ("warn", "yellow"),
    "note": ("note", "cyan"),
}
LONGEST, BEGINNING, END = 1_200, 700, 200
"""Characters of a label or sentence that a terminal shows, and of a longer one its two ends."""
ALL = "JSON and reports have all of them"
Cell = str | Text
Pieces = list[RenderableType]


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    folded: Container[str] = (),
    *,
    most: int | None = None,
    last: int = 0,
) -> Table:
    """A table with a rule under its head; columns whose names start with # hold numbers, ``folded`` ones may wrap.

    Of more than ``most`` rows it has the first and the ``last`` ones, and says how many are between them.
    """
    rows = list(rows)
    rest = 0 if most is None else max(len(rows) - most, 0)
    if rest:
        rest += 1  # for the row that says so
        place = len(rows) - rest - last
        rows = [*rows[:place], [more(rest), *[""] * (len(columns) - 1)], *rows[place + rest :]]
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(
            name.lstrip("#"),
            justify="right" if name.startswith("#") else "left",
            no_wrap=name not in folded,
            overflow="fold",
            min_width=11 if name == "verdict" else None,
        )
    for row in rows:
        made.add_row(*map(_cell, row))
    if rest:
        made.caption, made.caption_justify = ALL, "left"
    return made


def more(rest: int) -> str:
    """In the place of what is not shown."""
    return f"… and {rest:,} more"


def facts(pairs: Iterable[tuple[str, Cell]]) -> Table:
    """Names and what they are, in two columns."""
    return grid(((Text(name, style="dim"), value) for name, value in pairs), gap=2)


def bullets(lines: Iterable[str]) -> Table:
    """Sentences, one per item, indented under their dash."""
    return grid(("-", line) for line in lines)


def remarks(lines: Sequence[tuple[str, str]], phrase: Phrase = in_python) -> Pieces:
    """(status, sentence), one per line; nothing where there are none, and a bounded number where there are many."""
    if len(lines) > SHOWN:
        lines = [*lines[: SHOWN - 1], ("note", f"{more(len(lines) - SHOWN + 1)}: {ALL}")]
    return [grid(((status(name), phrased(line, phrase)) for name, line in lines), gap=2)] if lines else []


def advice(lines: Iterable[tuple[str, str]], phrase: Phrase = in_python) -> Pieces:
    """What to do about each check that did not pass; nothing where all passed."""
    listed = [(Text(name, style="dim"), phrased(words, phrase)) for name, words in lines]
    return [heading(f"{NEXT} (docs/verdicts.md says more)"), grid(listed, gap=2)] if listed else []


def notes(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Sentences as remarks."""
    return [("note", line) for line in lines]


def grid(lines: Iterable[Sequence[Cell]], gap: int = 1, right: int = 0) -> Table:
    """Columns without a head: the last may wrap, the first ``right`` hold numbers."""
    listed = [[_cell(cell) for cell in line] for line in lines]
    made = Table.grid(padding=(0, gap))
    for k in range(len(listed[0]) if listed else 0):
        last = k == len(listed[0]) - 1
        made.add_column(no_wrap=not last, overflow="fold", justify="right" if k < right else "left")
    for line in listed:
        made.add_row(*line)
    return made


def heading(words: str) -> Text:
    """The head of a section, after an empty line."""
    return Text(f"\n{clean(words)}", style="bold")


def _cell(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(shortened(clean(cell)))


def shortened(text: str) -> str:
    """A text of bounded length: of a long one its beginning and its end, and how much is between them."""
    if len(text) <= LONGEST:
        return text
    rest = len(text) - BEGINNING - END
    return f"{text[:BEGINNING]} … ({rest:,} more characters) … {text[len(text) - END :]}"


def status(name: str) -> Text:
    """A status in its colour."""
    words, style = STATUS[name]
    return Text(words, style=style)
