"""The claims in one picture: ratios of mean squared errors over trajectories, with their exact limits.

A panel a claim, a line an environment; dashed is the ratio of first-order variances, to which a line tends where all is
covered; grey is 1, where the two methods are as good as each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mixope.experiments.experiment import Row
from mixope.experiments.panels import NAMES
from mixope.experiments.style import BLUE, GREEN, GREY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {"singlepath": (GREEN, "^"), "gridworld-slip": (BLUE, "o"), "taxi": (VERMILION, "s")}
LOWEST, HIGHEST = 0.05, 600.0


@dataclass(frozen=True)
class Panel:
    """Which lines of the CSV are drawn: the measured ratio, and the exact one where there is one."""

    title: str
    claim: str
    measured: str
    exact: str = ""
    loggers: int = 4


PANELS = (
    Panel("BCH ÷ EMP, one logger", "Theorem 1", "MSE bch ÷ emp", "variance bch ÷ emp, exact", 1),
    Panel("BCH (pooled) ÷ EMP", "agnostic beats aware", "MSE bch-pooled ÷ emp", "variance bch-pooled ÷ emp, exact"),
    Panel("EMP (single) ÷ EMP", "EMP beats EMP (single)", "MSE emp-single ÷ emp", "variance emp-single ÷ emp, exact"),
    Panel("KL-EMP ÷ EMP", "KL-EMP overtakes EMP", "MSE kl-emp ÷ emp", "variance kl-emp ÷ emp, exact"),
    Panel("SADL ÷ EMP, one logger", "SADL beats EMP when small", "MSE sadl ÷ emp", loggers=1),
    Panel("DualDICE ÷ EMP, one logger", "Question: DualDICE or EMP", "MSE dualdice ÷ emp, average", loggers=1),
)


def draw_claims(rows: Sequence[Row]) -> Figure:
    """Six panels from the lines of the CSV."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True)
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        _draw_panel(axes, panel, [row for row in rows if row["claim"] == panel.claim])
    for axes in grid[:, 0]:
        axes.set_ylabel("MSE ÷ MSE of EMP")
    for axes in grid[-1]:
        axes.set_xlabel("trajectories")
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles) or 1)
    return figure


def _draw_panel(axes: Axes, panel: Panel, rows: Sequence[Row]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LOWEST, HIGHEST)
    axes.set_title(panel.title)
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    places = sorted({int(str(row["trajectories"])) for row in rows if row["trajectories"]})
    axes.set_xticks(places, [str(x) for x in places])
    axes.minorticks_off()
    for name, (colour, marker) in LOOKS.items():
        mine = [row for row in rows if row["environment"] == name and row["loggers"] == panel.loggers]
        points = [row for row in mine if row["quantity"] == panel.measured and row["value"] is not None]
        x, y = ([float(str(row[column])) for row in points] for column in ("trajectories", "value"))
        spread = [float(str(row["error"] or 0.0)) for row in points]
        below = [min(e, 0.9 * value) for e, value in zip(spread, y, strict=True)]
        axes.errorbar(x, y, yerr=[below, spread], color=colour, marker=marker, capsize=2, label=NAMES[name])
        for row in mine:
            if row["quantity"] == panel.exact:
                axes.axhline(float(str(row["value"])), color=colour, linestyle="--", linewidth=0.9)
