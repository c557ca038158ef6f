"""The figures of a report: each is a function of records and axes, and changes nothing else.

A row is drawn at y = 0, 1, … downwards. Where the page is narrow its label stands above it instead of beside the axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import MaxNLocator, NullLocator

from mixope.answers.estimate import Earned, Estimate
from mixope.backtesting import BacktestRow
from mixope.base.errors import clean
from mixope.differences import Rank
from mixope.report.svg import COLOURS, FONT_SIZE, INK, MUTED, PAPER, RULE, Canvas
from mixope.report.words import kind, rounded, signed, whole

MARKER = {"good": "o", "caution": "^", "bad": "X", "reference": "o", "logger": "D", "truth": "*", "band": "|"}
ROW = {True: 44, False: 28}
"""CSS pixels per row, on narrow and on wide pages."""
AXIS = 52
"""CSS pixels of the axis under the rows and its label."""
EDGE = 10
"""CSS pixels on either side of the axes."""
DWARFS = 2.0
"""So many times as wide as the axis is too wide to be drawn on it."""
LABEL = 230
"""The most CSS pixels that a label beside the axes may take; tables show it whole."""


@dataclass(frozen=True)
class Mark:
    """A value with or without a range, and what it is: a verdict's kind, or logger, truth, band.

    A band that is ``far`` too wide for the axis of the others is told in words.
    """

    label: str
    value: float
    low: float | None
    high: float | None
    kind: str
    far: bool = False

    @property
    def words(self) -> str:
        """The numbers, in short."""
        if self.low is None or self.high is None:
            return rounded(self.value)
        half = (self.high - self.low) / 2
        span = f"{rounded(self.low, half)} to {rounded(self.high, half)}"
        if self.kind == "band":
            return f"{span}, beyond this axis" if self.far else span
        return f"{rounded(self.value, half)} ({span})"


def mark_of(estimate: Estimate, label: str) -> Mark:
    """An estimate with its interval."""
    found = estimate.interval
    return Mark(label, estimate.value, found.low if found else None, found.high if found else None, kind(estimate))


def band_mark(value: float, band: tuple[float, float], others: Sequence[Mark]) -> Mark:
    """The outer band beside other marks; where it dwarfs their axis, only in words."""
    low, high = limits(others)
    return Mark("outer band", value, *band, "band", far=band[1] - band[0] > DWARFS * (high - low))


def own_marks(rivals: Sequence[tuple[str, Earned]]) -> list[Mark]:
    """What those who wrote the logs earn themselves, where that is known."""
    known = [(name, found.value, found.interval) for name, found in rivals if found.value is not None]
    return [Mark(name, value, at.low if at else None, at.high if at else None, "logger") for name, value, at in known]


def height(rows: int, narrow: bool) -> int:
    """Of a figure with that many rows."""
    return rows * ROW[narrow] + AXIS


def forest(axes: Axes, marks: Sequence[Mark], *, unit: str, narrow: bool = False) -> None:
    """Values with their ranges, one per row; loggers and the truth are lines through all rows, the band is a shade.

    What lies far outside the first mark, the loggers and the truth is cut off, with an arrow.
    """
    low, high = limits(marks)
    for mark in marks:
        colour = COLOURS[mark.kind][0]
        if mark.kind == "band" and not mark.far and mark.low is not None and mark.high is not None:
            axes.axvspan(max(mark.low, low), min(mark.high, high), color=colour, alpha=0.1, linewidth=0, zorder=0)
        elif mark.kind in ("logger", "truth") and low <= mark.value <= high:
            style = ":" if mark.kind == "logger" else "-"
            axes.axvline(mark.value, color=colour, linewidth=1, linestyle=style, alpha=0.6, zorder=1)
    _marks(axes, marks, low, high, unit, narrow)


def differences(axes: Axes, marks: Sequence[Mark], *, unit: str, narrow: bool = False) -> None:
    """Differences with their ranges, one per row, and a line where there is none."""
    sound = [mark for mark in marks if mark.kind != "bad"]
    low, high = limits([Mark("", 0.0, None, None, "truth"), *sound, *marks], 1 + len(sound or marks))
    axes.axvline(0.0, color=INK, linewidth=1, zorder=1)
    _marks(axes, marks, low, high, unit, narrow)


def selection(axes: Axes, ranks: Sequence[Rank], kinds: Sequence[str], *, unit: str, narrow: bool = False) -> None:
    """Targets from the best to the worst: intervals of each alone (thick) and of all together (thin).

    Those that cannot be told apart from the best are shaded; those that are not ranked do not widen the range.
    """
    spans = [(rank.interval, rank.joint) for rank in ranks]
    alone, joint = (
        [
            Mark(rank.target, rank.value, found.low if found else None, found.high if found else None, kind)
            for rank, kind, found in zip(ranks, kinds, each, strict=True)
        ]
        for each in zip(*spans, strict=True)
    )
    low, high = limits(joint, max(sum(rank.place is not None for rank in ranks), 1))
    reach = 0.22 if narrow else 0.5  # below the label, which stands on plain paper
    for y, (rank, own, all_of_them) in enumerate(zip(ranks, alone, joint, strict=True)):
        if rank.may_be_best:
            axes.axhspan(y - reach, y + reach, color=COLOURS["band"][0], alpha=0.12, linewidth=0, zorder=0)
        _line(axes, y, all_of_them, low, high, 1)
        _span(axes, y, own, low, high, wide=4)
    _rows(axes, [rank.target for rank in ranks], [_place_words(rank) for rank in ranks], narrow)
    _scale(axes, low, high, unit, narrow)


def _place_words(rank: Rank) -> str:
    """The value, and the places that it may have."""
    half = rank.interval.width / 2 if rank.interval else None
    places = f"place {rank.span}" if rank.low == rank.high else f"places {rank.span}"
    said = "not ranked" if rank.place is None else "by value" if rank.low is None else places
    return f"{rounded(rank.value, half)}, {said}"


def _marks(axes: Axes, marks: Sequence[Mark], low: float, high: float, unit: str, narrow: bool) -> None:
    for y, mark in enumerate(marks):
        _span(axes, y, mark, low, high)
    _rows(axes, [mark.label for mark in marks], [mark.words for mark in marks], narrow)
    _scale(axes, low, high, unit, narrow)


def backtest(axes: Axes, rows: Sequence[BacktestRow], *, unit: str, narrow: bool = False) -> None:
    """Every logger as predicted from the others, with its interval, and what it really earned (a diamond) with its own.

    The earnings stand a little below the prediction, so that neither hides the other.
    """
    marks = [Mark(row.label, row.predicted, row.low, row.high, kind(row)) for row in rows]
    earned = [Mark(row.label, row.earned, row.earned_low, row.earned_high, "logger") for row in rows]
    low, high = limits([*earned, *marks])
    above, below = (0.02, 0.26) if narrow else (-0.12, 0.14)
    for y, (mark, truth) in enumerate(zip(marks, earned, strict=True)):
        _span(axes, y + above, mark, low, high)
        _span(axes, y + below, truth, low, high)
    _rows(axes, [mark.label for mark in marks], [f"z {signed(row.z)}" for row in rows], narrow)
    _scale(axes, low, high, unit, narrow)


def visits(axes: Axes, found: Sequence[tuple[str, float, float]], *, narrow: bool = False) -> None:
    """Of every state its share of the target's steps (filled), and of the logged rows (outline)."""
    bars = [(target, logged) for _, logged, target in found]
    words = [f"target {target:.1%}, logs {logged:.1%}" for target, logged in bars]
    unit = "share of steps: target (filled), logs (outline)"
    _bars(axes, [name for name, *_ in found], bars, words, unit, narrow, percent=True)


