"""Figures with two scales: each is a function of records and axes, like those of :mod:`mixope.report.plots`.

Where the page is narrow there are fewer ticks, and words stand inside the axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from mixope.answers.confounding import ConfoundingPoint
from mixope.answers.pictures import Grown, Reliability, ReturnBar
from mixope.experiments.records import SensitivityPoint
from mixope.inspection import Grid
from mixope.report.plots import AXIS, EDGE, fits, shortened, size, tick_words, width
from mixope.report.svg import COLOURS, INK, MUTED, PAPER, RULE, Canvas
from mixope.requests.weights import WeightBin

HEIGHT = {True: 210, False: 250}
"""CSS pixels, on narrow and on wide pages."""
ABOVE = 22
"""CSS pixels above the axes, for words about a line through them."""
CELL = 24
"""CSS pixels per row of a map."""
Ticks = Sequence[tuple[float, str]]
FILLED = COLOURS["logger"][0]


def weights(axes: Axes, bins: Sequence[WeightBin], *, effective: float, rows: int, narrow: bool = False) -> None:
    """Rows by their weight, on a scale of powers of two (outline), and how much of all weight they carry (filled).

    A line marks N / (effective rows): the weight that each would have if so few rows carried all of it alike, which is
    the mean weight by weight, Σw² / Σw, in multiples of the mean.
    """
    places = [_bin_place(found) for found in bins]
    for found, (left, right) in zip(bins, places, strict=True):
        _bar(axes, left, right, found.rows_share, "none", MUTED)
        _bar(axes, left + 0.2 * (right - left), right - 0.2 * (right - left), found.weight_share, FILLED, "none")
    low, high = places[0][0], places[-1][1]
    words: list[tuple[float, str]] = [(sum(places[0]) / 2, "0")] if bins[0].low is None else []
    edges = sorted({edge for found in bins for edge in (found.low, found.high) if edge})
    every = 2 if len(edges) > (6 if narrow else 12) else 1
    words += [(math.log2(edge), f"{edge:g}") for edge in edges[::every]]
    line = None
    if effective > 0:
        at = math.log2(max(rows / effective, 1.0))
        high = max(high, at + 0.3)
        line = (min(max(at, low), high), f"{effective:,.0f} effective of {rows:,} rows")
    most = max(max(found.rows_share, found.weight_share) for found in bins)
    frame(axes, (low, high), words, "weight as a multiple of the mean weight", (0.0, most), percent=True)
    if line is not None:
        _line(axes, *line, kind="truth")


def _bin_place(found: WeightBin) -> tuple[float, float]:
    """From … to …, in powers of two; weights of zero stand apart, the open ends are as wide as the others."""
    if found.low is None:
        return -6.0, -5.0
    high = None if found.high is None else math.log2(found.high)
    if found.low > 0:
        low = math.log2(found.low)
        return low, low + 1.0 if high is None else high
    return (high or 0.0) - 1.0, high or 0.0


def growth(axes: Axes, points: Sequence[Grown], *, ran: float | None, unit: str, narrow: bool = False) -> None:
    """The value after the first episodes with its interval, and what ran as a dotted line."""
    across = [math.log10(found.episodes) for found in points]
    shade = [*(found.low for found in points), *(found.high for found in reversed(points))]
    axes.fill([*across, *reversed(across)], shade, color=FILLED, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(across, [found.value for found in points], color=FILLED, linewidth=2, marker="o", markersize=4, zorder=3)
    last = points[-1]
    reach = 6 * max(last.high - last.low, 1e-12)
    core = [v for found in points for v in (found.low, found.high) if abs(v - last.value) <= reach]
    core += [last.low, last.high, *([ran] if ran is not None and abs(ran - last.value) <= 2 * reach else [])]
    ticks = _log_ticks(points[0].episodes, last.episodes, narrow)
    frame(axes, (across[0], across[-1]), ticks, "episodes, on a logarithmic scale", (min(core), max(core)))
    if ran is not None and ran in core:
        axes.axhline(ran, color=MUTED, linewidth=1, linestyle=":", zorder=2)
        _beside(axes, ran, points[0].value, last.value, "what ran")
    above(axes, shortened(unit, 0.9 * size(axes)[0]))


def _log_ticks(first: int, last: int, narrow: bool) -> Ticks:
    """Round numbers of episodes, and the last one."""
    round_ones = [k * 10**e for e in range(1, 16) for k in ((1,) if last > 50 * first else (1, 2, 5))]
    step = math.log10(last / first) / (4 if narrow else 8)
    shown = [n for n in round_ones if first <= n and math.log10(last / n) > step]
    return [(math.log10(n), f"{n:,}") for n in (*shown, last)]


def returns(
    axes: Axes, bars: Sequence[ReturnBar], *, marks: Sequence[tuple[float, str, str]], narrow: bool = False
) -> None:
    """How many episodes earned how much; ``marks`` are values with their words and the kind of their colour."""
    for bar in bars:
        _bar(axes, bar.low, bar.high, float(bar.episodes), FILLED, PAPER)
    low, high = bars[0].low, bars[-1].high
    ticks = rounds(low, high, 3 if narrow else 6)
    most = float(max(bar.episodes for bar in bars))
    levels = [(at, word) for at, word in rounds(0.0, most, 4) if at.is_integer()]
    frame(axes, (low, high), ticks, "what an episode earned", (0.0, most), levels=levels)
    for value, words, kind in marks:
        if low <= value <= high:
            _line(axes, value, words, kind=kind)


def reliability(axes: Axes, found: Reliability, *, narrow: bool = False) -> None:
    """Frequencies over probabilities, with two standard errors of chance; on the diagonal they are the same."""
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=":", zorder=1)
    for each in found.bins:
        reach = 2 * each.standard_error
        ends = [max(each.observed - reach, 0.0), min(each.observed + reach, 1.0)]
        axes.plot([each.predicted] * 2, ends, color=FILLED, linewidth=2, zorder=2)
    across, up = [b.predicted for b in found.bins], [b.observed for b in found.bins]
    axes.plot(across, up, color=FILLED, linestyle="none", marker="o", markersize=6, zorder=3, clip_on=False)
    ticks = [(k / 4, f"{25 * k}%") for k in range(5)]
    frame(axes, (0.0, 1.0), ticks, "probability of an action", (0.0, 1.0), levels=ticks)
    above(axes, "how often it was taken")


def bounds(
    axes: Axes,
    points: Sequence[ConfoundingPoint | SensitivityPoint],
    *,
    unit: str,
    factor: str,
    line: float | None,
    words: str = "",
    narrow: bool = False,
) -> None:
    """The least and the greatest at each factor (the shade), with chance (dashed), and a line to hold them against."""
    across = [point.factor for point in points]
    inner = [*(point.low for point in points), *(point.high for point in reversed(points))]
    axes.fill([*across, *reversed(across)], inner, color=FILLED, alpha=0.2, linewidth=0, zorder=1)
    sure = [(p.sure_low, p.sure_high) for p in points if p.sure_low is not None and p.sure_high is not None]
    for side in zip(*sure, strict=True):
        axes.plot(across, side, color=FILLED, linewidth=1, linestyle="--", zorder=2)
    ends = [*inner, *(end for pair in sure for end in pair), *([] if line is None else [line])]
    frame(axes, (across[0], across[-1]), _apart(across, 0.2 if narrow else 0.08), factor, (min(ends), max(ends)))
    if line is not None:
        axes.axhline(line, color=MUTED, linewidth=1, linestyle=":" if words else "-", zorder=2)
        _beside(axes, line, points[0].low, points[-1].low, words)
    above(axes, shortened(unit, 0.9 * size(axes)[0]))


def _apart(values: Sequence[float], least: float) -> Ticks:
    """The values, from the first to the last, that are at least this share of their range apart."""
    kept = [values[0]]
    for value in values[1:-1]:
        if min(value - kept[-1], values[-1] - value) >= least * (values[-1] - values[0]):
            kept.append(value)
    return [(value, f"{value:.4g}") for value in (*kept, values[-1])]


def coverage(axes: Axes, grid: Grid, *, narrow: bool = False) -> None:
    """A map of the states: the more of the target's actions were never logged in a cell, the darker; dots are empty."""
    seen = {(cell.across, cell.down): cell for cell in grid.cells}
    for down in range(len(grid.down)):
        for across in range(len(grid.across)):
            cell = seen.get((across, down))
            if cell is None:
                axes.plot(across, down, marker=".", markersize=3, color=MUTED, zorder=2)
                continue
            colour, strength = (COLOURS["good"][0], 0.18) if cell.uncovered <= 0 else (COLOURS["bad"][0], 0.2)
            strength += 0.7 * cell.uncovered
            place = (across - 0.46, down - 0.46)
            axes.add_patch(Rectangle(place, 0.92, 0.92, facecolor=colour, alpha=strength, linewidth=0, zorder=1))
    wide = _map_frame(axes, grid)
    for cell in grid.cells:
        if (words := f"{cell.uncovered:.0%}") != "0%" and width(words) + 4 <= wide:
            axes.text(cell.across, cell.down, words, ha="center", va="center", zorder=3)


