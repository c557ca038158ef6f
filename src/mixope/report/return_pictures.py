"""Distributions of returns in a card and as a picture: risk against return, one point per target."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes

from mixope.distributions import Returns
from mixope.errors import clean
from mixope.report import folds, plots
from mixope.report.cards import Card, Line, card
from mixope.report.charts import Chart, chart
from mixope.report.returned import KINDS, amount_words, headline
from mixope.report.svg import COLOURS, INK

MOST = 40
ROWS = 7
"""The picture is as high as so many rows of others."""
LEFT = 76
"""CSS pixels for the numbers beside the axes."""


@chart.register
def _(found: Returns, most: int = MOST) -> Chart | None:
    return Chart(ROWS, partial(risk_and_return, found), headline(found))


@card.register
def _(found: Returns) -> Card:
    first = found.main
    lines = tuple(
        Line(KINDS[each.verdict], each.target, f"mean {amount_words(each.mean)}, worst {amount_words(each.tail)}")
        for each in found.targets
    )
    checks = [check for each in found.targets for check in each.checks]
    return Card(
        KINDS[first.verdict],
        str(first.verdict),
        headline(found),
        (f"{found.estimand}, {found.n_episodes:,} episodes",),
        lines,
        folds.present(folds.checks(checks)),
        chart(found),
    )


def risk_and_return(found: Returns, axes: Axes, *, narrow: bool = False) -> None:
    """The mean to the right, the mean of the worst episodes upwards, both with their intervals."""
    for each in found.targets:
        colour = COLOURS[KINDS[each.verdict]][0]
        mean, tail = each.mean, each.tail
        if mean.interval is not None:
            axes.plot([mean.interval.low, mean.interval.high], [tail.value] * 2, color=colour, linewidth=1.5)
        if tail.interval is not None:
            axes.plot([mean.value] * 2, [tail.interval.low, tail.interval.high], color=colour, linewidth=1.5)
        axes.plot([mean.value], [tail.value], marker="o", color=colour, linestyle="none")
        at = (mean.value, tail.value)
        axes.annotate(clean(each.target), at, xytext=(7, 5), textcoords="offset points", color=INK)
    axes.set_xlabel(f"mean, {found.estimand.unit}")
    axes.set_ylabel(f"worst {found.alpha:.3g}")
    axes.margins(0.1)
    plots.room(axes, LEFT, 4 * plots.EDGE)
