"""The figures of a report: each is a function of records and axes, and changes nothing else.

A row is drawn at y = 0, 1, … downwards. Where the page is narrow its label stands above it instead of beside the axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from mixope.report.answer import Bin, Logger
from mixope.report.predictions import Prediction
from mixope.report.svg import COLOURS, FONT_SIZE, INK, MUTED, PAPER, RULE
from mixope.report.widths import shortened, width
from mixope.report.words import rounded, whole

MARKER = {"good": "o", "caution": "^", "bad": "X", "reference": "o", "logger": "D", "truth": "*", "band": "|"}
ROW = {True: 44, False: 28}
"""CSS pixels a row, on narrow and on wide pages."""
AXIS = 52
"""CSS pixels of the axis under the rows and its label."""
EDGE = 10
"""CSS pixels on either side of the axes."""
LABEL = 230
"""The most CSS pixels that a label beside the axes may take; tables show it whole."""


@dataclass(frozen=True)
class Mark:
    """A value with or without a range, and what it is: a verdict's kind, or logger, truth, band."""

    label: str
    value: float
    low: float | None
    high: float | None
    kind: str

    @property
    def words(self) -> str:
        """The numbers, in short."""
        if self.low is None or self.high is None:
            return rounded(self.value)
        half = (self.high - self.low) / 2
        span = f"{rounded(self.low, half)} to {rounded(self.high, half)}"
        return span if self.kind == "band" else f"{rounded(self.value, half)} ({span})"


def height(rows: int, narrow: bool) -> int:
    """Of a figure with that many rows."""
    return rows * ROW[narrow] + AXIS


def forest(axes: Axes, marks: Sequence[Mark], *, unit: str, narrow: bool = False) -> None:
    """Values with their ranges, one a row; loggers and the truth are lines through all rows, the band is a shade.

    What lies far outside the first mark, the loggers and the truth is cut off, with an arrow.
    """
    low, high = limits(marks)
    for mark in marks:
        colour = COLOURS[mark.kind][0]
        if mark.kind == "band" and mark.low is not None and mark.high is not None:
            axes.axvspan(max(mark.low, low), min(mark.high, high), color=colour, alpha=0.1, linewidth=0, zorder=0)
        elif mark.kind in ("logger", "truth") and low <= mark.value <= high:
            style = ":" if mark.kind == "logger" else "-"
            axes.axvline(mark.value, color=colour, linewidth=1, linestyle=style, alpha=0.6, zorder=1)
    for y, mark in enumerate(marks):
        _span(axes, y, mark, low, high)
    _rows(axes, [mark.label for mark in marks], [mark.words for mark in marks], narrow)
    _scale(axes, low, high, unit, narrow)


def differences(axes: Axes, marks: Sequence[Mark], *, unit: str, narrow: bool = False) -> None:
    """Differences with their ranges, one a row, and a line where there is none."""
    sound = [mark for mark in marks if mark.kind != "bad"]
    low, high = limits([Mark("", 0.0, None, None, "truth"), *sound, *marks], 1 + len(sound or marks))
    axes.axvline(0.0, color=INK, linewidth=1, zorder=1)
    for y, mark in enumerate(marks):
        _span(axes, y, mark, low, high)
    _rows(axes, [mark.label for mark in marks], [mark.words for mark in marks], narrow)
    _scale(axes, low, high, unit, narrow)


def backtest(axes: Axes, predictions: Sequence[Prediction], *, unit: str, narrow: bool = False) -> None:
    """Every logger as predicted from the others, with its interval, and what it really earned (a diamond) with its own.

    The earnings stand a little below the prediction, so that neither hides the other.
    """
    marks = [Mark(p.label, p.predicted, p.low, p.high, p.kind) for p in predictions]
    earned = [Mark(p.label, p.earned, p.earned_low, p.earned_high, "logger") for p in predictions]
    low, high = limits([*earned, *marks])
    above, below = (0.02, 0.26) if narrow else (-0.12, 0.14)
    for y, (mark, truth) in enumerate(zip(marks, earned, strict=True)):
        _span(axes, y + above, mark, low, high)
        _span(axes, y + below, truth, low, high)
    _rows(axes, [mark.label for mark in marks], [f"z {_signed(p.z)}" for p in predictions], narrow)
    _scale(axes, low, high, unit, narrow)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


