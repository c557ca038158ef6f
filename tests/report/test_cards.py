"""Cards: the answer and what matters most first, details folded, and inert whatever the names are."""

import re
from functools import cache

import numpy as np
import pytest

import mixope
from mixope.backtesting import Backtest
from mixope.base.errors import DataError
from mixope.checks import Diagnostic, Verdict
from mixope.differences import Comparison
from mixope.inspection.records import Remark

from . import records
from .markup import parse
from .test_page import HOSTILE, hostile

TAGS = {
    *("style", "article", "div", "p", "span", "strong", "ul", "li", "details", "summary", "pre"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "path", "defs", "use", "text", "clippath", "rect"),
}
"""All elements that a card may have."""


def logs(label="a", **changes) -> mixope.Logs:
    rows = {
        "episode_id": [0, 0, 0, 1, 1, 2],
        "step": [0, 1, 2, 0, 1, 0],
        "observation": ["x", "y", "x", "x", "x", "y"],
        "action": ["l", "r", "r", "l", "l", "l"],
        "reward": [1.0, 2.0, 3.0, 0.0, 0.0, 6.0],
        "next_observation": ["y", "x", "x", "x", "x", "x"],
        "terminated": [False, False, True, False, False, True],
        "truncated": [False, False, False, False, True, False],
        "policy_id": [label, label, label, "b", "b", "b"],
    }
    return mixope.Logs.from_arrays(**{name: np.array(values) for name, values in (rows | changes).items()})


@cache
def inspection():
    return mixope.inspect(logs(), engine="memory")


SHOWN = {
    "estimate": lambda: records.estimate(beside=(records.beside(), records.reference())),
    "reference": records.reference,
    "comparison": records.comparison,
    "differences": records.differences,
    "selection": lambda: records.differences().selection,
    "backtest": records.backtest,
    "inspection": inspection,
    "logs": logs,
}


def card(record):
    return parse(record._repr_html_())


def words(record):
    return card(record).elements[1].text


@pytest.mark.parametrize("name", SHOWN)
def test_a_card_is_a_fragment_of_known_elements(name):
    found = card(SHOWN[name]())
    assert {e.tag for e in found.elements} <= TAGS
    assert [e.attributes["class"].split()[0] for e in found.all("article")] == ["mixope-card"]
    assert found.all("details"), "nothing is folded"
    assert not any("open" in e.attributes for e in found.all("details"))


@pytest.mark.parametrize("name", SHOWN)
def test_a_card_shown_twice_shares_no_identifier(name):
    record = SHOWN[name]()
    both = parse(record._repr_html_() + record._repr_html_())
    names = [e.attributes["id"] for e in both.elements if "id" in e.attributes]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", SHOWN)
def test_whatever_a_card_refers_to_is_in_it(name):
    text = SHOWN[name]()._repr_html_()
    found = parse(text)
    known = {e.attributes["id"] for e in found.elements if "id" in e.attributes}
    asked = set(re.findall(r"url\(#([^)]*)\)", text))
    asked |= {e.attributes["href"].removeprefix("#") for e in found.elements if "href" in e.attributes}
    assert asked <= known
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)


def test_the_style_touches_nothing_but_cards():
    (style,) = card(records.estimate()).all("style")
    rules = re.sub(r"\{[^{}]*\}", ";", re.sub(r"@media[^{]*\{(.*?\})\s*\}", r"\1", style.text))
    selectors = [s.strip() for rule in rules.split(";") for s in rule.split(",") if s.strip()]
    assert len(selectors) > 20
    assert all(re.search(r"\.mixope-card(?![\w-])", s) for s in selectors), selectors


def test_the_answer_stands_before_what_is_folded():
    found = card(records.estimate())
    top = next(e for e in found.all("div") if e.attributes["class"] == "mixope-top").text
    for said in ("caution", "-0.192", "-0.268", "-0.115", "estimator dr", "8,000 rows", "uncovered mass"):
        assert said in top
    assert "-0.1917" in next(e for e in found.all("details") if "The answer" in e.text).text
    assert "logger-3" in next(e for e in found.all("details") if "Loggers" in e.text).text


