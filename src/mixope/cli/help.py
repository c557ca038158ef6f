"""The help of a command: ``--help`` is one page of what most people use, ``--help-all`` everything in groups.

    --help      how to type it, the required and the usual options in a sentence each, an example, how to see the rest
    --help-all  all options under the panel that each was declared with, in full, and an example for each panel

Both are plain text in the usual words for types (NUMBER, N, NAME, FILE), the same on a terminal, through a pipe, and
with every version of Typer. A command whose options have no panels lists all of them in either case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from mixope.cli.signatures import HelpPanel

USUAL = frozenset(
    {"target", "estimand", "gamma", "horizon", "column", "ends", "unit", "estimator", "level", "html", "full", "json"}
    | {"precision", "against", "alpha"}
)
"""What most people set; options that are required count among them wherever they are."""

EXAMPLES: Mapping[HelpPanel, tuple[str, ...]] = {
    HelpPanel.question: ("--estimand discounted --gamma 0.95",),
    HelpPanel.logs: (
        "--arm variant --control A --unit user --time day --metric revenue",
        "--column reward=revenue --unit user --ends truncated",
        "--column reward=revenue --ends truncated",
    ),
    HelpPanel.policy: (
        "--loggers loggers.csv --unknown-actions zero",
        "--target target.csv --target-default uniform",
        "--target target.csv --against logs",
    ),
    HelpPanel.answer: ("--estimator dr --level 0.9", "--level 0.9 --seed 1", "--no-check"),
    HelpPanel.machine: ("--engine embedded --threads 4 --memory-limit 1GB",),
    HelpPanel.output: ("--html report.html --full", "--full --verbose"),
}
"""For each panel, the first whose options a command has is shown."""

_EVERYTHING = "mixope.cli.help.everything"
_TYPE = re.compile(r"<(float|int|str|path|list\[str\])(?: range)?>|\b(FLOAT|INTEGER|TEXT|PATH)(?: RANGE)?\b")
_WORDS = {
    "float": "NUMBER",
    "int": "N",
    "integer": "N",
    "str": "NAME",
    "text": "NAME",
    "path": "FILE",
    "list[str]": "NAME",
}
_CHOICES = re.compile(r"[\[<]([\w-]+(?:\|[\w-]+)*)[\]>]")
_EXTRAS = re.compile(r"[\s\\]*\[([^\[\]]*)\]$")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_RANGE = re.compile(r"(?:([\d.e+-]+)<=)?x(?:(<=|>=)([\d.e+-]+))?")
FAR = 10**9
"""A bound beyond it says nothing that anybody needs to know."""


class PlainHelp(TyperCommand):
    """A command whose help says what to type, in plain words."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments, the options that must be there, and that there are others."""
        arguments = [_argument(each) for each in self.params if _is_argument(each)]
        required = [_written(each, ctx)[0].rpartition(", ")[2] for each in self.params if _is_needed(each)]
        return [*arguments, *required, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options."""
        arguments = [(_argument(each), getattr(each, "help", "")) for each in self.params if _is_argument(each)]
        _write(formatter, "Arguments", arguments)
        self.list_options(ctx, formatter)

    def list_options(self, ctx: Any, formatter: Any) -> None:
        """All options in one list."""
        _write(formatter, "Options", [_written(each, ctx) for each in self.get_params(ctx) if not _is_argument(each)])


class GroupedHelp(PlainHelp):
    """A command of many options: ``--help`` shows the usual ones, ``--help-all`` all of them in panels."""

    _help_all: Any = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Those of the command, ``--help``, and ``--help-all``."""
        if self._help_all is None:
            self._help_all = _help_all()
        return [*super().get_params(ctx), self._help_all]

    def list_options(self, ctx: Any, formatter: Any) -> None:
        """The usual options, or every panel."""
        options = [each for each in self.get_params(ctx) if not _is_argument(each)]
        if ctx.meta.get(_EVERYTHING):
            for panel, members in _by_panel(options):
                _write(formatter, panel, [_written(each, ctx) for each in members], _example(panel, options))
            return
        helping = options[-2:]
        usual = [each for each in options if each.name in USUAL or each.required]
        _write(formatter, "Usual options", [_in_short(*_written(each, ctx)) for each in [*usual, *helping]])
        rest = len(options) - len(usual) - len(helping)
        with formatter.section("More"):
            formatter.write_text(f"{rest} more options, in groups: {ctx.command_path} --help-all")


def _help_all() -> Any:
    """The option, made by Typer itself: how it makes options differs between its versions."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)

    @alone.command()
    def command(
        help_all: Annotated[
            bool,
            typer.Option(
                "--help-all",
                is_eager=True,
                expose_value=False,
                callback=_show_everything,
                help="Show all options, in groups, and exit.",
            ),
        ] = False,
    ) -> None:
        """Nothing but the option."""

    return typer.main.get_command(alone).params[0]


def _show_everything(ctx: typer.Context, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_EVERYTHING] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def _by_panel(options: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The options of each panel, panels in their order, and those of help at the end."""
    for panel in HelpPanel:
        members = [each for each in options if getattr(each, "rich_help_panel", None) == panel]
        if members:
            yield panel.value, members
    yield "Help", [each for each in options if getattr(each, "rich_help_panel", None) is None]


def _example(panel: str, options: Sequence[Any]) -> str | None:
    """An example of a panel in which every option exists here."""
    names = {name for each in options for name in [*each.opts, *each.secondary_opts]}
    if panel not in list(HelpPanel):
        return None
    offered = EXAMPLES[HelpPanel(panel)]
    return next((each for each in offered if names.issuperset(re.findall(r"(?<!\S)--\S+", each))), None)


def _write(formatter: Any, title: str, rows: Sequence[tuple[str, str]], example: str | None = None) -> None:
    """A section with its rows, and an example under them."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
            if example is not None:
                formatter.write_text(f"Example: {example}")


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _is_needed(parameter: Any) -> bool:
    return parameter.required and not _is_argument(parameter)


def _argument(parameter: Any) -> str:
    """An argument as it is typed: LOGS... for several, [NAME] for one that can be left out."""
    name = f"{parameter.metavar or parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _written(option: Any, ctx: Any) -> tuple[str, str]:
    """What is typed for an option, and what it does; whatever version of Typer made the record."""
    typed, said = option.get_help_record(ctx)
    if option.metavar is None:
        typed = _TYPE.sub(lambda found: _WORDS[(found[1] or found[2]).lower()], _CHOICES.sub(_choices, typed))
    return typed, _EXTRAS.sub(_extras, said)


def _in_short(typed: str, said: str) -> tuple[str, str]:
    """The first sentence of what an option does, with what stands in brackets after all of them."""
    extras = _EXTRAS.search(said)
    first = _SENTENCE.split(said)[0]
    return typed, first if extras is None or extras[0] in first else first + extras[0]


def _choices(found: re.Match[str]) -> str:
    return found[0] if found[1] in _WORDS else found[1]


def _extras(found: re.Match[str]) -> str:
    """What stands in brackets at the end, with ranges in words."""
    kept = [_RANGE.sub(_bounds, each) if each.strip("0123456789.<>=") == "x" else each for each in found[1].split("; ")]
    shown = "; ".join(each for each in kept if each)
    return f"  [{shown}]" if shown else ""


def _bounds(found: re.Match[str]) -> str:
    """0<=x<=3 as 0 to 3, x>=2 as 2 or more."""
    low, sign, high = found[1], found[2], found[3]
    if high is None or float(high) > FAR:
        return ""
    if low is not None:
        return f"{float(low):g} to {float(high):g}"
    return f"{float(high):g} or {'more' if sign == '>=' else 'less'}"
