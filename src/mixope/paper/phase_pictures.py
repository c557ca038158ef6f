"""The phase diagram: a row of panels per world, BCH ÷ EMP and ``dr`` ÷ EMP from one logger and from four.

Colours diverge from white at 1 in steps (blue and orange, which colour-blind readers tell apart); every cell has its
number besides. Where noise does not tell the methods apart a cell is hatched. Lines run along the borders of cells on
whose two sides the uncovered share of the target's mass is above and below a level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.paper.experiment import Row, number
from mixope.paper.phase_logs import BCH, DR
from mixope.paper.style import BLACK, BLUE, GREY, NAMES, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import BoundaryNorm, Colormap
    from matplotlib.figure import Figure

BETTER, WORSE, UNDECIDED, SAME = "better", "worse", "not decided", "the same"
LABELS = {BCH: "BCH ÷ EMP", DR: "dr ÷ EMP"}
STEPS = (1 / 30, 0.1, 0.25, 0.5, 1 / 1.2, 1.2, 2.0, 4.0, 10.0, 30.0)
STEP_WORDS = ("1/30", ".1", ".25", ".5", ".83", "1.2", "2", "4", "10", "30")
LEVELS: dict[float, Literal[":", "--", "-"]] = {0.01: ":", 0.1: "--", 0.5: "-"}
"""Of the uncovered share, with the lines they are drawn in."""
HATCH = "#4d555b"
GAP = 0.35
"""Between the limit and the logs, in cells."""
COUNTS = {1: "one logger", 4: "four loggers"}


def draw_phases(rows: Sequence[Row]) -> Figure:
    """All worlds of the rows; columns by method, then by number of loggers."""
    from matplotlib.figure import Figure

    worlds = list(dict.fromkeys(str(row["environment"]) for row in rows))
    loggers = sorted({int(number(row["loggers"])) for row in rows})
    columns = [(method, n) for method in LABELS for n in loggers]
    figure = Figure(figsize=(2.6 * len(columns) + 0.8, 1.1 + 2.3 * len(worlds)), layout="constrained")
    grid = figure.subplots(len(worlds), len(columns), squeeze=False, sharey=True)
    colours, steps = _colours()
    for line, name in zip(grid, worlds, strict=True):
        for axes, (method, n) in zip(line, columns, strict=True):
            mine = [row for row in rows if row["environment"] == name and row["loggers"] == n]
            _panel(axes, [row for row in mine if row["method"] == method], colours, steps)
        line[0].set_ylabel(f"{NAMES.get(name, name)}\nepisodes")
    for axes, (method, n) in zip(grid[0], columns, strict=True):
        axes.set_title(f"{LABELS[method]}\n{COUNTS.get(n, f'{n} loggers')}")
    for axes in grid[-1]:
        axes.set_xlabel("softness of the loggers")
    _explain(figure, colours, steps)
    return figure


def _colours() -> tuple[Colormap, BoundaryNorm]:
    from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("phases", ["#8a3b00", VERMILION, "#ffffff", BLUE, "#00334f"], N=256)
    return colours, BoundaryNorm(STEPS, colours.N, extend="both")


def _panel(axes: Axes, rows: Sequence[Row], colours: Colormap, steps: BoundaryNorm) -> None:
    softness = sorted({number(row["softness"]) for row in rows})
    episodes = sorted({int(number(row["episodes"])) for row in rows if row["episodes"]})
    heights = {m: float(k) for k, m in enumerate(episodes)}
    missed = np.full((len(episodes), len(softness)), np.nan)
    for row in rows:
        x, m = softness.index(number(row["softness"])), row["episodes"]
        y = heights[int(number(m))] if m else len(episodes) + GAP
        _cell(axes, x, y, row, colours, steps)
        if m:
            missed[int(y), x] = number(row["uncovered"])
    for level, line in LEVELS.items():
        for ends in borders(missed, level):
            axes.plot(*ends, color=BLACK, linestyle=line, linewidth=1.6, solid_capstyle="round")
    axes.set_xticks(range(len(softness)), [f"{s:g}".removeprefix("0") for s in softness])
    axes.set_yticks([*heights.values(), len(episodes) + GAP], [*map(str, episodes), "∞"])
    axes.set_xlim(-0.5, len(softness) - 0.5)
    axes.set_ylim(-0.5, len(episodes) + GAP + 0.5)
    axes.grid(visible=False)
    axes.tick_params(length=0)


def _cell(axes: Axes, x: float, y: float, row: Row, colours: Colormap, steps: BoundaryNorm) -> None:
    from matplotlib.patches import Rectangle

    ratio = number(row["ratio"])
    if not np.isfinite(ratio):
        axes.text(x, y, "–", ha="center", va="center", fontsize=7, color=GREY)
        return
    fill = colours(steps(ratio))
    open_question = row["says"] == UNDECIDED
    axes.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5),
            1,
            1,
            facecolor=fill,
            edgecolor=HATCH if open_question else "#ffffff",
            hatch="////" if open_question else None,
            linewidth=0.0 if open_question else 0.4,
        )
    )
    dark = 0.3 * fill[0] + 0.59 * fill[1] + 0.11 * fill[2] < 0.55
    ink = "#ffffff" if dark and not open_question else BLACK
    ground = {"boxstyle": "round,pad=0.12", "facecolor": fill, "edgecolor": "none"} if open_question else None
    axes.text(x, y, written(ratio), ha="center", va="center", fontsize=7, color=ink, bbox=ground)


def written(ratio: float) -> str:
    """Two digits, no leading zero."""
    if ratio >= 9.95:
        return f"{ratio:.0f}"
    if ratio >= 0.995:
        return f"{ratio:.1f}"
    return f"{ratio:.2f}".removeprefix("0") if ratio >= 0.01 else f"{ratio:.3f}".removeprefix("0")


def borders(shares: FloatArray, level: float) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Sides of unit cells (row y, column x, centred on whole numbers) that part cells above a level from those not."""
    above = shares > level
    for y, x in np.argwhere(above[:, 1:] != above[:, :-1]):
        yield (x + 0.5, x + 0.5), (y - 0.5, y + 0.5)
    for y, x in np.argwhere(above[1:] != above[:-1]):
        yield (x - 0.5, x + 0.5), (y + 0.5, y + 0.5)


