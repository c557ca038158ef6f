"""An experiment on a page, in a card, on axes and on a terminal: the decision first, the same everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mixope
from mixope.report.trial_words import headline
from mixope.uncertainty import Interval

from .tables import WORDS, two_states


@pytest.fixture(scope="module")
def found():
    return mixope.experiment(two_states(users=200, days=6, effect=0.05), **WORDS, state="tired")


def test_the_page_opens_with_the_decision_and_has_its_pictures(found, tmp_path):
    page = found.report(tmp_path / "page.html").read_text()
    assert headline(found, found.main) in page.replace("&#39;", "'")
    assert page.count("<figure>") == 3
    assert "what would flip it" in page
    assert 'id="checks-0"' in page


def test_the_same_experiment_gives_the_same_page(found, tmp_path):
    first, again = (found.report(tmp_path / f"{k}.html").read_bytes() for k in range(2))
    assert first == again


def test_the_card_and_the_terminal_say_the_same(found):
    said = headline(found, found.main)
    assert said in found._repr_html_()
    assert said in " ".join(str(found).split())


def test_the_plot_is_the_path(found):
    axes = found.plot()
    line = axes.lines[0].get_ydata()
    assert line == pytest.approx([day.predicted for day in found.main.days])


def test_an_answer_that_is_not_supported_has_no_number_in_its_headline(found):
    refused = replace(found.main, long_run=replace(found.main.long_run, verdict=mixope.Verdict.UNSUPPORTED))
    said = headline(found, refused)
    assert said == "These data do not support an answer on B against A in the long run."


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, " in the long run: "),
        ({"estimand": "horizon", "horizon": 12}, ", mean of the first 12 visits: "),
        ({"estimand": "discounted", "gamma": 0.9}, ", discounted (γ = 0.9): "),
        ({"estimand": "day", "horizon": 5}, ", in visit 5: "),
    ],
)
def test_a_headline_says_what_was_asked_for(asked, words):
    found = mixope.experiment(
        two_states(users=80, days=5, effect=0.05), **WORDS, state="tired", period="visit", **asked
    )
    assert words in headline(found, found.main)


def test_a_headline_says_where_the_test_looked_otherwise(found):
    turned = replace(found.main, naive=replace(found.main.naive, interval=Interval(0.01, 0.1, 0.95, "t")))
    assert "though it looked better during the test" in headline(found, turned)