def counts(axes: Axes, labels: Sequence[str], found: Sequence[int], *, unit: str, narrow: bool = False) -> None:
    """How many there are of each."""
    bars = [(float(number), 0.0) for number in found]
    _bars(axes, labels, bars, [whole(number) for number in found], unit, narrow)


def _bars(
    axes: Axes,
    labels: Sequence[str],
    bars: Sequence[tuple[float, float]],
    words: Sequence[str],
    unit: str,
    narrow: bool,
    *,
    percent: bool = False,
) -> None:
    """Two bars per row, one filled inside an outline; an outline of nothing is not drawn."""
    for y, (filled, outline) in enumerate(bars):
        if outline:
            axes.barh(y, outline, height=0.4, facecolor="none", edgecolor=MUTED, linewidth=1, zorder=3)
        axes.barh(y, filled, height=0.2, color=COLOURS["logger"][0], zorder=2)
    _rows(axes, labels, words, narrow)
    _scale(axes, 0.0, max(*map(max, bars), 1e-9) * 1.02, unit, narrow, percent=percent)


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
    if mark.far:
        return []
    return [v for v in (mark.value, mark.low, mark.high) if v is not None and math.isfinite(v)]


def _span(axes: Axes, y: float, mark: Mark, low: float, high: float, wide: int = 2) -> None:
    """The range and the point of a mark, cut at the edges."""
    if mark.far:
        return
    _line(axes, y, mark, low, high, 6 if mark.kind == "band" else wide)
    if mark.kind != "band":
        _point(axes, y, mark, low, high)


