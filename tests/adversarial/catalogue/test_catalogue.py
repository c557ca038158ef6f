"""The catalogue of malformed and awkward inputs: each is refused in words, or answered as if it were not awkward."""

from __future__ import annotations

import pytest

from . import columns, options, policies, texts
from .formats import POLICY_TEXT

CASES = [*columns.cases(), *texts.cases(), *policies.cases(), *options.cases()]


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
    print(f"{len(names)} cases")
    assert len(set(names)) == len(names)
