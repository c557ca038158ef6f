"""Every check is in the registry once, with its section and its remedy, and is shown with them."""

import ast
import json
from pathlib import Path

import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.checks import Check, Diagnostic, checks
from mixope.checks.check import FAR
from mixope.checks.stationarity import HELD_OUT
from mixope.checks.weights import LARGEST
from mixope.report.cards import card
from mixope.report.document import document
from mixope.report.html import fragment, render
from mixope.report.terminal import text

from . import records

FOUND = Check("heavy rows", "weights", FAR, "look at the heaviest rows")
WARNED = FOUND.diagnostic(0.3, 0.1, "warn", "three rows carry everything")


def written_in(root, maker):
    """The names that the source gives to what it makes by a call, and how many calls have none."""
    names, nameless = [], 0
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == maker:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    names.append(first.value)
                else:
                    nameless += 1
    return names, nameless


def test_every_check_of_the_source_is_in_the_registry_once_by_its_name():
    names, nameless = written_in(Path(mixope.__file__).parent, "Check")
    assert len(names) > 50
    assert nameless == 0
    assert sorted(names) == sorted(checks())
    assert all(check.name == name for name, check in checks().items())


def test_diagnostics_are_made_by_checks_alone():
    """In three places: the check that signs, a number that is graded, and one that does not exist."""
    assert written_in(Path(mixope.__file__).parent, "Diagnostic") == ([], 3)


def test_every_section_is_one_of_the_page():
    sections = {name for name, _ in document(records.estimate()).sections}
    assert {check.section for check in checks().values()} <= sections
    assert {HELD_OUT.name, LARGEST.name} <= set(checks())


def test_a_section_that_no_page_has_is_refused():
    with pytest.raises(UsageError):
        Check("night", "nights", FAR, "sleep")


def test_the_stationarity_section_has_its_checks_and_the_solver_once():
    names = ("solver", HELD_OUT.name, "value over steps", "backtest")
    made = tuple(checks()[name].diagnostic(1.0, 2.0, "pass", f"said by {name}") for name in names)
    (answer,) = document(records.estimate(diagnostics=made)).answers
    assert [check.name for check in answer.stationarity] == [HELD_OUT.name, "value over steps"]
    assert answer.held_out


def test_what_passes_needs_no_remedy_and_what_does_not_has_it():
    passed = FOUND.graded(0.01, 0.1, 0.2, "no row carries much")
    assert (passed.status, passed.remedy, passed.section, passed.page) == ("pass", None, "weights", FAR)
    assert FOUND.graded(0.3, 0.1, 0.2, "").remedy == FOUND.remedy == WARNED.remedy


@pytest.mark.parametrize(
    "shown",
    [
        lambda record: text(record, full=True),
        lambda record: render(document(record)),
        lambda record: fragment(card(record)),
    ],
)
def test_the_remedy_is_shown(shown):
    assert FOUND.remedy in shown(records.estimate(diagnostics=(*records.CHECKS, WARNED)))
    assert FOUND.remedy not in shown(records.estimate())


def test_json_has_section_remedy_and_page_and_gives_them_back():
    estimate = records.estimate(diagnostics=(WARNED,))
    (written,) = json.loads(estimate.to_json())["diagnostics"]
    assert {name: written[name] for name in ("section", "remedy", "page")} == {
        "section": "weights",
        "remedy": FOUND.remedy,
        "page": FAR,
    }
    assert mixope.Estimate.from_json(estimate.to_json()).diagnostics == (WARNED,)


def test_a_diagnostic_that_was_written_without_them_is_read():
    record = records.estimate(diagnostics=(WARNED,)).to_dict()
    for name in ("section", "remedy", "page"):
        del record["diagnostics"][0][name]
    (read,) = mixope.Estimate.from_dict(record).diagnostics
    assert isinstance(read, Diagnostic)
    assert (read.name, read.remedy) == ("heavy rows", None)