def _line(axes: Axes, y: float, mark: Mark, low: float, high: float, wide: int) -> None:
    """The range of a mark, with an arrow where it is cut."""
    colour = COLOURS[mark.kind][0]
    if mark.low is not None and mark.high is not None and mark.low <= high and mark.high >= low:
        left, right = max(mark.low, low), min(mark.high, high)
        axes.plot([left, right], [y, y], color=colour, linewidth=wide, solid_capstyle="butt", zorder=3)
        if mark.low < low:
            axes.plot(low, y, marker="<", color=colour, markersize=7, zorder=4, clip_on=False)
        if mark.high > high:
            axes.plot(high, y, marker=">", color=colour, markersize=7, zorder=4, clip_on=False)


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
    across, _ = size(axes)
    axes.set_ylim(len(labels) - 0.5, -0.7 if narrow else -0.5)
    place = axes.get_yaxis_transform()
    if narrow:
        room(axes, EDGE, EDGE)
        axes.yaxis.set_major_locator(NullLocator())
        for y, (label, word) in enumerate(zip(labels, words, strict=True)):
            short = shortened(label, across - 3 * EDGE - width(word))
            axes.text(0.0, y - 0.4, short, transform=place, va="center", ha="left", zorder=6)
            axes.text(1.0, y - 0.4, word, transform=place, va="center", ha="right", color=MUTED, zorder=6)
        return
    shown = [shortened(label, LABEL) for label in labels]
    left, right = (max(width(text) for text in texts) + 2 * EDGE for texts in (shown, words))
    room(axes, left, right)
    axes.set_yticks(range(len(labels)), shown)
    axes.tick_params(axis="y", length=0, pad=EDGE)
    for y, word in enumerate(words):
        axes.text(1.0 + EDGE * 1.5 / _across(axes), y, word, transform=place, va="center", color=MUTED)


def size(axes: Axes) -> tuple[float, float]:
    """Of the figure, in CSS pixels."""
    figure = axes.figure
    return 72 * figure.bbox.width / figure.dpi, 72 * figure.bbox.height / figure.dpi


def _across(axes: Axes) -> float:
    """Of the axes, in CSS pixels."""
    return axes.get_position().width * size(axes)[0]


def room(axes: Axes, left: float, right: float) -> None:
    """Leave that many CSS pixels on the sides, and room for the scale below, unless others lay out the figure."""
    if not isinstance(axes.figure, Canvas):
        return
    across, down = size(axes)
    below = min(AXIS - 6, down / 2)
    axes.set_position((left / across, below / down, 1 - (left + right) / across, 1 - (below + 6) / down))


def _scale(axes: Axes, low: float, high: float, unit: str, narrow: bool, *, percent: bool = False) -> None:
    axes.set_xlim(low, high)
    ticks = [t for t in MaxNLocator(3 if narrow else 5).tick_values(low, high) if low <= t <= high]
    words = [f"{w}%" for w in tick_words([100 * t for t in ticks])] if percent else tick_words(ticks)
    shown = [(t, w) for t, w in zip(ticks, words, strict=True) if fits(axes, (t - low) / (high - low), w)]
    axes.set_xticks([t for t, _ in shown], [w for _, w in shown])
    axes.set_xlabel(shortened(unit, 0.8 * size(axes)[0]))
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=RULE, labelcolor=INK)


def fits(axes: Axes, share: float, words: str) -> bool:
    """Whether a word under the axis, centred at that share of it, stays inside the figure."""
    place, across = axes.get_position(), size(axes)[0]
    centre, half = across * (place.x0 + share * place.width), width(words) / 2
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


def width(text: str) -> float:
    """How wide a text can be, in CSS pixels: the page chooses its font, and this is by the widest of the usual ones."""
    return FONT_SIZE * sum(_advance(character) for character in text)


def shortened(text: str, most: float) -> str:
    """One line of at most that many pixels, safe to show; the middle is left out where it is too long."""
    line = " ".join(clean(text).split())
    if width(line) <= most:
        return line
    for kept in range(len(line) - 1, 1, -1):
        end = kept // 3
        short = f"{line[: kept - end]}…{line[len(line) - end :]}"
        if width(short) <= most:
            return short
    return "…"


@cache
def _advance(character: str) -> float:
    """Of one character, in ems; those that the font lacks (ideographs, emoji) count as more than one."""
    font = get_font(findfont(FontProperties(family="DejaVu Sans"), rebuild_if_missing=False))
    if not font.get_char_index(ord(character)):
        return 1.3
    font.set_size(100, 72)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 100
