"""Distributions of returns in a card and as a picture: risk against return, one point per target."""

from __future__ import annotations

from functools import partial

from mixope.distributions import Returns
from mixope.report import folds
from mixope.report.cards import Card, CardLine, card
from mixope.report.charts import Chart, chart
from mixope.report.returned import KINDS, amount_words, headline, refusals
from mixope.report.risk_graph import risk_and_return

MOST = 40
ROWS = 8
"""The picture is as high as so many rows of others."""


@chart.register
def _(found: Returns, most: int = MOST) -> Chart | None:
    return Chart(ROWS, partial(risk_and_return, found=found), headline(found))


@card.register
def _(found: Returns) -> Card:
    first = found.main
    lines = tuple(
        CardLine(KINDS[each.verdict], each.target, f"mean {amount_words(each.mean)}, worst {amount_words(each.tail)}")
        for each in found.targets
    )
    checks = [check for each in found.targets for check in each.checks]
    return Card(
        KINDS[first.verdict],
        str(first.verdict),
        headline(found),
        (f"{found.estimand}, {found.n_episodes:,} episodes",),
        lines,
        folds.present(folds.checks(checks), folds.notes(refusals(found))),
        chart(found),
    )