def bins(axes: Axes, weights: Sequence[Bin], *, narrow: bool = False) -> None:
    """How many rows have which weight (outline), and how much of all weight they carry (filled)."""
    words = []
    for y, found in enumerate(weights):
        axes.barh(y, found.rows_share, height=0.4, facecolor="none", edgecolor=MUTED, linewidth=1, zorder=3)
        axes.barh(y, found.weight_share, height=0.2, color=COLOURS["logger"][0], zorder=2)
        words.append(f"{found.weight_share:.1%} of weight, {found.rows_share:.1%} of rows")
    _rows(axes, [found.label for found in weights], words, narrow)
    most = max(max(found.rows_share, found.weight_share) for found in weights)
    _scale(axes, 0.0, max(most, 1e-9) * 1.02, "share of weight (filled) and of rows (outline)", narrow, percent=True)


def shares(axes: Axes, loggers: Sequence[Logger], *, narrow: bool = False) -> None:
    """The share of the rows (hollow) and of the weight (filled) that every logger has."""
    words = []
    for y, logger in enumerate(loggers):
        weight = logger.weight_share or 0.0
        axes.barh(y, logger.rows_share, height=0.4, facecolor="none", edgecolor=MUTED, linewidth=1, zorder=3)
        axes.barh(y, weight, height=0.2, color=COLOURS["logger"][0], zorder=2)
        words.append(f"{weight:.1%} of {logger.rows_share:.1%}")
    _rows(axes, [logger.label for logger in loggers], words, narrow)
    most = max(max(logger.rows_share, logger.weight_share or 0.0) for logger in loggers)
    _scale(axes, 0.0, max(most, 1e-9) * 1.02, "share of weight (filled) and of rows (outline)", narrow, percent=True)


def sizes(axes: Axes, loggers: Sequence[Logger], *, narrow: bool = False) -> None:
    """How many rows of the target's own every logger's weighted rows are worth (filled), of its rows (outline)."""
    words = []
    for y, logger in enumerate(loggers):
        size = logger.effective_sample_size or 0.0
        axes.barh(y, logger.rows, height=0.4, facecolor="none", edgecolor=MUTED, linewidth=1, zorder=3)
        axes.barh(y, size, height=0.2, color=COLOURS["logger"][0], zorder=2)
        words.append(f"{whole(size)} of {whole(logger.rows)}")
    _rows(axes, [logger.label for logger in loggers], words, narrow)
    most = max(max(logger.rows, logger.effective_sample_size or 0.0) for logger in loggers)
    _scale(axes, 0.0, most * 1.02, "effective (filled) and logged rows (outline)", narrow)


def limits(marks: Sequence[Mark], first: int = 1) -> tuple[float, float]:
    """The range to show: the first marks, the loggers, the truth; of the rest, up to as much again on a side."""
    core = [v for k, mark in enumerate(marks) if k < first or mark.kind in ("logger", "truth") for v in _numbers(mark)]
    every = [v for mark in marks for v in _numbers(mark)]
    core = core or every or [0.0]
    low, high = min(core), max(core)
    reach = (high - low) or 0.1 * max(abs(low), 1.0)
    low, high = (
        max(min([low, *every]), low - reach),
        min(max([high, *every]), high + reach),
    )
    margin = 0.04 * (high - low) or 0.1 * max(abs(low), 1.0)
    return low - margin, high + margin


def _numbers(mark: Mark) -> list[float]:
    return [v for v in (mark.value, mark.low, mark.high) if v is not None and math.isfinite(v)]


def _span(axes: Axes, y: float, mark: Mark, low: float, high: float) -> None:
    """The range and the point of a mark, cut at the edges."""
    colour = COLOURS[mark.kind][0]
    if mark.low is not None and mark.high is not None and mark.low <= high and mark.high >= low:
        left, right = max(mark.low, low), min(mark.high, high)
        wide = 6 if mark.kind == "band" else 2
        axes.plot([left, right], [y, y], color=colour, linewidth=wide, solid_capstyle="butt", zorder=3)
        if mark.low < low:
            axes.plot(low, y, marker="<", color=colour, markersize=7, zorder=4, clip_on=False)
        if mark.high > high:
            axes.plot(high, y, marker=">", color=colour, markersize=7, zorder=4, clip_on=False)
    if mark.kind != "band":
        _point(axes, y, mark, low, high)


