"""The first screen: at most sixteen lines at any width, the answer in it, and nothing that is alarming or concluded
where it must not be."""

import math
import re
from dataclasses import replace

import pytest

import mixope
from mixope.answers.confounding import Confounding, ConfoundingPoint
from mixope.base.errors import Advice, Setting
from mixope.checks import Diagnostic, Verdict
from mixope.cli.output import on_command_line
from mixope.report.document import document
from mixope.report.first_screen import MOST
from mixope.report.html import render
from mixope.report.terminal import plain, view
from mixope.report.words import plural, short
from mixope.uncertainty import Interval

from . import records
from .test_cards import inspection

LONG = "a sentence that goes on about what was found and does not come to an end where anybody would expect it " * 4
WARNED = tuple(
    Diagnostic(f"check {k}", 1.0, 0.5, "warn" if k else "fail", f"{k}: {LONG}", remedy=f"do {LONG}") for k in range(9)
)
MANY = records.estimate(diagnostics=WARNED, alerts=(LONG,), notes=(LONG, LONG + "too"), target="t" * 200)
SHOWN = {
    "estimate": records.estimate(beside=(records.beside(),)),
    "reference": records.reference(),
    "no-interval": records.without_interval(),
    "refused": records.estimate(verdict=Verdict.UNSUPPORTED),
    "many-doubts": MANY,
    "comparison": records.comparison(),
    "many-targets": records.contested(
        [records.estimate(target=f"target {k}", diagnostics=WARNED) for k in range(40)], records.differences()
    ),
    "differences": records.differences(tuple("abcdefghij")),
    "selection": records.differences(tuple("abcdefghij")).selection,
    "backtest": records.backtest(),
    "inspection": inspection(),
}


def first(record, width=110, **options):
    return plain(view(record, **options), width)


@pytest.mark.parametrize("width", [60, 80, 110, 200])
@pytest.mark.parametrize("name", SHOWN)
def test_it_is_sixteen_lines_at_most_and_says_how_to_see_the_rest(name, width):
    lines = first(SHOWN[name], width).splitlines()
    assert len(lines) <= MOST
    assert max(map(len, lines)) <= width
    assert "result.full()" in "\n".join(lines[-2:])


def test_it_says_the_verdict_the_answer_and_what_it_rests_on():
    text = str(records.estimate(diagnostics=(*records.CHECKS, replace(WARNED[1], sentence="much is said"))))
    assert text.splitlines()[0] == "CAUTION   “new” looks better than what ran"
    numbers = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()[1:4]]
    assert numbers == [
        ["new", "-0.192", "per step", "(95 %: -0.268 to -0.115)"],
        ["what ran", "-0.832", "per step", "(95 %: -0.902 to -0.762)"],
        ["difference", "0.60", "(95 %: 0.50 to 0.70), P(better) > 0.999"],
    ]
    assert "Why caution (2 of 5 checks)" in text
    assert "Much is said. Do a sentence" in text
    assert "8,000 rows (12 more dropped), 80 episodes, 4 loggers · long-run average · estimator dr, seed 7" in text
    assert 'result.report("report.html")' in text


def test_what_passed_is_not_among_the_doubts():
    text = str(records.estimate())
    assert "uncovered mass" in text
    assert "largest weight" not in text
    assert "Why" not in str(records.estimate(diagnostics=records.CHECKS[:1], verdict=Verdict.TRUSTWORTHY))


@pytest.mark.parametrize("record", [SHOWN["refused"], records.contested([SHOWN["refused"]] * 2, records.differences())])
def test_a_refused_answer_has_no_number_and_no_conclusion(record):
    text = first(record)
    assert "NOT SUPPORTED" in text
    assert "-0.19" not in text
    assert "better)" not in text
    assert "difference  " not in text


def test_all_of_it_has_what_the_first_screen_leaves_out():
    full = " ".join(MANY.full().split())
    assert all(check.name in full for check in WARNED)
    assert LONG.strip() in full
    assert "check 8" not in str(MANY)
    assert "more" in str(MANY)


def test_each_surface_has_its_own_words_for_more():
    note = Advice("map it: ", Setting("columns", {"action_prob": "p"}))
    record = records.estimate(alerts=(note,))
    assert "columns={'action_prob': 'p'}" in str(record)
    shown = first(record, phrase=on_command_line)
    assert "--column action_prob=p" in shown
    assert "More: --full, --html report.html" in shown


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (-23.4831, 3.3, "-23.5"),
        (0.0507202, 0.0313, "0.051"),
        (1234567.8, 4321.0, "1,234,568"),
        (-0.0001, 0.5, "0.00"),
        (5.90077, math.nan, "5.901"),
        (math.nan, 1.0, "–"),
    ],
)
def test_digits_are_those_that_the_interval_leaves(value, half, words):
    around = None if math.isnan(half) else Interval(value - half, value + half, 0.95, "t")
    assert short(value, around) == words


def test_one_is_not_many():
    assert (plural(1, "row"), plural(2, "row"), plural(1500, "episode")) == ("1 row", "2 rows", "1,500 episodes")


def test_the_card_has_the_same_first_screen():
    record = records.estimate()
    card = record._repr_html_()
    top = card[: card.index("<details>")]
    for words in ("looks better than what ran", "-0.192", "Why caution (1 of 4 checks)", "Taken for granted"):
        assert words in top
        assert words in str(record)
    assert isinstance(record, mixope.Estimate)


def test_hidden_reasons_conclude_nothing_of_a_refused_answer():
    point = ConfoundingPoint(1.5, -0.3, -0.1, -0.4, 0.0)
    said = Confounding(1.5, (point,), -0.832, "what the logs earn themselves", 2.0, 1.5, ("It stays above.",))
    for verdict, concludes in ((Verdict.CAUTION, True), (Verdict.UNSUPPORTED, False)):
        record = records.estimate(verdict=verdict, confounding=said)
        for text in (str(record), record.full(), record._repr_html_(), render(document(record))):
            assert ("It stays above" in text) == concludes
