"""The picture of the coverage experiment: a line of panels an environment, a column a size, a mark an interval.

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


ORDER = ("emp", "dr", "bch-pooled", "wis-step", "is-step")


def draw(rows: Sequence[Row]) -> Figure:
    """Few episodes on the left, many on the right."""
    from matplotlib.figure import Figure

    worlds: dict[str, dict[str, dict[str, dict[str, Row]]]] = {}
    for (name, loggers, episodes, horizon, estimator), by_kind in cells(rows).items():
        title = f"{NAMES.get(str(name), name)}, {loggers} logger{'' if loggers == 1 else 's'}"
        worlds.setdefault(title, {}).setdefault(f"{episodes} × {horizon} steps", {})[str(estimator)] = by_kind
    names = {title: _names(by_size) for title, by_size in worlds.items()}
    columns, heights = max(map(len, worlds.values())), [len(mine) + 0.8 for mine in names.values()]
    figure = Figure(figsize=(2 + 4.2 * columns, 1.2 + 0.5 * sum(heights)), layout="constrained")
    grid = figure.subplots(len(worlds), columns, squeeze=False, sharex=True, height_ratios=heights)
    for line, (title, by_size) in zip(grid, worlds.items(), strict=True):
        for axes, (size, found) in zip(line, by_size.items(), strict=False):
            _panel(axes, found, names[title], labelled=axes is line[0])
            axes.set_title(f"{title}, {size}", fontsize=9, loc="left")
        for axes in line[len(by_size) :]:
            axes.set_axis_off()
    figure.supxlabel("share of 95 % intervals that hold the truth (± binomial error)", fontsize=9)
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = [kind for kind in INTERVALS if kind in handles]
    figure.legend([handles[kind] for kind in ordered], ordered, loc="outside upper center", ncols=len(ordered))
    return figure


def _names(by_size: dict[str, dict[str, dict[str, Row]]]) -> list[str]:
    """All estimators of an environment, in one order for all."""
    found = {name for by_estimator in by_size.values() for name in by_estimator}
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _label(estimator: str) -> str:
    return LOOKS[estimator].label if estimator in LOOKS else estimator.upper()


def _panel(axes: Axes, found: dict[str, dict[str, Row]], names: Sequence[str], *, labelled: bool) -> None:
    axes.axvline(LEVEL, color=GREY, linewidth=1)
    axes.axvspan(LEVEL - BAND, LEVEL + BAND, color="#eef1f3", zorder=0)
    for y, name in enumerate(names):
        for kind, row in found.get(name, {}).items():
            _mark(axes, row, y + 0.12 * (INTERVALS.index(kind) - (len(INTERVALS) - 1) / 2), kind)
    for y in range(1, len(names)):
        axes.axhline(y - 0.5, color="#e3e7ea", linewidth=0.6)
    axes.set_yticks(range(len(names)), [_label(name) if labelled else "" for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(LEAST, 1.01)
    axes.grid(axis="y", visible=False)


def _mark(axes: Axes, row: Row, y: float, kind: str) -> None:
    share, error = row.get("coverage"), row.get("coverage_error")
    if not isinstance(share, (int, float)) or not isinstance(error, (int, float)):
        return
    colour, marker = MARKS[kind]
    if share < LEAST:
        axes.plot(LEAST + 0.005, y, color=colour, marker="<", markersize=3, linestyle="none")
        beside = LEAST + 0.012 + 0.028 * (INTERVALS.index(kind) % 3)
        axes.text(beside, y, f"{share:.0%}", color=colour, fontsize=6, va="center")
        return
    axes.errorbar(
        share, y, xerr=error, color=colour, marker=marker, markersize=3.4, linestyle="none", elinewidth=0.7, label=kind
    )
