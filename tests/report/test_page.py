"""The page: whole, self-contained, inert whatever the names are, and the same bytes for the same record."""

import re
from functools import cache

import matplotlib as mpl
import pytest

from mixope.answers.estimate import LoggerShare, Provenance
from mixope.base.estimand import Estimand
from mixope.checks import Diagnostic, Verdict
from mixope.report import write_html
from mixope.report.document import document
from mixope.report.html import render
from mixope.uncertainty import Interval

from . import records
from .markup import parse

SCRIPT = "<script>alert(1)</script>"
HOSTILE = (
    SCRIPT,
    '"\' onload=alert(1) x="',
    "</style></title></svg><img src=x onerror=alert(1)>",
    "]]>--><!--&lt;&amp;&#60;",
    "{{ 7*7 }}{% raw %}$\\frac{a}{b}$ _x_^2",
    "javascript:alert(1) url(http://evil.example/x)",
    "\x00\x08\x1b[31mred\x9b\u202etxet\ud800",
    "日本語のロガー عربى 🚕",
    "a very long name " * 30,
    "unbroken" * 60,
    "#010101; fill: red",
    "two\nlines\r\nand a\ttab",
    "",
)


TAGS = {
    *("html", "head", "meta", "title", "style", "body", "article", "header", "nav", "section", "div", "span", "p", "a"),
    *("h1", "h2", "h3", "details", "summary", "ul", "li", "dl", "dt", "dd", "pre", "code", "figure", "figcaption"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "path", "defs", "use", "text", "clippath", "rect"),
}
"""All elements that a page may have."""
FIGURES = 8
"""Forest, growth, weights, visits, map, backtest, returns and reliability."""


def page(record=None, **extras):
    return render(document(record or records.estimate(), **extras))


@cache
def full():
    return page(records.estimate(beside=(records.beside(), records.reference())), **records.EXTRAS)


def hostile(text):
    """A record in which every text is this one."""
    checks = tuple(Diagnostic(text, 1.0, 0.5, status, text) for status in ("pass", "warn", "fail"))
    made = records.estimate(
        estimator=text,
        target=text,
        interval=Interval(-0.3, -0.1, 0.95, text),
        loggers=(LoggerShare(text, 10, -0.5, 0.5, 5.0), LoggerShare(text + "2", 10, 0.5, 0.5, 5.0)),
        diagnostics=checks,
        verdict=Verdict.UNSUPPORTED,
        solver=text,
        alerts=(text, "<b onclick='x()'>" + text),
        provenance=Provenance(text, 0, text, text, text, ({"path": text, "rows": 1, "sha256": text},)),
    )
    other = records.estimate(target=text + "b", interval=None, no_interval_because=text, estimator=text)
    compared = records.differences((text, text + "b"), estimator=text, alerts=(text,))
    chosen = records.replace(compared.selection, estimator=text, alerts=(text,))
    refused = records.replace(chosen.ranks[1], place=None, low=None, may_be_best=None, note=text)
    chosen = records.replace(chosen, ranks=(chosen.ranks[0], refused))
    return records.contested((made, other), records.replace(compared, selection=chosen), ((text, text),))


@cache
def hostile_page(text):
    by_logger = (records.LoggerCoverage(text, 0.5, 0.1),)
    gaps = records.Coverage(0.5, 0.5, 1, (records.Gap((text, 1), text, 0.5, 1, 0.5),), by_logger)
    rows = records.replace(records.BACKTEST, rows=(records.prediction(text),), notes=(text,))
    return page(hostile(text), command=text, backtest=rows, band=(-1.0, 1.0), truth=0.0, coverage=gaps)


@cache
def hostile_backtest(text):
    made = records.backtest((text, text + "2", text + "3"), text)
    strange = records.replace(made, estimator=text, notes=(text,))
    return render(document(strange, command=text))


