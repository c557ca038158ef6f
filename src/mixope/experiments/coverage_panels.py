"""The picture of the coverage experiment: a panel an environment, a row an estimator and size, a mark an interval.

The line is what intervals promise, the band two points to either side. A share below the axis is an arrow at its edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments.coverage_lines import INTERVALS, cells
from mixope.experiments.coverage_logs import LEVEL
from mixope.experiments.experiment import Row
from mixope.experiments.methods import LOOKS
from mixope.experiments.panels import NAMES
from mixope.experiments.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = dict(
    zip(
        INTERVALS,
        (
            (BLUE, "o"),
            (VERMILION, "s"),
            (ORANGE, "^"),
            (PURPLE, "D"),
            (SKY, "v"),
            (GREEN, "P"),
            (BLACK, "x"),
        ),
        strict=True,
    )
)
LEAST = 0.6
"""Where the axis begins."""
BAND = 0.02


def draw(rows: Sequence[Row]) -> Figure:
    """Two columns of panels."""
    from matplotlib.figure import Figure

    groups: dict[str, dict[str, dict[str, Row]]] = {}
    for (name, loggers, episodes, horizon, estimator), by_kind in cells(rows).items():
        title = f"{NAMES.get(str(name), name)}, {loggers} logger{'' if loggers == 1 else 's'}, {horizon} steps"
        label = f"{_label(str(estimator))}, {episodes}"
        groups.setdefault(title, {})[label] = by_kind
    figure = Figure(
        figsize=(7.5, 1.4 + sum(0.5 + 0.46 * len(found) for found in groups.values())), layout="constrained"
    )
    heights = [len(found) + 0.6 for found in groups.values()]
    grid = figure.subplots(len(groups), 1, squeeze=False, sharex=True, height_ratios=heights)
    for axes, (title, found) in zip(grid[:, 0], groups.items(), strict=True):
        _panel(axes, found)
        axes.set_title(title, fontsize=9, loc="left")
    grid[-1, 0].set_xlabel("share of 95 % intervals that hold the truth (± binomial error)")
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = [kind for kind in INTERVALS if kind in handles]
    figure.legend([handles[kind] for kind in ordered], ordered, loc="outside upper center", ncols=len(ordered))
    return figure


def _label(estimator: str) -> str:
    return LOOKS[estimator].label if estimator in LOOKS else estimator.upper()


def _panel(axes: Axes, groups: dict[str, dict[str, Row]]) -> None:
    axes.axvline(LEVEL, color=GREY, linewidth=1)
    axes.axvspan(LEVEL - BAND, LEVEL + BAND, color="#eef1f3", zorder=0)
    for y, by_kind in enumerate(groups.values()):
        for kind, row in by_kind.items():
            _mark(axes, row, y + 0.12 * (INTERVALS.index(kind) - (len(INTERVALS) - 1) / 2), kind)
    for y in range(1, len(groups)):
        axes.axhline(y - 0.5, color="#e3e7ea", linewidth=0.6)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(LEAST, 1.01)
    axes.grid(axis="y", visible=False)


def _mark(axes: Axes, row: Row, y: float, kind: str) -> None:
    share, error = row.get("coverage"), row.get("coverage_error")
    if not isinstance(share, (int, float)) or not isinstance(error, (int, float)):
        return
    colour, marker = MARKS[kind]
    if share < LEAST:
        axes.plot(LEAST + 0.006, y, color=colour, marker="<", markersize=4, linestyle="none")
        axes.text(LEAST + 0.014, y, f"{kind} {share:.0%}", color=colour, fontsize=5.5, va="center")
        return
    axes.errorbar(
        share, y, xerr=error, color=colour, marker=marker, markersize=3.6, linestyle="none", elinewidth=0.7, label=kind
    )
