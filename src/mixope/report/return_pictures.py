"""Distributions of returns as a picture: risk against return, one point per target."""

from __future__ import annotations

from functools import partial

from mixope.distributions import Returns
from mixope.report.charts import Chart, chart
from mixope.report.returns_sheet import headline
from mixope.report.risk_graph import risk_and_return

MOST = 40
ROWS = 8
"""The picture is as high as so many rows of others."""


@chart.register
def _(found: Returns, most: int = MOST) -> Chart | None:
    return Chart(ROWS, partial(risk_and_return, found=found), headline(found))