def _point(axes: Axes, y: float, mark: Mark, low: float, high: float) -> None:
    if not math.isfinite(mark.value):
        return
    marker = "<" if mark.value < low else ">" if mark.value > high else MARKER[mark.kind]
    hollow = mark.kind in ("logger", "reference")
    axes.plot(
        min(max(mark.value, low), high),
        y,
        marker=marker,
        markersize=11 if mark.kind == "truth" else 7,
        color=COLOURS[mark.kind][0],
        markerfacecolor=PAPER if hollow else COLOURS[mark.kind][0],
        clip_on=False,
        zorder=5,
    )


def _rows(axes: Axes, labels: Sequence[str], words: Sequence[str], narrow: bool) -> None:
    """Labels on the left, numbers on the right; above the row where the page is narrow."""
    across, _ = _size(axes)
    axes.set_ylim(len(labels) - 0.5, -0.7 if narrow else -0.5)
    place = axes.get_yaxis_transform()
    if narrow:
        _room(axes, EDGE, EDGE)
        axes.yaxis.set_major_locator(NullLocator())
        for y, (label, word) in enumerate(zip(labels, words, strict=True)):
            short = shortened(label, FONT_SIZE, across - 3 * EDGE - width(word, FONT_SIZE))
            axes.text(0.0, y - 0.4, short, transform=place, va="center", ha="left", zorder=6)
            axes.text(1.0, y - 0.4, word, transform=place, va="center", ha="right", color=MUTED, zorder=6)
        return
    shown = [shortened(label, FONT_SIZE, LABEL) for label in labels]
    left, right = (max(width(text, FONT_SIZE) for text in texts) + 2 * EDGE for texts in (shown, words))
    _room(axes, left, right)
    axes.set_yticks(range(len(labels)), shown)
    axes.tick_params(axis="y", length=0, pad=EDGE)
    for y, word in enumerate(words):
        axes.text(1.0 + EDGE * 1.5 / (across - left - right), y, word, transform=place, va="center", color=MUTED)


def _size(axes: Axes) -> tuple[float, float]:
    """Of the figure, in CSS pixels."""
    figure = axes.figure
    return 72 * figure.bbox.width / figure.dpi, 72 * figure.bbox.height / figure.dpi


def _room(axes: Axes, left: float, right: float) -> None:
    """Leave that many CSS pixels on the sides, and room for the scale below."""
    across, down = _size(axes)
    below = min(AXIS - 6, down / 2)
    axes.set_position((left / across, below / down, 1 - (left + right) / across, 1 - (below + 6) / down))


def _scale(axes: Axes, low: float, high: float, unit: str, narrow: bool, *, percent: bool = False) -> None:
    axes.set_xlim(low, high)
    ticks = [t for t in MaxNLocator(3 if narrow else 5).tick_values(low, high) if low <= t <= high]
    words = [f"{w}%" for w in tick_words([100 * t for t in ticks])] if percent else tick_words(ticks)
    shown = [(t, w) for t, w in zip(ticks, words, strict=True) if _fits(axes, (t - low) / (high - low), w)]
    axes.set_xticks([t for t, _ in shown], [w for _, w in shown])
    axes.set_xlabel(shortened(unit, FONT_SIZE, 0.8 * _size(axes)[0]))
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=RULE, labelcolor=INK)


def _fits(axes: Axes, share: float, words: str) -> bool:
    """Whether a word under the axis, centred at that share of it, stays inside the figure."""
    place, across = axes.get_position(), _size(axes)[0]
    centre, half = across * (place.x0 + share * place.width), width(words, FONT_SIZE) / 2
    return bool(half <= centre <= across - half)


def tick_words(ticks: Sequence[float]) -> list[str]:
    """The fewest digits that tell the ticks apart and hold them."""
    step = min((b - a for a, b in pairwise(ticks)), default=1.0)
    words = [f"{t:.12g}" for t in ticks]
    for digits in range(1, 13):
        words = [f"{0.0 if abs(t) < step / 1e6 else t:.{digits}g}" for t in ticks]
        if all(abs(float(w) - t) < 0.02 * step for w, t in zip(words, ticks, strict=True)):
            break
    plain = [f"{float(w):,.0f}" if "e" in w and abs(float(w)) < 1e7 and float(w).is_integer() else w for w in words]
    return [w.replace("e+0", "e").replace("e-0", "e-") for w in plain]
