"""Help in two sizes: what most people use on one page, and everything in groups."""

import re
import shlex
from typing import Any

import pytest
import typer

from mixope.cli import app
from mixope.cli.help import EXAMPLES, GroupedHelp
from mixope.cli.signatures import HelpPanel

from .running import run

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
GROUPED = [name for name, command in COMMANDS.items() if isinstance(command, GroupedHelp)]
OPTION = re.compile(r"^  (?:-\w, )?(--[a-z-]+)", re.MULTILINE)


def shown(*arguments: str) -> str:
    return run(*arguments).stdout


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_the_commands_of_many_options_have_two_sizes():
    assert GROUPED == ["evaluate", "compare", "backtest", "experiment", "plan", "returns", "inspect"]


@pytest.mark.parametrize("name", GROUPED)
def test_help_is_one_page_with_the_usual_options_and_an_example(name):
    page = shown(name, "--help")
    assert len(page.splitlines()) <= 60
    assert len(OPTION.findall(page)) <= 16
    assert f"mixope {name} --help-all" in page
    assert f"Example: mixope {name} " in page
    assert shown(name, "-h") == page


@pytest.mark.parametrize("name", GROUPED)
def test_help_all_has_every_option_once_in_the_panels_and_an_example_in_each(name):
    page = shown(name, "--help-all")
    panels = [line[:-1] for line in page.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    known = [panel.value for panel in HelpPanel]
    assert panels == ["Arguments", *(panel for panel in known if panel in panels), "Help"]
    listed = OPTION.findall(page.partition("\n  Example: mixope ")[0])
    options = [parameter for parameter in COMMANDS[name].params if parameter.param_type_name == "option"]
    assert sorted(listed) == sorted([*(max(each.opts, key=len) for each in options), "--help", "--help-all"])
    assert page.count("\n  Example: ") == len(panels) - 2 + 1


def test_the_usual_questions_stand_in_the_short_help_of_evaluate():
    listed = OPTION.findall(shown("evaluate", "--help"))
    assert {"--target", "--estimand", "--gamma", "--horizon", "--estimator", "--level", "--column"} <= set(listed)
    assert "--target-epsilon" not in listed


@pytest.mark.parametrize("name", COMMANDS)
def test_types_are_usual_words_and_no_line_is_wider_than_the_terminal(name):
    page = shown(name, "--help-all" if name in GROUPED else "--help")
    assert not re.search(r"<\w+| range>|FLOAT|INTEGER|TEXT|18446744073709551615|x[<>]=|\\", page)
    assert max(map(len, page.splitlines())) <= 80
    assert "--seed N " in page or "--seed" not in page


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_under_a_help_is_a_command_that_is_understood(name):
    page = " ".join(shown(name, "--help").split())
    words = shlex.split(page.partition("Example: mixope ")[2])
    assert words[0] == name
    COMMANDS[name].make_context(name, words[1:])


@pytest.mark.parametrize("example", [each for several in EXAMPLES.values() for each in several])
def test_the_examples_of_panels_are_understood(example):
    takers = [name for name in GROUPED if f"Example: {example}" in " ".join(shown(name, "--help-all").split())]
    assert takers, example
    for name in takers:
        context = COMMANDS[name].make_context(name, shlex.split(example), resilient_parsing=True)
        assert context.args == []


def test_the_usage_says_what_must_be_typed():
    assert shown("evaluate", "-h").startswith("Usage: mixope evaluate LOGS... --target POLICY [OPTIONS]\n")
    assert shown("simulate", "-h").startswith("Usage: mixope simulate ENV --output DIR [OPTIONS]\n")


@pytest.mark.parametrize(
    ("typed", "ours"),
    [("--confidence", "--level"), ("--discount", "--gamma"), ("--policy", "--target"), ("--random-state", "--seed")],
)
def test_an_option_of_other_programs_is_answered_with_ours(typed, ours):
    refused = run("evaluate", "logs.csv", "--target", "target.csv", typed, "0.9")
    assert refused.exit_code == 2
    assert f"No such option: {typed}" in refused.output
    assert re.search(rf"(Possible options:|Did you mean) {ours}\b", refused.output)
