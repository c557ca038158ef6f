"""The catalogue of malformed and awkward inputs: each is refused in words, or answered as if it were not awkward."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.running import check_refusal

from . import columns, options, places, policies, texts
from .cases import Command, Refused
from .formats import POLICY_TEXT

CASES = [*columns.cases(), *texts.cases(), *policies.cases(), *options.cases(), *places.cases()]

LEAST = 600
REAL = [
    case
    for case in CASES
    if case.name
    in {
        "as it should be (csv)",
        "policy by name: own:leaves",
        "command: evaluate log.csv --target target.csv --level 2",
        "terminal: colours in a file that is not there",
    }
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target.csv").write_text(POLICY_TEXT)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, here):
    case.ask.check(here, case.expected)


def test_the_catalogue_is_large_and_its_cases_are_told_apart():
    names = [case.name for case in CASES]
    by_command = sum(isinstance(case.ask, Command) for case in CASES)
    print(f"{len(names)} cases: {by_command} by command, {len(names) - by_command} by call")
    assert len(set(names)) == len(names)
    assert len(names) >= LEAST


@pytest.mark.parametrize("case", REAL, ids=lambda case: case.name)
def test_a_process_of_its_own_says_the_same(case, here):
    """Exit codes and streams of the program itself: what a shell sees."""
    words = [sys.executable, "-m", "mixope", *case.ask.words(here)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    refused = isinstance(case.expected, Refused)
    assert done.returncode == (case.expected.code if refused else 0), done.stderr
    assert "Traceback" not in done.stderr
    if refused:
        check_refusal(words, done.stdout, case.expected.code)
    else:
        assert done.stdout
