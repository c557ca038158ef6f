"""The public functions say what they take and give, and their examples run as they are written."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import mixope

FUNCTIONS = ("backtest", "compare", "evaluate", "inspect", "read", "read_policy", "record", "recorder")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_runs_and_prints_what_it_shows(name: str, workspace: Path) -> None:
    found = doctest.DocTestFinder(recurse=False).find(getattr(mixope, name), name, globs={"mixope": mixope})
    assert [test for test in found if test.examples], f"{name} has no example"
    said: list[str] = []
    for test in found:
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_explained_and_so_is_what_comes_back(name: str) -> None:
    function = getattr(mixope, name)
    words = inspect.getdoc(function) or ""
    missing = [argument for argument in inspect.signature(function).parameters if argument not in words]
    assert not [argument for argument in missing if "those of :func:`mixope.evaluate`" not in words], missing
    assert ":returns:" in words


@pytest.mark.parametrize("name", ["backtest", "compare", "evaluate", "inspect", "read", "record", "recorder"])
def test_no_argument_is_anything_at_all(name: str) -> None:
    given = inspect.signature(getattr(mixope, name)).parameters.values()
    assert not [parameter.name for parameter in given if parameter.annotation in ("Any", inspect.Parameter.empty)]
