"""The page on experiments shows what the committed tests say."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import trials

from mixope.worlds import engagement

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
CASES = {
    **{(name, ""): trials.TESTS for name in trials.WHOLE},
    **dict.fromkeys(trials.HIDDEN, trials.HIDDEN_TESTS),
}


@pytest.fixture(scope="module")
def rows():
    return trials.RESULTS.read()


def _of(rows, setting, hidden="", method=trials.LONG_RUN):
    return [row for row in rows if (row["setting"], row["hidden"], row["method"]) == (setting, hidden, method)]


@pytest.mark.parametrize("table", trials.TABLES, ids=lambda table: table.__name__)
def test_the_page_shows_the_table_of_the_committed_tests(rows, table):
    assert table(rows) in PAGE


def test_every_case_has_all_its_tests_at_the_size_that_the_page_says(rows):
    assert {(row["users"], row["days"]) for row in rows} == {(str(trials.USERS), str(trials.DAYS))}
    for case, tests in CASES.items():
        for method in trials.METHODS:
            seeds = sorted(int(row["seed"]) for row in _of(rows, *case, method))
            assert seeds == list(range(tests)), (case, method)


def test_truths_are_those_of_the_simulator(rows):
    for setting in trials.WHOLE:
        written = {float(row["truth"]) for row in rows if row["setting"] == setting}
        assert written == {float(f"{engagement.effect(setting):.6g}")}


def test_where_the_verdict_is_green_the_intervals_hold_as_often_as_they_say(rows):
    """95 % in all settings together; less four standard errors of the count in each of them."""
    held = []
    for setting in trials.WHOLE:
        found = trials.Summary(_of(rows, setting))
        green = found.held[found.green]
        assert green.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(green)), setting
        held.append(green)
    assert np.concatenate(held).mean() >= 0.95
