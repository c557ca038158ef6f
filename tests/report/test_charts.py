"""Plots on a user's axes: axes in, axes out, real colours, names as they are, and pyplot none the wiser."""

import subprocess
import sys

import matplotlib as mpl
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

import mixope
from mixope.base.errors import UsageError
from mixope.differences import Comparison
from mixope.report.charts import DARK, chart
from mixope.report.html import _source
from mixope.report.svg import COLOURS

from . import records
from .test_cards import SHOWN, logs

PLOTTED = [name for name in SHOWN if name != "logs"]
PLACEHOLDERS = {placeholder for placeholder, _ in COLOURS.values()}


def texts(axes):
    return {text.get_text() for text in axes.findobj(Text)}


def drawn_colours(axes):
    """Of everything on the axes that has a colour."""
    for artist in axes.findobj():
        for name in ("get_color", "get_facecolor", "get_edgecolor", "get_markerfacecolor", "get_markeredgecolor"):
            found = getattr(artist, name, lambda: "none")()
            if not isinstance(found, str) or found != "none":
                yield to_hex(found)


@pytest.mark.parametrize("name", PLOTTED)
def test_every_result_draws_on_given_axes_and_returns_them(name):
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    before = right.get_position().bounds
    assert SHOWN[name]().plot(left) is left
    assert texts(left) - {""}
    assert right.get_position().bounds == before
    figure.canvas.draw()


@pytest.mark.parametrize("name", PLOTTED)
def test_without_axes_there_is_a_new_figure_of_the_right_size(name, tmp_path):
    axes = SHOWN[name]().plot()
    axes.figure.savefig(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 1000
    assert not PLACEHOLDERS & set(drawn_colours(axes))


@pytest.mark.parametrize("ground", ["#ffffff", "#101418"])
def test_colours_are_those_of_the_ground_and_others_artists_keep_theirs(ground):
    figure = Figure(facecolor=ground)
    axes = figure.subplots(subplot_kw={"facecolor": ground})
    (mine,) = axes.plot([0, 1], [0, 1], color="#123456")
    records.estimate().plot(axes)
    found = set(drawn_colours(axes))
    assert not PLACEHOLDERS & found
    caution = DARK["caution"] if ground == "#101418" else COLOURS["caution"][1]
    assert caution in found
    assert mine.get_color() == "#123456"


def test_colours_on_a_dark_ground_are_those_of_the_card():
    sheet = _source("card.css")
    for name, (_, light) in COLOURS.items():
        assert f"--mx-{name}: light-dark({light}, {DARK[name]})" in sheet


def test_a_name_is_no_formula():
    with mpl.rc_context({"text.parse_math": True}):
        figure = Figure()
        axes = records.estimate(estimator="$\\frac{a}$ \\x").plot(figure.subplots())
        figure.canvas.draw()
    assert "$\\frac{a}$ \\x" in texts(axes)


@pytest.mark.long
def test_pyplot_has_no_figure_afterwards_and_settings_are_the_users():
    code = (
        "import sys; sys.path[:0] = ['tests']\n"
        "import matplotlib as mpl; mpl.rcParams['font.size'] = 17\n"
        "from report import records\n"
        "axes = records.estimate().plot()\n"
        "print('matplotlib.pyplot' in sys.modules, mpl.rcParams['font.size'])\n"
        "import matplotlib.pyplot as plt; print(plt.get_fignums())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 17.0\n[]\n"


def test_what_is_no_axes_is_told_in_words():
    with pytest.raises(UsageError, match="ax is a matplotlib Axes"):
        records.estimate().plot("here")
    with pytest.raises(UsageError, match="nothing to draw"):
        Comparison(()).plot()


def test_a_card_draws_few_rows_and_a_plot_all():
    crowded = records.estimate(loggers=tuple(records.LOGGERS[0] for _ in range(20)))
    assert chart(crowded, 6).rows == 2
    assert chart(crowded).rows == 22


def test_rows_by_source_are_drawn_where_they_are_known():
    assert chart(logs()) is None
    rows = {"episode_id": [0, 0], "step": [0, 1], "observation": ["x", "y"], "action": ["l", "l"], "reward": [1.0, 2.0]}
    table = pa.table({**rows, "terminated": [False, True]})
    both = chart(mixope.read(table, table.slice(1), label=["old", "new"]))
    assert both.rows == 2
    assert "old: 2; new: 1" in both.says
