"""Where output goes: results to stdout or into a page, everything else (notes, progress, errors) to stderr.

Consoles are made when they are used, so that they write to the streams of that moment. What records look like is a
matter of :mod:`mixope.report`; here are the words of the command line for what a reader could set.
"""

from __future__ import annotations

import errno
import io
import json as text
import os
import shlex
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from mixope.base.errors import UNSHOWABLE, DataError, MixopeWarning, Setting, UsageError, clean, phrased
from mixope.base.files import write_whole
from mixope.cli.characters import is_utf8
from mixope.cli.stopping import obey
from mixope.cli.volume import quiet, telling_times

if TYPE_CHECKING:
    from rich.console import Console

    from mixope.base.rendering import Record, ReportedRecord
    from mixope.engines import Engine

ARGUMENTS = "mixope.cli.arguments"
"""Where the context keeps the words of the command line."""
ENDINGS = (".html", ".htm")
WIDTH_OF_FILES = 110
NARROWEST = 40
"""Columns below which tables would lose what they hold; COLUMNS may be anything, 0 among it."""
_STYLES = {"error": "bold red", "interrupted": "bold yellow", "note": "cyan", "report": "green"}
_STYLES |= {"scan": "dim", "time": "dim"}
PICTURES = (".png", ".svg", ".pdf")
ASIDES = ("note", "report", "scan", "time")
"""The kinds of message that are not about a failure."""


_PHRASES = {
    "default": "--target-default uniform (or an action)",
    "actions": "--target-actions ACTION,ACTION,…",
    "format": "--format FORMAT",
    "one_policy": "give a table of one policy with --logger LABEL=FILE",
    "several_policies": "give it with --loggers",
    "inspect": "mixope inspect LOGS --target POLICY",
}
"""What is said in the same words whatever the value."""
_OPTIONS = {"epsilon": "--target-epsilon", "scale": "--target-scale", "law": "--target-law", "workers": "--threads"}
"""Options that have another name than in the library."""


def on_command_line(setting: Setting) -> str:
    """The words of the command line for what can be set."""
    value = setting.value
    match setting.name:
        case "columns":
            return " ".join(f"--column {'NAME' if k is ... else k}={_column(v)}" for k, v in value.items())
        case "roles":
            return " ".join(f"--role {name}={role}" for name, role in value.items())
        case "policy_column":
            return f"--target-column {value}=COLUMN, or rename the right column to {value} in the file"
        case "loggers":
            return f"--logger {'LABEL' if value is ... else value}=FILE"
        case name if name in _PHRASES:
            return _PHRASES[name]
        case "history" if isinstance(value, list):
            return f"--history {','.join(value)}"
        case name:
            option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
            return option if value is ... or value is True else f"{option} {value}"


def _column(value: Any) -> str:
    if isinstance(value, list):
        return "COLUMN,COLUMN" if value == [...] else ",".join(value)
    return "" if value is None else "COLUMN" if value is ... else str(value)


def console(stream: TextIO | None = None) -> Console:
    """A console that takes words as they are: no markup, no emoji, a width of its own where there is no terminal.

    Whatever is printed there, nothing in it moves the cursor, sets colours or turns the direction of the text.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Cleaned(Console):
        def render(self, *what: Any, **options: Any) -> Iterator[Segment]:
            for part in super().render(*what, **options):
                yield part if part.control else Segment(clean(part.text), part.style)

    stream = stream or sys.stdout
    fixed = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_OF_FILES
    made = Cleaned(file=stream, markup=False, emoji=False, highlight=False, width=fixed)
    made.width = max(made.width, NARROWEST)
    return made


def show(record: Record, **options: Any) -> None:
    """A record on stdout."""
    from mixope.report.terminal import view

    console().print(view(record, phrase=on_command_line, **options))


def present(
    record: Record, notes: Collection[str], json: bool, besides: Collection[str] = (), *files: Path | None
) -> None:
    """A result as it was asked for, with its notes; those ``besides`` it shows itself. ``files`` were written too."""
    tell(notes, besides=() if json else besides)
    if json:
        print_json(record.to_dict())
    else:
        show(record)
    for file in files:
        if file is not None:
            complain("report", str(file))


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on stdout, in ASCII unless the locale is UTF-8; what a terminal would obey is its number."""
    if not is_utf8():
        typer.echo(text.dumps(record, indent=2))
        return
    said = text.dumps(record, indent=2, ensure_ascii=False)
    typer.echo(UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", said).encode())


def describe(error: BaseException, words: str, exit_code: int) -> dict[str, Any]:
    """An error for programs: what it is, what is wrong, what to do next where that is known apart, the exit code."""
    facts, hint = words, None
    if isinstance(error, DataError):
        facts, hint = error.facts(on_command_line), error.hint and phrased(error.hint, on_command_line)
    return {"error": {"type": type(error).__name__, "message": facts, "hint": hint, "exit_code": exit_code}}


def complain(kind: str, words: str, screen: Console | None = None) -> None:
    """A message on stderr: its kind, then the words, unwrapped so that paths can be copied; errors only if quiet."""
    if quiet() and kind in ASIDES:
        return
    try:
        from rich.text import Text

        message = Text.assemble((f"{kind}:", _STYLES[kind]), " ", words)
        (screen or console(sys.stderr)).print(message, soft_wrap=True)
    except MemoryError:  # that is what it is about
        sys.stderr.write(f"{kind}: {clean(words)}\n")


def arrived(stream: TextIO) -> bool:
    """Whether all that was printed could be written.

    Else the rest goes nowhere: Python would fail on it as it ends, with an exit code of its own.
    """
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def refusal(error: OSError) -> str:
    """What the system refused, in words; if it was to take our output, the rest of that goes nowhere."""
    nameless = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if not arrived(sys.stdout) or nameless:  # files that we write have names
        return f"the output cannot be written: {error.strerror or error}"
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}{remedy(error)}"


