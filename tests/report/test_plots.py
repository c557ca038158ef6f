"""Plots: nothing but records and axes; extremes are cut with an arrow, labels stay short, ticks can be told apart."""

import warnings

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from mixope.differences import Rank
from mixope.report import plots
from mixope.report.plots import shortened, width
from mixope.report.svg import draw, inline
from mixope.report.words import rounded
from mixope.uncertainty import Interval

from .markup import parse

MARKS = (
    plots.Mark("dr", -0.19, -0.27, -0.11, "caution"),
    plots.Mark("is", -40.0, -1e6, 1e6, "bad"),
    plots.Mark("nothing", float("nan"), None, None, "bad"),
    plots.Mark("a", -0.9, None, None, "logger"),
)


def axes():
    return Figure(layout="constrained").subplots()


def test_the_range_holds_the_answer_and_the_loggers_and_is_not_spoilt_by_others():
    low, high = plots.limits(MARKS)
    assert low < -0.9 < -0.11 < high
    assert high - low < 4 * (0.9 - 0.11)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-12, 1e12])
def test_a_single_value_has_a_range_around_it(value):
    low, high = plots.limits([plots.Mark("x", value, None, None, "good")])
    assert low < value < high


def test_no_number_at_all_still_draws():
    drawn = axes()
    plots.forest(drawn, [plots.Mark("x", float("nan"), None, None, "bad")], unit="u")
    assert "x" in {text.get_text() for text in drawn.findobj(Text)}


RANKS = (
    Rank("new", 0.5, 1, 0.05, Interval(0.4, 0.6, 0.95, "t"), Interval(0.3, 0.7, 0.95, "t"), 0.9, 1.1, 1, 2, True),
    Rank("old", 0.4, 2, 0.05, Interval(0.3, 0.5, 0.95, "t"), Interval(0.2, 0.6, 0.95, "t"), 0.1, 1.9, 1, 2, False),
    Rank("plug-in", 0.35, 3, note="by its value alone"),
    Rank("refused", 90.0, note="not supported by these logs"),
)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_selection_shows_the_place_of_everybody_and_shades_those_that_may_be_the_best(narrow):
    drawn = axes()
    plots.selection(drawn, RANKS, ["good", "caution", "caution", "bad"], unit="u", narrow=narrow)
    words = {text.get_text() for text in drawn.findobj(Text)}
    assert {rank.target for rank in RANKS} <= words
    assert {"0.500, places 1–2", "0.35, by value", "90, not ranked"} <= words
    assert len(drawn.patches) == 1
    middle = sum(drawn.patches[0].get_window_extent().intervaly) / 2
    assert drawn.transData.inverted().transform((0, middle))[1] == pytest.approx(0.0, abs=1e-9)
    assert drawn.get_xlim()[1] < 5  # what is refused is cut off
    wide = [line.get_linewidth() for line in drawn.lines if len(line.get_xdata()) == 2]
    assert wide == [1, 4, 1, 4]


@pytest.mark.parametrize("narrow", [False, True])
def test_forest_draws_every_label(narrow):
    drawn = draw(lambda a: plots.forest(a, MARKS, unit="u", narrow=narrow), 760, 200, name="f", says="x")
    words = [e.text for e in parse(drawn).all("text")]
    assert {mark.label for mark in MARKS} <= set(words)


@pytest.mark.parametrize(("band", "far"), [((-1.0, 0.3), False), ((-1.0, 4.0), True), ((-50.0, 60.0), True)])
def test_a_band_that_dwarfs_the_axis_is_told_in_words_and_leaves_the_interval_readable(band, far):
    others = [MARKS[0], MARKS[3]]
    marks = [*others, plots.band_mark(-0.19, band, others)]
    drawn = axes()
    plots.forest(drawn, marks, unit="u")
    low, high = drawn.get_xlim()
    (words,) = [text.get_text() for text in drawn.findobj(Text) if text.get_text() == marks[-1].words]
    assert len(drawn.patches) == (0 if far else 1)
    assert words.endswith("beyond this axis") == far
    assert (low, high) == plots.limits(others if far else marks)


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        ([-0.9, -0.6, -0.3, 0.0], ["-0.9", "-0.6", "-0.3", "0"]),
        ([1000.0001, 1000.0002], ["1000.0001", "1000.0002"]),
        ([0, 500000, 1000000], ["0", "500,000", "1,000,000"]),
        ([1e-9, 2e-9], ["1e-9", "2e-9"]),
    ],
)
def test_ticks_have_the_digits_they_need(ticks, words):
    assert plots.tick_words(ticks) == words


@pytest.mark.parametrize("text", [f"start{letter * 100}end" for letter in "iW語"])
def test_long_labels_keep_both_ends_and_fit(text):
    short = shortened(text, 150)
    assert 100 < width(short) <= 150
    assert short.startswith("start")
    assert short.endswith("end")


def test_short_labels_are_left_alone():
    assert shortened("two\nlines", 150) == "two lines"
    assert shortened("anything", 1) == "…"
    assert shortened("", 1) == ""


def test_characters_without_a_glyph_do_not_warn():
    marks = [plots.Mark("日本語 🚕", 1.0, 0.5, 1.5, "good")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw(lambda a: plots.forest(a, marks, unit="u"), 400, 100, name="f", says="x")
    assert "日本語 🚕" in [e.text for e in parse(drawn).all("text")]


def test_colours_are_the_page_s_and_text_is_left_alone():
    marks = [plots.Mark("#010101", 1.0, 0.5, 1.5, "good")]
    drawn = parse(draw(lambda a: plots.forest(a, marks, unit="u"), 400, 100, name="f", says="#010102"))
    assert "#010101" in [e.text for e in drawn.all("text")]
    styles = " ".join(e.attributes.get("style") or "" for e in drawn.elements)
    assert "var(--mx-good, " in styles
    assert "#0101" not in styles
    assert drawn.all("svg")[0].attributes["aria-label"] == "#010102"


def test_the_font_is_the_page_s_in_every_version_of_matplotlib():
    text = "<text style=\"font: italic 13px 'DejaVu Sans', sans-serif; text-anchor: middle\">x</text>"
    drawn = inline(f'<svg viewBox="0 0 10 10">{text}</svg>', name="f", says="x")
    assert 'style="font-size: 13px; text-anchor: middle"' in drawn


@pytest.mark.parametrize(
    ("value", "spread", "words"),
    [
        (-0.191702, 0.0765, "-0.1917"),
        (1234.5678, 100.0, "1235"),
        (0.5, None, "0.5"),
        (float("nan"), 1.0, "–"),
        (None, 1.0, "–"),
        (-1e-9, 0.1, "0.000"),
    ],
)
def test_values_are_rounded_to_their_spread(value, spread, words):
    assert rounded(value, spread) == words
