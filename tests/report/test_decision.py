"""The headline is the decision: better or worse than what ran, by how much, how sure; or that the logs cannot tell."""

import re

import numpy as np
import pytest

from mixope.answers.estimate import Earned
from mixope.checks import Diagnostic, Verdict
from mixope.differences import Comparison, JointScores, pairwise
from mixope.report.decision import choice, decision, title
from mixope.report.document import document
from mixope.report.html import render
from mixope.report.words import demand, state_words
from mixope.uncertainty import Difference, Interval

from . import records
from .markup import parse


def against(value, low, high, probability):
    gain = Difference(value, (high - low) / 4, Interval(low, high, 0.95, "t"), probability)
    return Earned(1.0, Interval(0.9, 1.1, 0.95, "t"), gain, "mean of the steps")


def found(*numbers, verdict=Verdict.TRUSTWORTHY, **changes):
    return records.estimate(verdict=verdict, against_logs=against(*numbers), **changes)


BETTER = (0.6, 0.5, 0.7, 0.9999)
WORSE = (-0.6, -0.7, -0.5, 0.0001)
UNCLEAR = (0.1, -0.2, 0.4, 0.75)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (BETTER, "“new” is better than what ran, by 0.600 reward per step (95 % interval 0.500 to 0.700)"),
        (WORSE, "“new” is worse than what ran, by 0.600 reward per step (95 % interval 0.500 to 0.700)"),
        (UNCLEAR, "“new” cannot be told apart from what ran: a difference of 0.100 reward per step"),
    ],
    ids=["better", "worse", "unclear"],
)
def test_the_headline_says_which_by_how_much_and_how_sure(numbers, words):
    said = decision(found(*numbers)).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(words)
    chance = {BETTER: "P(better) > 0.999", WORSE: "P(better) < 0.001", UNCLEAR: "P(better) = 0.750"}[numbers]
    assert said.endswith(chance)


def test_with_caution_a_target_only_looks_better():
    assert "“new” looks better" in decision(found(*BETTER, verdict=Verdict.CAUTION))
    assert "“new” looks worse" in decision(found(*WORSE, verdict=Verdict.CAUTION))


def test_what_is_not_supported_has_no_number_in_its_headline():
    refused = found(*BETTER, verdict=Verdict.UNSUPPORTED)
    (first,) = parse(render(document(refused))).all("h1")
    assert first.text.startswith("✕not supported by these logs")
    assert "cannot tell whether “new” is better than what ran" in first.text
    assert not re.search(r"\d", first.text)
    assert title(refused).startswith("Not supported by these logs: ")


def test_without_a_difference_the_headline_says_that_it_is_not_known():
    unknown = records.estimate(against_logs=Earned(1.0, None, None, "mean of the steps", "it has no scores"))
    assert "is not known" in decision(unknown)
    assert "reference line" in decision(records.reference())


def apart(**values):
    """Targets of these values, each known to about 0.02."""
    noise = np.random.default_rng(0).normal(size=(80, len(values))) * 0.002
    joint = JointScores(tuple(values), np.array(list(values.values())), noise)
    compared = records.replace(records.differences(), pairs=pairwise(joint, 0.95), selection=records.selection(joint))
    return records.contested([records.estimate(target=name) for name in values], compared)


@pytest.mark.parametrize("values", [{"new": 1.0, "old": 0.5, "worst": 0.1}, {"worst": 0.1, "old": 0.5, "new": 1.0}])
@pytest.mark.long
def test_of_several_targets_the_headline_names_the_best_and_the_next(values):
    compared = apart(**values)
    said = choice(compared).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("“new” looks the best of 3 targets: better than “old”, the next, by 0.5000 reward per step")
    assert said.endswith("P(better) > 0.999")
    headings = parse(render(document(compared))).all("h1")
    assert [e.text.replace("\N{NO-BREAK SPACE}", " ") for e in headings] == [said]


def test_targets_that_cannot_be_told_apart_are_named_together():
    names = ("a", "b", "c")
    alike = records.differences(names)
    chosen = records.replace(
        alike.selection, ranks=tuple(records.replace(rank, may_be_best=True) for rank in alike.selection.ranks)
    )
    compared = Comparison(tuple(records.estimate(target=name) for name in names), (), (alike,), (chosen,))
    assert choice(compared).startswith("“a”, “b” and “c” cannot be told apart")


def test_where_no_target_can_be_ranked_the_headline_says_so_without_a_number():
    alike = records.differences()
    ranks = tuple(records.replace(rank, place=None, may_be_best=None) for rank in alike.selection.ranks)
    chosen = records.replace(alike.selection, ranks=ranks, regret=())
    refused = tuple(records.estimate(target=name, verdict=Verdict.UNSUPPORTED) for name in ("new", "old"))
    assert choice(Comparison(refused, (), (), (chosen,))) == (
        "Not supported by these logs: none of 2 targets can be ranked"
    )


CHECKS = (
    Diagnostic("largest weight", 0.003, 0.05, "pass", "passes"),
    Diagnostic("uncovered mass", 0.0168, 0.005, "warn", "warns"),
    Diagnostic("effective sample size", 8.0, 10, "fail", "fails", "at least"),
    Diagnostic("mean weight", 0.6, 0.2, "warn", "warns too", "within"),
)


def test_failed_checks_come_first_then_cautions_and_those_that_passed_are_folded():
    shown = parse(render(document(records.estimate(diagnostics=CHECKS, verdict=Verdict.UNSUPPORTED))))
    rows = [e for e in shown.all("tr") if "section" in e.path and any(c.name in e.text for c in CHECKS)]
    in_order = [next(c.name for c in CHECKS if c.name in row.text) for row in rows]
    assert in_order == ["effective sample size", "uncovered mass", "mean weight", "largest weight"]
    assert ["details" in row.path for row in rows] == [False, False, False, True]
    assert shown.all("summary")[0].text == "1 of 4 checks of dr passed"


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (CHECKS[0], "0.003, should be at most 0.05"),
        (CHECKS[1], "0.0168, should be at most 0.005"),
        (CHECKS[2], "8, must be at least 10"),
        (CHECKS[3], "0.6, should be within 0.2 of 1"),
        (Diagnostic("rewards seen", 0.0, 0.0, "warn", "x", "other than"), "0, should be other than 0"),
        (Diagnostic("held-out stationarity", float("nan"), 3.0, "warn", "x"), "–, should be at most 3"),
    ],
)
def test_a_check_says_on_which_side_of_its_threshold_it_should_be(check, words):
    assert demand(check) == words


def test_states_are_named_by_their_factors():
    assert state_words(("row", "wind"), (3, "east")) == "row = 3, wind = east"
    assert state_words((), ("room 3",)) == "room 3"
    shown = parse(render(document(records.estimate(), **records.EXTRAS)))
    assert "row = 1, column = 2, wind = east" in {e.text for e in shown.all("th")}