def map_height(grid: Grid) -> int:
    """In CSS pixels."""
    return AXIS + ABOVE + CELL * len(grid.down)


def _map_frame(axes: Axes, grid: Grid) -> float:
    """Values of both factors along the axes, the first row at the top; gives the width of a cell in CSS pixels."""
    axes.set_xlim(-0.5, len(grid.across) - 0.5)
    axes.set_ylim(len(grid.down) - 0.5, -0.5)
    down = [shortened(word, 70) for word in grid.down]
    left = max(width(word) for word in down) + 2 * EDGE
    room = size(axes)[0] - left - 2 * EDGE
    square = CELL * 1.6 * len(grid.across)
    _room(axes, left, max(size(axes)[0] - left - min(room, square), 2 * EDGE))
    across = min(room, square) / len(grid.across)
    words = [shortened(word, 70) for word in grid.across]
    every = max(1, math.ceil((max(width(word) for word in words) + EDGE) / across))
    axes.set_xticks(range(0, len(words), every), words[::every])
    axes.set_yticks(range(len(down)), down)
    axes.tick_params(length=0, labelcolor=INK)
    axes.set_xlabel(shortened(grid.names[1], 0.5 * size(axes)[0]))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    above(axes, shortened(grid.names[0], 0.5 * size(axes)[0]))
    return across