def _explain(figure: Figure, colours: Colormap, steps: BoundaryNorm) -> None:
    """The scale on the right, marks and lines beneath."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bar = figure.colorbar(ScalarMappable(steps, colours), ax=figure.axes, shrink=0.5, aspect=40, pad=0.015)
    bar.set_ticks(list(STEPS), labels=list(STEP_WORDS))
    bar.ax.minorticks_off()
    bar.set_label("← the other has the smaller error   |   MSE ÷ MSE of EMP   |   EMP has the smaller error →")
    lines = [
        Line2D([], [], color=BLACK, linestyle=line, linewidth=1.6, label=f"{level:.0%} of the target never logged")
        for level, line in LEVELS.items()
    ]
    hatched = Patch(facecolor="#ffffff", edgecolor=HATCH, hatch="////", label="not decided (two standard errors)")
    figure.legend(handles=[*lines, hatched], loc="outside lower center", ncols=4)


def show_phases(rows: Sequence[Row]) -> list[Row]:
    """The table beneath: a line per cell."""
    cells: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("environment", "loggers", "softness", "episodes"))
        cells.setdefault(key, {})[str(row["method"])] = row
    return [
        {
            "environment": NAMES.get(str(name), str(name)),
            "loggers": int(number(n)),
            "softness": number(softness),
            "episodes": int(number(episodes)) if episodes else "∞",
            "uncovered": found[BCH]["uncovered"],
            "BCH ÷ EMP": found[BCH]["ratio"],
            "BCH is": found[BCH]["says"],
            "dr ÷ EMP": found[DR]["ratio"] if DR in found else None,
            "dr is": found[DR]["says"] if DR in found else None,
            "repetitions": found[BCH]["repetitions"],
        }
        for (name, n, softness, episodes), found in cells.items()
    ]
