"""Cards in a browser, folded and open: legible in light and dark notebooks, nothing cut, run or fetched."""

import pytest

from . import browser, records
from .test_cards import SHOWN
from .test_page import hostile

pytestmark = pytest.mark.long

WIDTHS = (1280, 390)
THEMES = {"dark": 'data-jp-theme-light="false"', "light": 'data-jp-theme-light="true"'}
LONG = "unbroken" * 60


def page(card: str, *, opened: bool, theme: str = "") -> str:
    """A card on a page of its own, with the names of what is measured, and of what may scroll."""
    marked = card.replace('<article class="mixope-card', '<article class="mixope mixope-card')
    marked = marked.replace('class="mixope-scroll"', 'class="scroll mixope-scroll"')
    shown = marked.replace("<details>", "<details open>") if opened else marked
    meta = '<meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>calm</title>'
    return f"<!DOCTYPE html><html><head>{meta}</head><body {theme}>{shown}</body></html>"


@pytest.fixture(scope="module")
def cards():
    strange = {"hostile": hostile("<script>document.title='owned'</script>"), "long": hostile(LONG)}
    every = {**{name: make() for name, make in SHOWN.items()}, **strange}
    every["unbroken backtest"] = records.backtest((LONG, "b", "c"), LONG)
    return {name.replace(" ", "-"): record._repr_html_() for name, record in every.items()}


@pytest.fixture(scope="module")
def light(cards, tmp_path_factory):
    pages = {f"{name}-shut": page(card, opened=False) for name, card in cards.items()}
    pages |= {f"{name}-open": page(card, opened=True) for name, card in cards.items()}
    return browser.measure(pages, WIDTHS, tmp_path_factory.mktemp("light"))


@pytest.mark.parametrize("what", ["layout", "tables", "drawings", "contrasts", "fetched"])
def test_nothing_overlaps_is_cut_pale_or_fetched(light, what):
    assert len(light) == 2 * len(WIDTHS) * (len(SHOWN) + 3)
    assert {key: found[what] for key, found in light.items() if found[what]} == {}


@pytest.mark.parametrize("options", [(), (browser.DARK,)], ids=["light", "dark"])
def test_a_card_follows_the_notebook_whatever_the_system_prefers(cards, tmp_path, options):
    pages = {theme: page(cards["estimate"], opened=True, theme=words) for theme, words in THEMES.items()}
    found = browser.measure(pages, (800,), tmp_path, *options)
    assert found["dark@800"]["paper"] == "rgb(20, 24, 27)"
    assert found["light@800"]["paper"] == "rgb(255, 255, 255)"
    assert [one["contrasts"] for one in found.values()] == [[], []]


def test_without_a_theme_it_follows_the_system(cards, tmp_path):
    pages = {name: page(card, opened=True) for name, card in cards.items()}
    dark = browser.measure(pages, (800,), tmp_path, browser.DARK)
    assert {found["paper"] for found in dark.values()} == {"rgb(20, 24, 27)"}
    assert {key: found["contrasts"] for key, found in dark.items() if found["contrasts"]} == {}


def test_nothing_runs(cards, tmp_path):
    file = tmp_path / "card.html"
    file.write_text(page(cards["hostile"], opened=True), encoding="utf-8")
    opened = browser.run(file, "--dump-dom")
    assert "<title>calm</title>" in opened.output
    assert opened.console == ()
