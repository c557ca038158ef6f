"""The one picture of a record: the same in its card and, on a user's own axes, by ``plot``.

Plots are drawn in placeholder colours (:mod:`mixope.report.svg`). On axes of matplotlib these become the colours of a
light or a dark figure; names stay names, whatever dollar signs are in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.base.errors import UsageError, clean
from mixope.differences import Comparison, Differences, Selection
from mixope.experiments.records import Experiment
from mixope.inspection import Inspection
from mixope.logs import Logs
from mixope.report import plots, trial_graphs, trial_words
from mixope.report.svg import COLOURS, Canvas, draw, own_style
from mixope.report.words import kind, rounded, standing

WIDE, NARROW = 760, 344
MOST = 40
"""Rows of a plot; a card has fewer."""
DARK = {
    "ink": "#e7ebee",
    "muted": "#a7b1ba",
    "rule": "#3b444c",
    "paper": "#14181b",
    "reference": "#a7b1ba",
    "good": "#4ecba4",
    "caution": "#f0b354",
    "bad": "#ff8f85",
    "logger": "#86b4f5",
    "truth": "#d9a0ea",
    "band": "#86b4f5",
}
"""What the colours are on a dark ground."""


@dataclass(frozen=True)
class Chart:
    """A picture: how many rows it has, who draws it, and what it says to those who do not see it."""

    rows: int
    plot: Callable[..., None]
    says: str

    def svg(self, name: str) -> str:
        """For a narrow column of a page."""
        size = NARROW, plots.height(self.rows, True)
        return draw(partial(self.plot, narrow=True), *size, name=name, says=clean(self.says))


def plot(record: object, ax: Axes | None = None) -> Axes:
    """Draw a record on these axes, or on a figure of its own; returns the axes."""
    if ax is not None and not isinstance(ax, Axes):
        raise UsageError(f"ax is a matplotlib Axes, such as plt.subplots() gives, got a {type(ax).__name__}")
    shown = chart(record)
    if shown is None:
        raise UsageError(f"there is nothing to draw: this {type(record).__name__.lower()} holds no numbers")
    if ax is not None:
        with _plainly():
            shown.plot(ax)
        return _painted(ax, _ground(ax))
    with own_style():
        canvas = Canvas(WIDE, plots.height(shown.rows, False))
        axes = canvas.subplots()
        shown.plot(axes)
    canvas.set_facecolor(COLOURS["paper"][1])
    return _painted(axes, {name: plain for name, (_, plain) in COLOURS.items()})


@contextmanager
def _plainly() -> Iterator[None]:
    """A name with dollar signs or backslashes in it is no formula."""
    with mpl.rc_context({"text.parse_math": False, "text.usetex": False}):
        yield


def _ground(axes: Axes) -> dict[str, str]:
    """The colours for these axes: dark ones where what lies behind them is dark, with the paper that it is."""
    behind = axes.get_facecolor() if to_rgba(axes.get_facecolor())[3] else axes.figure.get_facecolor()
    red, green, blue = to_rgb(behind) if to_rgba(behind)[3] else (1.0, 1.0, 1.0)
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4
    colours = DARK if dark else {name: plain for name, (_, plain) in COLOURS.items()}
    return {**colours, "paper": to_hex((red, green, blue))}


def _painted(axes: Axes, colours: dict[str, str]) -> Axes:
    """With real colours for placeholders; what others drew has none, and stays as it is."""
    real = {placeholder: colours[name] for name, (placeholder, _) in COLOURS.items()}
    for artist in axes.findobj():
        for get, set_ in _colours_of(artist):
            found = get()
            if isinstance(found, str) and found == "none":
                continue
            *_, alpha = to_rgba(found)
            if (new := real.get(to_hex(found))) is not None:
                set_(to_rgba(new, alpha))
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
        label.set_usetex(False)
    return axes


def _colours_of(artist: Artist) -> list[tuple[Callable[[], Any], Callable[[Any], None]]]:
    match artist:
        case Line2D():
            return [
                (artist.get_color, artist.set_color),
                (artist.get_markerfacecolor, artist.set_markerfacecolor),
                (artist.get_markeredgecolor, artist.set_markeredgecolor),
            ]
        case Patch():
            return [(artist.get_facecolor, artist.set_facecolor), (artist.get_edgecolor, artist.set_edgecolor)]
        case Text():
            return [(artist.get_color, artist.set_color)]
    return []


@singledispatch
def chart(record: object, most: int = MOST) -> Chart | None:
    """The picture of a record, of at most so many rows; None where there is nothing to draw."""
    raise UsageError(f"a {type(record).__name__} cannot be drawn")


@chart.register
def _(record: Estimate, most: int = MOST) -> Chart:
    marks = [plots.mark_of(e, e.estimator) for e in (record, *record.beside)]
    own = plots.own_marks([(f"{name}, itself", found) for name, found in record.rivals])
    if record.band:
        marks.append(plots.band_mark(record.value, record.band, [*marks, *own]))
    listed = own if len(marks) + len(own) <= most else own[-1:]  # all logs together
    return _ranges([*marks[: most - len(listed)], *listed], f"{record.unit}, {record.estimand}")


@chart.register
def _(record: Comparison, most: int = MOST) -> Chart | None:
    if not record.estimates:
        return None
    several = len({e.estimator for e in record.estimates}) > 1
    marks = [plots.mark_of(e, f"{e.target}, {e.estimator}" if several else e.target) for e in _best_first(record)]
    first = record.estimates[0]
    own = plots.own_marks([("all logs, itself", first.against_logs)])
    return _ranges([*marks[: most - len(own)], *own], f"{first.unit}, {first.estimand}")


def _best_first(record: Comparison) -> list[Estimate]:
    """The estimates by the places of their targets, those of the first estimator before the others."""
    ranks = record.selections[0].ranks if record.selections else ()
    place = {rank.target: k for k, rank in enumerate(ranks)}
    by = {name: k for k, name in enumerate(dict.fromkeys(e.estimator for e in record.estimates))}
    return sorted(record.estimates, key=lambda e: (by[e.estimator], place.get(e.target, len(place))))


def _ranges(marks: Sequence[plots.Mark], unit: str) -> Chart:
    says = "Values with their intervals. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    return Chart(len(marks), partial(plots.forest, marks=marks, unit=unit), says)


@chart.register
def _(record: Differences, most: int = MOST) -> Chart | None:
    marks = [
        plots.Mark(f"{p.first} − {p.second}", p.value, p.decisive.low, p.decisive.high, "logger")
        for p in (record.pairs or record.loggers)[:most]
    ]
    says = "Differences with their intervals. " + "; ".join(f"{mark.label}: {mark.words}" for mark in marks)
    unit = f"difference in {record.estimand.unit}, {record.estimand}"
    return Chart(len(marks), partial(plots.differences, marks=marks, unit=unit), says) if marks else None


@chart.register
def _(record: Selection, most: int = MOST) -> Chart | None:
    ranks = record.ranks[:most]
    kinds = ["bad" if rank.place is None else "good" if rank.may_be_best else "reference" for rank in ranks]
    says = "Places. " + "; ".join(f"{rank.target}: {rounded(rank.value)}, {standing(rank)}" for rank in ranks)
    return Chart(len(ranks), partial(plots.selection, ranks=ranks, kinds=kinds, unit="value"), says) if ranks else None


@chart.register
def _(record: Experiment, most: int = MOST) -> Chart:
    arm = record.main
    unit = f"{arm.metric}, {arm.arm} less {record.control}"
    plot = partial(trial_graphs.path, days=arm.days, unit=unit, period=f"{record.period} since entry")
    return Chart(8, plot, trial_words.headline(record, arm))


@chart.register
def _(record: Backtest, most: int = MOST) -> Chart | None:
    far = {"bad": 0, "caution": 1, "good": 2, "reference": 3}
    rows = record.rows if len(record.rows) <= most else sorted(record.rows, key=lambda row: far[kind(row)])[:most]
    says = "Backtest. " + "; ".join(
        f"{row.label}: predicted {rounded(row.predicted)}, earned {rounded(row.earned)}" for row in rows
    )
    return Chart(len(rows), partial(plots.backtest, rows=rows, unit="reward per step"), says) if rows else None


@chart.register
def _(record: Inspection, most: int = MOST) -> Chart | None:
    if record.contents is None:
        return None
    found = record.contents.lengths.histogram
    labels = [f"{bar.low:,}" if bar.low == bar.high else f"{bar.low:,}–{bar.high:,}" for bar in found]
    said = [f"{label} row" if label == "1" else f"{label} rows" for label in labels]
    return _counts(said, [bar.episodes for bar in found], "episodes by their length")


@chart.register
def _(record: Logs, most: int = MOST) -> Chart | None:
    """Rows by source, where there are several and nothing must be read to count them."""
    known = [
        (source.label or source.name, [piece.known_rows() for piece in source.pieces]) for source in record.sources
    ]
    if len(known) < 2 or any(rows is None for _, found in known for rows in found):
        return None
    listed = [(name, sum(rows for rows in found if rows is not None)) for name, found in known[:most]]
    return _counts([name for name, _ in listed], [rows for _, rows in listed], "rows by source")


def _counts(labels: Sequence[str], found: Sequence[int], unit: str) -> Chart | None:
    says = f"Bar chart, {unit}. " + "; ".join(f"{label}: {n:,}" for label, n in zip(labels, found, strict=True))
    return Chart(len(labels), partial(plots.counts, labels=labels, found=found, unit=unit), says) if labels else None
