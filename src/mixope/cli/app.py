"""The application: its commands, and what becomes of their errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mixope.base import plugins
from mixope.base.errors import MixopeError, UsageError, clean
from mixope.cli import (
    backtest,
    compare,
    demo,
    evaluate,
    experiment,
    inspect,
    plan,
    reproduce,
    returns,
    signatures,
    simulate,
)
from mixope.cli import options as o
from mixope.cli.characters import accept_all
from mixope.cli.help import GroupedHelp, PlainHelp
from mixope.cli.hints import add_hint
from mixope.cli.output import ARGUMENTS, arrived, complain, console, describe, on_command_line, print_json, refusal
from mixope.cli.stopping import INTERRUPTED, STOPPED, finish, is_told, listen, stopped, told
from mixope.cli.streams import fill
from mixope.cli.volume import set_volume
from mixope.version import __version__

NO_MEMORY = (
    "there is not enough memory for this; no file is left half-written. Use --engine embedded, which spills to disk,"
    " with --threads 1, or a machine with more memory"
)
NOWHERE = "the output cannot be written: standard output is closed. Send it to a file or to /dev/null"
NO_ROOM = ("failed to map segment", "can't start new thread")
"""How the loader of libraries and the threads of Python say that there is no memory for them."""


@contextmanager
def _cleaned(args: Sequence[str]) -> Iterator[None]:
    """What is wrong with the words of the command line, as words that can be shown."""
    try:
        yield
    except Exception as error:  # Click's have no name of their own here: Typer may bring a copy of Click under another
        add_hint(error, args)
        if isinstance(getattr(error, "message", None), str):
            error.message = clean(error.message)  # type: ignore[attr-defined]
        if hasattr(error, "format_message") and _for_programs(args):
            with suppress(OSError):
                print_json(describe(UsageError(), error.format_message(), UsageError.exit_code))
        raise


def _for_programs(args: Sequence[str]) -> bool:
    """Whether the command line asks for JSON; of an error of its own words, nothing else is known of it."""
    return "--json" in args


class Commands(TyperGroup):
    """Commands whose errors have words: a user's mistake is a message and an exit code, never a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which they are added below, then those of other packages."""
        return [*self.commands, *plugins.added("commands")]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Ours, or one of another package, which is imported when it is asked for."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in plugins.added("commands"):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            alone.command(cmd_name)(plugins.load("commands", cmd_name))
            command = typer.main.get_command(alone)
            command.name = cmd_name
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Run on streams that take every character."""
        accept_all()
        return super().main(*args, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words as they were typed, for reports."""
        ctx.meta[ARGUMENTS] = tuple(args)
        with _cleaned(ctx.meta[ARGUMENTS]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what has no words here is a bug, and its traceback is wanted."""
        try:
            with _cleaned(ctx.meta[ARGUMENTS]):
                found = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BaseException as error:
            outcome = _outcome(error)
            if outcome is None:
                raise
            finish()
            kind, words, code = outcome
            with suppress(OSError):  # nobody may be there to hear it; the exit code tells
                complain(kind, words)
                told()
                if _for_programs(ctx.meta[ARGUMENTS]):
                    print_json(describe(KeyboardInterrupt() if code == INTERRUPTED else error, words, code))
            for stream in (sys.stdout, sys.stderr):
                arrived(stream)
            raise typer.Exit(code) from None
        finally:
            set_volume(None)


def _outcome(error: BaseException) -> tuple[str, str, int] | None:
    """What is said of an error: its kind, the words, the exit code; None for a bug, and for what is no error."""
    if stopped() and not isinstance(error, typer.Exit | SystemExit):
        return "interrupted", STOPPED, INTERRUPTED
    match error:
        case MixopeError():
            return "error", error.text(on_command_line), error.exit_code
        case KeyboardInterrupt() | InterruptedError():
            return "interrupted", STOPPED, INTERRUPTED
        case BrokenPipeError():
            return None  # the reader of stdout has seen enough
        case OSError():
            return "error", refusal(error), UsageError.exit_code
        case MemoryError():
            return "error", NO_MEMORY, UsageError.exit_code
        case ImportError() | RuntimeError() if any(words in str(error) for words in NO_ROOM):
            return "error", NO_MEMORY, UsageError.exit_code
        case RuntimeError() if str(error) == "Query interrupted":  # how DuckDB passes on a KeyboardInterrupt
            return "interrupted", STOPPED, INTERRUPTED
    return None


app = typer.Typer(
    name="mixope",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mixope {__version__}")
        raise typer.Exit


@app.callback()
def mixope(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """What would a new policy earn in the long run, how sure are we, and can these logs carry that answer at all?

    Start with `mixope demo`, or with `mixope inspect` and `mixope evaluate` on logs of your own.
    """


@signatures.command
def estimators(json: o.Json = False) -> None:
    """List the estimators: their family, whether they take vectors, what they need, when to use them."""
    from mixope.estimators import entries

    if json:
        listed = [
            {"name": name, "family": e.family, "needs": e.needs, "when": e.when, "vectors": "features" in e.takes}
            for name, e in entries().items()
        ]
        print_json({"estimators": listed})
    else:
        from mixope.report.terminal import registry_view

        console().print(registry_view(entries()))


@dataclass(frozen=True)
class Listed:
    """A command as the list of commands shows it, with an example that stands under its help."""

    function: Callable[..., None]
    short: str
    example: str
    cls: type[PlainHelp] = GroupedHelp


COMMANDS = {
    "evaluate": Listed(
        evaluate.command,
        "What a policy would earn, and whether to believe it.",
        "logs.csv --target target.csv --gamma 0.95",
    ),
    "compare": Listed(
        compare.command,
        "Several policies or estimators on the same logs.",
        "logs.csv --target old=old.csv --target new=new.csv",
    ),
    "backtest": Listed(backtest.command, "Every logger predicted from the others.", "logs.csv"),
    "experiment": Listed(
        experiment.command,
        "The long-run effect of a short test.",
        "test.csv --arm variant --control A --unit user --time day --metric revenue",
    ),
    "plan": Listed(
        plan.command,
        "How much data until the answer is sharp enough.",
        "pilot.csv --target target.csv --precision 0.1",
    ),
    "returns": Listed(
        returns.command, "How returns are spread, and the worst of them.", "logs.csv --target target.csv --alpha 0.05"
    ),
    "inspect": Listed(inspect.command, "What is in the logs, and what they cover.", "logs.csv --target target.csv"),
    "simulate": Listed(
        simulate.command, "Benchmark logs with the exact truth.", "taxi --episodes 100 -o simulated", PlainHelp
    ),
    "estimators": Listed(estimators, "What there is to choose from.", "", PlainHelp),
    "reproduce": Listed(reproduce.command, "The figures and claims of the paper.", "figure2", PlainHelp),
    "demo": Listed(demo.command, "The whole story on a small example.", "--full", PlainHelp),
}
for name, each in COMMANDS.items():
    example = f"Example: mixope {name} {each.example}".rstrip()
    app.command(name, short_help=each.short, epilog=example, cls=each.cls)(each.function)
plugins.reserve("commands", [str(each.name) for each in app.registered_commands])


def main() -> None:
    """The entry point of the script ``mixope``: the process ends with it, so at last no signal is listened to."""
    try:
        there = fill()
        listen()
        if not there:
            complain("error", NOWHERE)
            raise SystemExit(UsageError.exit_code)
        app(prog_name="mixope")
    except OSError as error:  # what was printed before a command began, such as a help text
        words = refusal(error)
        with suppress(OSError):
            complain("error", words)
        arrived(sys.stderr)
        raise SystemExit(UsageError.exit_code) from None
    except (KeyboardInterrupt, SystemExit) as end:
        if not isinstance(end, KeyboardInterrupt) and (end.code != INTERRUPTED or is_told()):
            raise
        _finish()  # it came before or after the command itself; Typer may have made an exit of it
        with suppress(OSError):
            complain("interrupted", STOPPED)
            told()
        raise SystemExit(INTERRUPTED) from None
    finally:
        _finish()


def _finish() -> None:
    """The same at whatever moment a signal comes."""
    with suppress(KeyboardInterrupt):
        finish()
    finish()