def test_failed_checks_come_first_then_warned_ones():
    def check(name, status):
        return Diagnostic(name, 1.0, 0.5, status, f"{name} in words")

    checks = [check("fine", "pass"), check("doubtful", "warn"), check("good", "pass"), check("broken", "fail")]
    made = records.estimate(diagnostics=tuple(checks), verdict=Verdict.UNSUPPORTED)
    (listed,) = (e for e in card(made).all("ul") if e.attributes.get("class") == "mixope-checks")
    assert re.findall(r"(\w+): \w+ in words", listed.text) == ["broken", "doubtful"]
    folded = next(e for e in card(made).all("details") if "Checks behind" in e.text).text
    assert re.findall(r"(?:failed|caution|ok)(\w+?)\1 in words", folded) == ["broken", "doubtful", "fine", "good"]


def test_a_comparison_says_which_target_is_best_and_skips_nothing():
    said = words(records.comparison())
    assert "new is best with probability" in said
    assert "known-mixture" in said
    assert "Differences by dr" in said


def test_a_comparison_without_a_place_for_anybody_says_so():
    refused = [records.estimate(target=name, verdict=Verdict.UNSUPPORTED) for name in ("new", "old")]
    assert "no target can be ranked" in words(Comparison(tuple(refused)))
    assert "no target can be ranked" in words(Comparison(()))


def test_a_backtest_shows_the_farthest_loggers_first():
    made = records.backtest()
    (listed,) = (e for e in card(made).all("ul") if e.attributes.get("class") == "mixope-checks")
    assert listed.text.strip().startswith("✕b")
    assert made.summary in words(made)
    assert "none of 0 loggers" in words(Backtest((), "emp", 0.95))


def test_an_inspection_of_logs_that_cannot_be_used_says_why():
    remark = Remark("bad-rows", "error", 2, "two rewards are no numbers")
    broken = records.replace(inspection(), contents=None, remarks=(remark,), error=DataError("two rewards"))
    said = words(broken)
    assert "cannot be used as they are" in said
    assert "two rewards are no numbers" in said


def test_the_card_of_logs_counts_only_what_is_known_without_reading(tmp_path):
    rows = "episode_id,step,observation,action,reward,terminated\n0,0,x,l,1,false\n0,1,x,l,1,true\n"
    (tmp_path / "a.csv").write_text(rows)
    read = mixope.read(str(tmp_path / "a.csv"))
    assert "rows not counted yet" in words(read)
    assert "6 rows" in words(logs())


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t[:12]))
def test_hostile_text_stays_text(text):
    compared = hostile(text)
    label = text or "a"
    shown = (
        *(compared, compared.estimates[0], compared.differences[0], compared.selections[0]),
        records.replace(records.backtest((text, text + "2", text + "3"), text), estimator=text, notes=(text,)),
        records.replace(inspection(), name=text, notes=(text,), remarks=(Remark(text, "warning", 1, text),)),
    )
    for record in shown:
        found = card(record)
        assert {e.tag for e in found.elements} <= TAGS
        for element in found.elements:
            assert not [name for name in element.attributes if name.startswith("on")], element
    if text in HOSTILE[:6]:
        assert label in words(compared)


@pytest.mark.parametrize("text", HOSTILE[:6], ids=lambda t: ascii(t[:12]))
def test_hostile_labels_of_logs_stay_text(text):
    read = logs(text)
    for found in (card(read), card(mixope.inspect(read, engine="memory"))):
        assert {e.tag for e in found.elements} <= TAGS


def test_control_characters_are_replaced():
    said = records.estimate(target="a\x00\x1b\u202e\ud800z")._repr_html_()
    assert "a\ufffd\ufffd\ufffd\ufffdz" in said
    said.encode()
