"""Every check has its section of the page, by its exact name."""

import ast
from pathlib import Path

import mixope
from mixope.report.document import document
from mixope.report.words import CHECKS, HELD_OUT, LARGEST_WEIGHT

from . import records

MAKERS = {"Diagnostic", "graded", "Check", "_judged"}


def names_in_use():
    """The literal names of all checks in the source."""
    root, found = Path(mixope.__file__).parent, set()
    files = [path for path in root.rglob("*.py") if "Diagnostic" in path.read_text(encoding="utf-8")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in MAKERS and node.args:
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else set()
    return found


def test_every_check_in_use_is_known_by_name():
    assert len(names_in_use()) > 15
    assert names_in_use() <= set(CHECKS)


def test_every_section_is_one_of_the_page():
    sections = {name for name, _ in document(records.estimate()).sections}
    assert set(CHECKS.values()) <= sections
    assert {HELD_OUT, LARGEST_WEIGHT} <= set(CHECKS)


def test_the_stationarity_section_has_its_checks_and_the_solver_once():
    names = ("solver", HELD_OUT, "value over steps", "backtest")
    checks = tuple(records.Diagnostic(name, 1.0, 2.0, "pass", f"said by {name}") for name in names)
    (answer,) = document(records.estimate(diagnostics=checks)).answers
    assert [check.name for check in answer.stationarity] == [HELD_OUT, "value over steps"]
    assert answer.held_out