@pytest.mark.long
@pytest.mark.parametrize("page", [hostile_page, hostile_backtest], ids=["result", "backtest"])
@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t[:12]))
def test_hostile_text_stays_text(text, page):
    found = parse(page(text))
    assert {e.tag for e in found.elements} <= TAGS
    for element in found.elements:
        assert not [name for name in element.attributes if name.startswith("on")], element
    assert not found.all("script", "img", "iframe", "object", "b")
    if page is hostile_page and text in HOSTILE[:6]:
        assert text in [e.text for e in found.all("th")]
        drawn = [e.text for e in found.all("text")]
        assert any(text[:12] in words for words in drawn), "not as text inside a drawing"


def test_control_characters_and_turned_text_are_replaced():
    text = hostile_page("a\x00\x1b\u202e\ud800z")
    assert "a\ufffd\ufffd\ufffd\ufffdz" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text)
    text.encode()


@pytest.mark.parametrize(
    "record",
    [records.estimate(), records.comparison(), records.reference()],
    ids=["estimate", "comparison", "reference"],
)
@pytest.mark.parametrize("extras", [{}, records.EXTRAS], ids=["bare", "full"])
@pytest.mark.long
def test_every_section_is_there_and_has_content(record, extras):
    found = parse(page(record, **extras))
    sections = {e.attributes["id"]: e.text for e in found.all("section")}
    several = isinstance(record, type(records.comparison()))
    assert tuple(sections) == (records.COMPARED if several else records.SECTIONS)
    assert all(len(words.split()) > 4 for words in sections.values()), sections


def test_the_first_line_is_the_verdict_and_the_decision():
    (first,) = parse(page()).all("h1")
    words = " ".join(first.text.split())
    how = "by 0.600 reward per step (95 % interval 0.500 to 0.700), P(better) > 0.999"
    assert words == f"!caution “new” looks better than what ran, {how}"


def test_the_value_and_its_interval_stand_below_the_decision():
    said = parse(page()).all("header")[0].text
    assert "it would earn about -0.1917 per step in the long run (95\xa0% interval -0.2682 to -0.1152)" in said
    assert "What ran, those who wrote the logs, earns -0.8320 (-0.9020 to -0.7620) per step." in said


def test_the_target_is_called_what_the_user_calls_it():
    found = parse(page(records.estimate(beside=(records.beside(),)), target="policies/new.csv"))
    assert "“policies/new.csv” looks better" in found.all("h1")[0].text
    assert {e.text for e in found.all("th") if e.text in ("new", "policies/new.csv")} == {"policies/new.csv"}


@pytest.mark.parametrize(
    ("verdict", "sign"), list(zip(Verdict, ("✓", "!", "✕", "○"), strict=True)), ids=lambda v: getattr(v, "name", "")
)
def test_a_verdict_is_a_word_and_a_sign(verdict, sign):
    (first,) = parse(page(records.estimate(verdict=verdict))).all("h1")
    assert first.text.startswith(f"{sign}{verdict}")


@pytest.mark.parametrize(
    ("estimand", "words"),
    [(Estimand("discounted", gamma=0.9), "discounted (γ = 0.9)"), (Estimand("horizon", horizon=50), "first 50 steps")],
)
@pytest.mark.long
def test_the_estimand_is_named(estimand, words):
    assert words in parse(page(records.estimate(estimand=estimand))).all("header")[0].text


def test_what_is_missing_is_said_in_one_sentence():
    bare, rich = parse(page(records.estimate(pictures=records.Pictures()))), parse(full())
    said = [e.text for e in bare.all("p") if e.attributes.get("class") == "missing"]
    assert len(said) == 8
    assert all(sentence.endswith(".") for sentence in said)
    (left,) = [e.text for e in rich.all("p") if e.attributes.get("class") == "missing"]
    assert left in said
    assert left.startswith("No residual on held-out episodes")


def test_every_figure_is_drawn_for_wide_and_narrow_pages_and_described():
    found = parse(full())
    figures, drawings = found.all("figure"), found.all("svg")
    assert len(figures) == FIGURES
    assert len(drawings) == 2 * len(figures)
    assert all(e.attributes["role"] == "img" and len(e.attributes["aria-label"]) > 20 for e in drawings)
    assert len(found.all("figcaption")) == len(figures)
    assert found.all("text"), "text of a drawing must be text"