def _bar(axes: Axes, left: float, right: float, up: float, fill: str, edge: str) -> None:
    if up > 0:
        style = {"facecolor": fill, "edgecolor": edge, "linewidth": 0 if edge == "none" else 1}
        axes.add_patch(Rectangle((left, 0.0), right - left, up, zorder=2, **style))  # type: ignore[arg-type]


def frame(
    axes: Axes,
    across: tuple[float, float],
    ticks: Ticks,
    unit: str,
    up: tuple[float, float],
    *,
    percent: bool = False,
    levels: Ticks = (),
) -> None:
    """Scales and their words, a little room around what is drawn; the ticks upwards are ``levels``, or round ones."""
    margin = 0.03 * ((across[1] - across[0]) or 1.0)
    low, high = across[0] - margin, across[1] + margin
    room = 0.05 * ((up[1] - up[0]) or max(abs(up[0]), 1.0))
    bottom, top = (0.0 if up[0] == 0.0 else up[0] - room), up[1] + room
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, top)
    levels = levels or rounds(bottom, top, 4, percent=percent)
    left = max((width(word) for _, word in levels), default=0.0) + 2 * EDGE
    _room(axes, left, 2 * EDGE)
    axes.set_yticks([at for at, _ in levels], [word for _, word in levels])
    shown = [(at, word) for at, word in ticks if fits(axes, (at - low) / (high - low), word)]
    axes.set_xticks([at for at, _ in shown], [word for _, word in shown])
    axes.set_xlabel(shortened(unit, 0.8 * size(axes)[0]))
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=RULE, labelcolor=INK, pad=7)  # below the words of the lowest level
    axes.tick_params(axis="y", length=0, labelcolor=INK)


def rounds(low: float, high: float, most: int, *, percent: bool = False) -> Ticks:
    """About so many round numbers between two, with their words."""
    found = [at for at in MaxNLocator(most).tick_values(low, high) if low <= at <= high]
    words = [f"{w}%" for w in tick_words([100 * at for at in found])] if percent else tick_words(found)
    return list(zip(found, words, strict=True))


def _room(axes: Axes, left: float, right: float) -> None:
    """Leave that many CSS pixels on the sides, and room for words above and the scale below."""
    if not isinstance(axes.figure, Canvas):
        return
    across, down = size(axes)
    axes.set_position((left / across, (AXIS - 6) / down, 1 - (left + right) / across, 1 - (AXIS - 6 + ABOVE) / down))


def _line(axes: Axes, at: float, words: str, *, kind: str) -> None:
    """A line through all of it, with words above that stay inside the figure."""
    axes.axvline(at, color=COLOURS[kind][0], linewidth=1.5, zorder=4)
    low, high = axes.get_xlim()
    share = (at - low) / (high - low)
    side = "left" if share < 0.3 else "right" if share > 0.7 else "center"
    up = 1.0 + 4 / (axes.get_position().height * size(axes)[1])
    axes.text(at, up, words, transform=axes.get_xaxis_transform(), ha=side, va="bottom", color=COLOURS[kind][0])


def above(axes: Axes, words: str) -> None:
    """What the upright scale shows."""
    up = 1.0 + 6 / (axes.get_position().height * size(axes)[1])
    axes.text(0.0, up, words, transform=axes.transAxes, ha="left", va="bottom", color=MUTED)


def _beside(axes: Axes, at: float, first: float, last: float, words: str) -> None:
    """Words at a line across all of it, at the end and on the side where a curve from first to last is farther away."""
    right = abs(last - at) >= abs(first - at)
    low, high = axes.get_ylim()
    below = (last if right else first) > at and at - low > 0.15 * (high - low)
    share, place = (1.0, "right") if right else (0.0, "left")
    up = "top" if below else "bottom"
    axes.text(share, at, words, transform=axes.get_yaxis_transform(), ha=place, va=up, color=MUTED, zorder=5)
