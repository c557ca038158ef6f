"""Options in groups: a command takes a group of options as one argument, a dataclass whose fields are the options.

    QuestionOptions(estimand, gamma, horizon, level) declared once, with names, help and defaults
    def command(logs: Paths, *, question: QuestionOptions)  takes them all
    --estimand --gamma --horizon --level             where the group stands in the signature

:func:`command` gives Typer the signature with every group spread out, and puts the groups together when it is called.
An option is called as its field is, and shows its default unless that is None or an empty list. Its panel, under which
``--help-all`` lists it, is its own, else the ``PANEL`` of its group, else Answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, cast, get_args, get_type_hints

import typer
from typer.models import OptionInfo

Completion = Callable[[str], list[Any]]


class HelpPanel(StrEnum):
    """What an option is about, in the order of ``--help-all``."""

    question = "Question"
    logs = "Logs"
    policy = "Policy"
    answer = "Answer"
    machine = "Machine"
    output = "Output"


def option(
    help: str, *names: str, completes: Completion | None = None, panel: HelpPanel | None = None, **settings: Any
) -> OptionInfo:
    """An option, to stand in ``Annotated``; its names are those given, else that of its field or parameter."""
    made: OptionInfo = typer.Option(*names, help=help, autocompletion=completes, rich_help_panel=panel, **settings)
    return made


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function with its groups of options spread out in its signature."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    taken = [
        each for name in parameters for each in _spread(name, hints[name], parameters[name].default, HelpPanel.answer)
    ]

    @wraps(function)
    def spread(**given: Any) -> None:
        function(**{name: _gathered(name, hints[name], given) for name in parameters})

    spread.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    spread.__annotations__ = {each.name: each.annotation for each in taken}
    return spread


def _spread(name: str, hint: Any, default: Any, panel: HelpPanel) -> Iterator[inspect.Parameter]:
    """A parameter; of a group, those that its fields are."""
    if is_dataclass(hint):
        of_group = getattr(hint, "PANEL", panel)
        hints = get_type_hints(hint, include_extras=True)
        for each in fields(hint):
            usual = each.default if each.default_factory is MISSING else each.default_factory()
            yield from _spread(
                each.name, hints[each.name], inspect.Parameter.empty if usual is MISSING else usual, of_group
            )
    else:
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(name, kind, default=default, annotation=_named(name, hint, default, panel))


def _named(name: str, hint: Any, default: Any, panel: HelpPanel) -> Any:
    """An option by the name of its parameter where it has no other, in the panel of its group likewise."""
    bare, *extras = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    found = next((extra for extra in extras if isinstance(extra, OptionInfo)), None)
    if found is None:
        return hint
    made = copy(found)
    made.rich_help_panel = made.rich_help_panel or panel
    if made.default is ...:
        made.param_decls = (f"--{name.replace('_', '-')}",)
    if made.show_default is True:
        made.show_default = default is not None and default != [] and default is not inspect.Parameter.empty
    return Annotated[bare, made]


def _gathered(name: str, hint: Any, given: Mapping[str, Any]) -> Any:
    """What was given for a parameter; for a group, the group."""
    if not is_dataclass(hint):
        return given[name]
    hints, group = get_type_hints(hint), cast(Callable[..., Any], hint)
    return group(**{each.name: _gathered(each.name, hints[each.name], given) for each in fields(hint)})
