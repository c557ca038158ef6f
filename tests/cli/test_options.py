"""What every command takes, held against a stored list: a change of the code that makes commands changes no command.

After a change that is wanted, ``python tests/cli/test_options.py`` writes the list anew.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from mixope.cli import app

STORED = Path(__file__).parent / "options.txt"
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CHOICES = re.compile(r"[\[<]([\w-]+(?:\|[\w-]+)+)[\]>]")
"""As the versions of Typer show them."""


def line(parameter: Any, context: Any) -> str:
    """What a user meets of an argument or an option, besides its help text."""
    names, help_text = parameter.get_help_record(context)
    shown = ["/".join([*parameter.opts, *parameter.secondary_opts])]
    shown += [parameter.metavar] if parameter.metavar else [found[1] for found in [CHOICES.search(names)] if found]
    shown += ["required"] if parameter.required else []
    shown += ["repeatable"] if getattr(parameter, "multiple", False) or parameter.nargs != 1 else []
    if not isinstance(parameter.default, bool | None) and parameter.default not in ([], ()):
        shown += [f"default={parameter.default}"]
    shown += ["completed"] if parameter._custom_shell_complete is not None else []
    assert help_text, shown
    return " ".join(shown)


def described(name: str) -> list[str]:
    context = typer.Context(COMMANDS[name])
    return [line(parameter, context) for parameter in COMMANDS[name].params]


def stored() -> dict[str, list[str]]:
    """The lines of every command, under its name."""
    sections = [part.splitlines() for part in STORED.read_text(encoding="utf-8").split("\n\n")]
    return {name: lines for name, *lines in sections}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_what_it_took(name):
    assert described(name) == stored()[name]


def test_the_list_knows_every_command():
    assert list(COMMANDS) == list(stored())


if __name__ == "__main__":
    STORED.write_text("\n\n".join("\n".join([name, *described(name)]) for name in COMMANDS) + "\n", encoding="utf-8")