def remedy(error: OSError) -> str:
    """What to do about a place that takes no files, or nothing where that is plain."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "; what was there before is unchanged. Make room, or name a place that has some"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "; what was there before is unchanged. Name a place that you may write to"
    return ""


class Work(list[str]):
    """The notes heard while something takes time; and how far it is, shown on a terminal and nowhere else."""

    def __init__(self, what: str) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn

        super().__init__()
        screen = console(sys.stderr)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
        self.display = Progress(*columns, console=screen, transient=True, disable=quiet() or not screen.is_terminal)
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
            with heard.display, telling_times(lambda kind, words: complain(kind, words, heard.display.console)):
                yield heard
                obey()
        except BaseException:
            tell(_messages(caught))
            raise
    heard += _messages(caught)


def taken(engine: Engine) -> list[str]:
    """How many scans came from a checkpoint, where there is one."""
    from mixope.engines import CheckpointedEngine

    if not isinstance(engine, CheckpointedEngine):
        return []
    size = f"{engine.kept.folder} holds {engine.kept.size() / 1e6:,.1f} MB"
    return [f"{engine.taken} of {engine.asked} scans were taken from the checkpoint; {size}"]


def tell(notes: Collection[str], besides: Collection[str] = ()) -> None:
    """Notes on stderr, except those that the result shows itself (``besides``)."""
    for note in dict.fromkeys(notes):
        if note not in besides:
            complain("note", phrased(note, on_command_line))


def _messages(caught: list[warnings.WarningMessage]) -> list[str]:
    return [
        found.message.args[0] if isinstance(found.message, MixopeWarning) else str(found.message) for found in caught
    ]


def check_page(path: Path | None) -> None:
    """Before the work begins: a report never takes the place of something that is not one."""
    if path is None:
        return
    if os.path.isdir(path):
        raise UsageError(f"--html {path} is a folder; name a file in it, such as {path / 'report.html'}")
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--html takes a name that ends in .html, got {str(path)!r}")


def write_page(record: ReportedRecord, path: Path, **extras: Any) -> Path:
    """Write a page, whole or not at all; a place that cannot be written to is a matter of words."""
    try:
        return record.report(path, phrase=on_command_line, **extras)
    except InterruptedError:
        raise
    except OSError as error:
        found = f"the report cannot be written to {path}: {error.strerror or error}{remedy(error)}"
        raise UsageError(found) from None


def check_picture(path: Path | None) -> None:
    """Before the work begins: a name whose ending says what kind of picture it is."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise UsageError(f"--picture takes a name that ends in {', '.join(PICTURES)}, got {str(path)!r}")


def write_picture(record: Record, path: Path) -> Path:
    """Draw a record into a file, whole or not at all."""
    from matplotlib.figure import Figure

    drawn, figure = io.BytesIO(), record.plot().figure
    assert isinstance(figure, Figure)  # a record without axes of others makes its own
    figure.savefig(drawn, format=path.suffix.lower().removeprefix("."), dpi=150)
    try:
        return write_whole(path, drawn.getvalue())
    except InterruptedError:
        raise
    except OSError as error:
        found = f"the picture cannot be written to {path}: {error.strerror or error}{remedy(error)}"
        raise UsageError(found) from None


def command_line(context: typer.Context) -> str:
    """The command as it was typed."""
    return shlex.join(["mixope", *context.meta.get(ARGUMENTS, ())])
