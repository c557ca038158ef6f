"""A plan as a picture: how the interval would narrow with more data."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from mixope.planning import Need, Plan
from mixope.report import plots
from mixope.report.charts import Chart, chart
from mixope.report.plan_sheet import headline
from mixope.report.svg import COLOURS, INK, MUTED

MOST = 40
ROWS = 5
"""A curve is as high as so many rows of other pictures."""
LEFT = 64
"""CSS pixels for the numbers beside the axes."""


@chart.register
def _(found: Plan, most: int = MOST) -> Chart | None:
    reachable = [need for need in found.needs if need.need is not None]
    return Chart(ROWS, partial(curve, found, reachable[0]), headline(found)) if reachable else None


def curve(found: Plan, need: Need, axes: Axes, *, narrow: bool = False) -> None:
    """The half-width against the amount of data, with its range; what is asked as a line, the pilot as a mark."""
    ends = [end for end in (need.low, need.need, need.high) if end is not None]
    amount = np.geomspace(min(need.have, *ends) / 2, 2 * max(need.have, *ends), 200)
    colour = COLOURS["good"][0]
    low, width, high = (found.precision * (amount / end) ** (-need.power / 2) for end in ends)
    around = np.concatenate([amount, amount[::-1]]), np.concatenate([low, high[::-1]])
    axes.fill(*around, color=colour, alpha=0.15, linewidth=0)
    axes.plot(amount, width, color=colour, linewidth=2)
    axes.axhline(found.precision, color=INK, linewidth=1, linestyle=":")
    axes.plot([need.have], [found.half_width], marker="D", color=COLOURS["logger"][0], linestyle="none")
    axes.annotate("pilot", (need.have, found.half_width), xytext=(6, 6), textcoords="offset points", color=MUTED)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(need.what)
    axes.set_ylabel("half-width")
    axes.set_ylim(bottom=0.0)
    plots.room(axes, LEFT, plots.EDGE)
