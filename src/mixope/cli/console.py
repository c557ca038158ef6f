"""Where output goes: results to stdout, everything else (notes, progress, errors) to stderr.

Consoles are made when they are used, so that they write to the streams of that moment.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import typer

from mixope.cli.wording import in_command_words
from mixope.errors import MixopeWarning

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_FILES = 110
_STYLES = {"error": "bold red", "interrupted": "bold yellow", "note": "cyan", "report": "green"}


def console(stream: TextIO | None = None) -> Console:
    """A console that takes words as they are: no markup, no emoji, a width of its own where there is no terminal."""
    from rich.console import Console

    stream = stream or sys.stdout
    fixed = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=fixed)


def print_json(text: str) -> None:
    """One JSON object on stdout, in UTF-8 whatever the locale."""
    typer.echo(text.encode())


def complain(kind: str, text: str) -> None:
    """A message on stderr: its kind, then the words, unwrapped so that paths can be copied."""
    from rich.text import Text

    message = Text.assemble((f"{kind}:", _STYLES[kind]), " ", text)
    console(sys.stderr).print(message, soft_wrap=True)


class Work(list[str]):
    """The notes heard while something takes time; and how far it is, shown on a terminal and nowhere else."""

    def __init__(self, what: str) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn

        super().__init__()
        screen = console(sys.stderr)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
        self.display = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self.display.add_task(what, total=None)

    def progress(self, done: int, total: int) -> None:
        """So many refits of so many."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        if len(self.display.columns) == 2:
            more = (BarColumn(), MofNCompleteColumn(), TextColumn("refits,"), TimeRemainingColumn(), TextColumn("left"))
            self.display.columns = (*self.display.columns, *more)
        self.display.update(self.display.task_ids[0], completed=done, total=total)


@contextmanager
def working(what: str) -> Iterator[Work]:
    """Show on a terminal that something takes time, and hear its warnings; after a failure they are told at once."""
    heard = Work(what)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MixopeWarning)
        try:
            with heard.display:
                yield heard
        except BaseException:
            tell(_messages(caught))
            raise
    heard += _messages(caught)


def tell(notes: Collection[str], besides: Collection[str] = ()) -> None:
    """Notes on stderr, except those that the result shows itself (``besides``)."""
    for note in dict.fromkeys(notes):
        if note not in besides:
            complain("note", in_command_words(note))


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(warning.message) for warning in caught]
