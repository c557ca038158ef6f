"""The picture of an experiment: the difference by period."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from mixope.experiments.records import Day
from mixope.report.graphs import FILLED, above, frame, rounds
from mixope.report.svg import COLOURS, MUTED

SEEN = COLOURS["truth"][0]


def path(axes: Axes, days: Sequence[Day], *, unit: str, period: str, narrow: bool = False) -> None:
    """What was seen, with two standard errors; and what the arms predict, with its interval, far beyond the test."""
    across = [day.day + 1 for day in days]
    shade = [*(day.low for day in days), *(day.high for day in reversed(days))]
    axes.fill([*across, *reversed(across)], shade, color=FILLED, alpha=0.15, linewidth=0, zorder=1)
    axes.plot(across, [day.predicted for day in days], color=FILLED, linewidth=2, zorder=3)
    tested = [day for day in days if day.seen is not None and day.seen_error is not None]
    for day in tested:
        seen, reach = day.seen or 0.0, 2 * (day.seen_error or 0.0)
        axes.plot([day.day + 1] * 2, [seen - reach, seen + reach], color=SEEN, linewidth=1, zorder=2)
    points = [day.seen or 0.0 for day in tested]
    axes.plot([d.day + 1 for d in tested], points, color=SEEN, linestyle="none", marker="o", markersize=4, zorder=4)
    bars = [(day.seen or 0.0) + side * (day.seen_error or 0.0) for day in tested for side in (-2, 2)]
    ends = [*(v for day in days for v in (day.low, day.high)), *bars]
    low, high = min([*ends, 0.0]), max([*ends, 0.0])
    frame(axes, (across[0], across[-1]), rounds(across[0], across[-1], 4 if narrow else 8), period, (low, high))
    axes.axhline(0.0, color=MUTED, linewidth=1, zorder=2)
    if tested:
        axes.axvline(tested[-1].day + 1.5, color=MUTED, linewidth=1, linestyle=":", zorder=2)
    above(axes, unit)