def test_the_forest_shows_estimators_loggers_truth_and_band():
    drawn = [e.text for e in parse(full()).all("text")]
    for label in (
        "dr",
        "is",
        "logged-mean",
        "outer band",
        "truth",
        *(f"logger-{k}, itself" for k in range(4)),
        "all logs, itself",
    ):
        assert drawn.count(label) == 2, label


def test_identifiers_are_unique_and_references_lead_somewhere():
    for text in (full(), page(records.comparison())):
        found = parse(text)
        names = [e.attributes["id"] for e in found.elements if "id" in e.attributes]
        assert len(names) == len(set(names))
        wanted = [e.attributes["href"] for e in found.elements if "href" in e.attributes]
        wanted += re.findall(r'url\(([^)"]*)\)', text)
        wanted += [f"#{e.attributes['aria-labelledby']}" for e in found.elements if "aria-labelledby" in e.attributes]
        assert wanted
        assert set(wanted) <= {f"#{name}" for name in names}


def test_nothing_is_fetched_from_anywhere():
    for text in (full(), page(records.comparison())):
        found = parse(text)
        assert not found.all("script", "link", "img", "iframe", "object", "embed", "base", "image", "foreignobject")
        for element in found.elements:
            assert not {"src", "srcset", "action", "data", "poster", "background"} & set(element.attributes)
            assert (element.attributes.get("href") or "#").startswith("#")
        assert "http://" not in text
        assert "https://" not in text
        assert "@import" not in text


def test_the_page_forbids_scripts_and_requests():
    policy = [e.attributes["content"] for e in parse(page()).all("meta") if "http-equiv" in e.attributes]
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'")
    assert "script" not in policy[0]


def test_tables_have_captions_and_scopes():
    found = parse(full())
    assert len(found.all("table")) == len(found.all("caption")) >= 6
    assert all(e.attributes.get("scope") in ("col", "row") for e in found.all("th"))


def test_same_record_same_bytes_whatever_the_user_has_set():
    first = full()
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "other", "text.color": "red", "axes.grid": True}):
        before = dict(mpl.rcParams)
        assert full.__wrapped__() == first
        assert dict(mpl.rcParams) == before
    assert "Date" not in first.split("<body>")[1]


def test_settings_of_the_user_come_back():
    before = dict(mpl.rcParams)
    page()
    assert dict(mpl.rcParams) == before


def test_the_file_is_whole_or_absent(tmp_path, monkeypatch):
    written = write_html(records.estimate(), tmp_path / "new" / "x.html", **records.EXTRAS)
    assert written == tmp_path / "new" / "x.html"
    assert written.read_text(encoding="utf-8") == page(records.estimate(), **records.EXTRAS)
    before = written.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_html(records.reference(), written)
    assert written.read_bytes() == before
    assert [path.name for path in written.parent.iterdir()] == ["x.html"]


def test_numbers_of_the_record_are_on_the_page():
    text = parse(full()).elements[0].text
    for words in ("-0.1917", "-0.268", "2,138", "1.68%", "0.25%", "8,000", "80", "ab" * 32, "seed", "ef0ecccdea53"):
        assert words in text, words
    assert records.EXTRAS["command"] in text


def test_the_first_estimate_answers_and_better_ones_are_named():
    mine = (records.beside(), records.estimate(), records.reference())
    (answer,) = document(type(records.comparison())(mine)).answers
    assert answer.estimate.estimator == "is"
    assert [other.estimator for other in answer.better] == ["dr"]
    assert "came out better in their checks: dr" in parse(page(type(records.comparison())(mine))).elements[0].text


def test_truth_and_band_may_differ_by_target():
    shown = document(records.comparison(), truth={"new": -0.1}, band={"old": (-1, 1)})
    assert [(a.truth, a.band is None) for a in shown.answers] == [(-0.1, True), (None, False)]
