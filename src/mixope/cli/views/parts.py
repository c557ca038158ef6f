"""Small pieces that several views are made of."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from mixope.cli.wording import in_command_words

STATUS = {
    "pass": ("ok", "green"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
    "error": ("error", "bold red"),
    "warning": ("warn", "yellow"),
    "note": ("note", "cyan"),
}
VERDICT = {"trustworthy": "bold green", "caution": "bold yellow", "not supported by these logs": "bold red"}


def table(*columns: str, right: Sequence[str] = (), folded: Sequence[str] = ()) -> Table:
    """A table with a rule under its head; columns in ``right`` hold numbers, only those in ``folded`` may wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=name not in folded,
            overflow="fold",
            min_width=11 if name == "verdict" else None,
        )
    return made


def facts(*pairs: tuple[str, str | Text]) -> Table:
    """Names and what they are, in two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    return grid


def status(name: str) -> Text:
    """ok, warn, FAIL …, coloured."""
    words, style = STATUS[name]
    return Text(words, style=style)


def verdict(words: str) -> Text:
    """A verdict in its colour."""
    return Text(words, style=VERDICT.get(words, "bold"))


def notes(words: Sequence[str]) -> Table | None:
    """Notes, one a line."""
    return remarks([("note", line) for line in words])


def remarks(lines: Sequence[tuple[str, str]]) -> Table | None:
    """(status, sentence) one a line; nothing where there are none."""
    if not lines:
        return None
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for kind, sentence in lines:
        grid.add_row(status(kind), in_command_words(sentence))
    return grid


def bullets(lines: Sequence[str]) -> Table:
    """Sentences, one an item, indented under their dash."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row("-", line)
    return grid


def heading(words: str) -> Text:
    """The head of a section, after an empty line."""
    return Text(f"\n{words}", style="bold")
