"""Pages in a browser: opened from disk, nothing fetched, no word on the console, nothing over or outside its box."""

import re

import pytest

from mixope.answers.estimate import LoggerShare
from mixope.checks import Verdict
from mixope.differences import Comparison, Rank
from mixope.report.document import document
from mixope.report.html import render

from . import browser, records
from .test_page import FIGURES, hostile_backtest, hostile_page

pytestmark = pytest.mark.long

WIDTHS = (1280, 390)
NAMES = (
    *("full", "bare", "comparison", "contest", "choice", "crowded", "hostile", "unbroken", "ideographs", "backtest"),
    "strange",
)
COMPARED = len(records.COMPARED)
SECTIONS = {
    **dict.fromkeys(("comparison", "contest", "choice", "hostile", "unbroken", "ideographs"), COMPARED),
    **dict.fromkeys(("backtest", "strange"), 3),
}
KEYS = [f"{name}@{width}" for name in NAMES for width in WIDTHS]


def crowded():
    """Thirty loggers with long names, numbers of every size."""
    loggers = tuple(
        LoggerShare(
            f"policy of {k} March, second try, west",
            10**k if k < 9 else 7,
            -(0.5**k),
            1 / 30,
            3.0**k if k < 15 else None,
            records.earned(-(0.5**k)),
        )
        for k in range(30)
    )
    wide = tuple(records.estimate(estimator=f"an-estimator-with-a-name-{k}", value=-(10.0**k)) for k in range(-6, 7))
    return Comparison(tuple(records.replace(e, loggers=loggers) for e in (records.estimate(), *wide)))


def contest():
    """Eight targets, so that there are more pairs than the figure shows."""
    names = tuple(f"candidate number {k} of the spring" for k in range(8))
    estimates = tuple(records.estimate(target=name) for name in names)
    return records.contested(estimates, records.differences(names))


def choice():
    """Thirty targets, the last two of which are refused."""
    names = tuple(f"candidate number {k} of the spring, with all that was learned in winter" for k in range(30))
    estimates = [records.estimate(target=name) for name in names[:28]]
    estimates += [records.estimate(target=name, verdict=Verdict.UNSUPPORTED) for name in names[28:]]
    found = records.differences(names[:28])
    apart = tuple(Rank(name, 5.0, note=str(Verdict.UNSUPPORTED)) for name in names[28:])
    chosen = records.replace(found.selection, ranks=(*found.selection.ranks, *apart))
    return records.contested(estimates, records.replace(found, pairs=found.pairs[:27], selection=chosen))


@pytest.fixture(scope="module")
def pages():
    mine = records.estimate(beside=(records.beside(), records.without_interval(), records.reference()))
    return {
        "full": render(document(mine, **records.EXTRAS)),
        "bare": render(document(records.estimate())),
        "comparison": render(document(records.comparison(), **records.EXTRAS)),
        "crowded": render(document(crowded())),
        "hostile": hostile_page("<script>alert(1)</script>"),
        "unbroken": hostile_page("unbroken" * 60),
        "ideographs": hostile_page("日本語のロガー عربى 🚕" * 4),
        "contest": render(document(contest(), **records.EXTRAS)),
        "choice": render(document(choice())),
        "backtest": render(document(records.backtest(), command="mixope backtest a.parquet --html x.html")),
        "strange": hostile_backtest("<script>alert(1)</script> " + "unbroken" * 30),
    }


@pytest.fixture(scope="module")
def light(pages, tmp_path_factory):
    return browser.measure(pages, WIDTHS, tmp_path_factory.mktemp("light"))


@pytest.fixture(scope="module")
def dark(pages, tmp_path_factory):
    some = {name: pages[name] for name in ("full", "comparison", "contest", "backtest")}
    return browser.measure(some, WIDTHS, tmp_path_factory.mktemp("dark"), browser.DARK)


def test_pages_are_laid_out_at_the_wanted_widths(light):
    assert set(light) == set(KEYS)
    for key, found in light.items():
        assert found["wide"] == int(key.partition("@")[2])
        assert found["counted"]["sections"] == SECTIONS.get(key.partition("@")[0], len(records.SECTIONS))
        assert found["counted"]["texts"] > 8, key
        assert found["counted"]["cells"] > 10, key


@pytest.mark.parametrize("what", ["layout", "tables", "drawings", "contrasts"])
@pytest.mark.parametrize("key", KEYS)
def test_nothing_overlaps_is_cut_or_pale(light, key, what):
    assert light[key][what] == []


@pytest.mark.parametrize("key", KEYS)
def test_nothing_is_fetched(light, key):
    assert light[key]["fetched"] == []


def test_a_dark_page_is_dark_and_legible(dark, light):
    for key, found in dark.items():
        assert found["dark"]
        assert found["paper"] != light[key]["paper"]
        assert found["contrasts"] == []


def test_each_figure_is_shown_once(light):
    for key in ("full@1280", "full@390"):
        assert light[key]["counted"]["drawings"] == FIGURES


@pytest.mark.parametrize("name", ["full", "hostile", "strange"])
def test_a_page_opens_from_disk_without_a_word_on_the_console(pages, name, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(pages[name], encoding="utf-8")
    opened = browser.run(file, "--dump-dom")
    assert opened.console == ()
    assert 'id="manifest"' in opened.output
    assert "<script" not in opened.output


def test_the_console_is_heard(tmp_path):
    """The test above would notice."""
    file = tmp_path / "loud.html"
    file.write_text("<!DOCTYPE html><script>console.error('loud'); missing()</script>", encoding="utf-8")
    assert len(browser.run(file, "--dump-dom").console) == 2


def test_faults_are_found(pages, tmp_path):
    """So would the measurements: a page with a fault of every kind."""
    fault = (
        "<style>.mixope section { margin-top: -3rem } .mixope td { white-space: nowrap; max-width: 2rem; color: #eee }"
        ".mixope table { table-layout: fixed; width: 60px }"
        ".mixope svg text { font-size: 40px !important }"
        ".mixope .wide { display: block !important; width: 900px }</style></head>"
    )
    found = browser.measure({"bad": pages["full"].replace("</head>", fault)}, (390,), tmp_path)["bad@390"]
    for what in ("layout", "tables", "drawings", "contrasts"):
        assert found[what], what


def test_it_prints_on_a4(pages, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(pages["full"], encoding="utf-8")
    browser.run(file, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'report.pdf'}")
    sizes = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", (tmp_path / "report.pdf").read_bytes())
    assert 2 <= len(sizes) <= 8
    for across, down in sizes:
        assert float(across) == pytest.approx(595.3, abs=1)
        assert float(down) == pytest.approx(841.9, abs=1)
