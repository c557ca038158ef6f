"""The error figures as the paper draws them: log10 MSE over trajectories and over the horizon, a row an environment.

The columns on the left are the general form, those on the right the paper's; the dotted line is the efficiency bound,
which no regular estimator can stay below. Whiskers are one standard error; a whisker down beyond one unit is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments.errors import FORMS, HORIZON, TRAJECTORIES
from mixope.experiments.experiment import Row
from mixope.experiments.methods import LOOKS
from mixope.experiments.style import BLACK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {
    "taxi": "Taxi",
    "singlepath": "SinglePath",
    "gridworld": "Gridworld",
    "gridworld-slip": "Gridworld (slip .1)",
    "walk": "Walk",
    "pendulum": "Pendulum",
    "pendulum-trained": "Pendulum (trained)",
}
FORM_NAMES = {"general": "general form", "paper": "the paper's form"}
SWEEP_NAMES = {TRAJECTORIES: "trajectories", HORIZON: "steps of a trajectory"}
FORMLESS = ("sadl", "is-step", "wis-step", "mis", "mis-step")
"""State–action ratios and trajectory weights: measured once, drawn beside both forms."""
BOUND = "efficiency bound"
LONGEST_WHISKER = 0.6
ROOM = 0.35


def draw_errors(rows: Sequence[Row], methods: Sequence[str]) -> Figure:
    """Every environment of the rows, both forms, both sweeps; only these methods."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(str(row["environment"]) for row in rows))
    figure = Figure(figsize=(11, 0.9 + 2.35 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 4, squeeze=False, sharey="row")
    for line, name in zip(grid, names, strict=True):
        mine = [row for row in rows if row["environment"] == name and row["method"] in methods]
        for axes, (form, sweep) in zip(line, _columns(), strict=True):
            shown = [row for row in mine if row["sweep"] == sweep and _stands_beside(row, form)]
            if any(row["form"] == form for row in mine):
                _panel(axes, shown, methods)
                axes.set_title(f"{NAMES.get(name, name)}, {FORM_NAMES[form]}", fontsize=9)
                axes.set_xlabel(SWEEP_NAMES[sweep])
            else:
                axes.set_axis_off()
        line[0].set_ylabel("log10 MSE")
        _set_range(line[0], mine)
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=min(len(handles), 7))
    return figure


def _columns() -> list[tuple[str, str]]:
    return [(form, sweep) for form in FORMS for sweep in (TRAJECTORIES, HORIZON)]


def _stands_beside(row: Row, form: str) -> bool:
    return row["form"] == form or row["method"] in FORMLESS


def _panel(axes: Axes, rows: Sequence[Row], methods: Sequence[str]) -> None:
    places = sorted({int(row["x"]) for row in rows if isinstance(row["x"], int)})
    axes.set_xscale("log")
    axes.set_xticks(places, [str(x) for x in places])
    axes.minorticks_off()
    for k, name in enumerate(methods):
        mine = sorted((row for row in rows if row["method"] == name), key=lambda row: _number(row["x"]))
        shift = 1.0 + 0.012 * (k - len(methods) / 2)
        x = [_number(row["x"]) * shift for row in mine]
        if x:
            _line(axes, name, x, mine)
    bound = sorted({(_number(row["x"]), _number(row["bound"])) for row in rows if row["bound"]})
    if bound:
        axes.plot([x for x, _ in bound], [math.log10(b) for _, b in bound], color=BLACK, linestyle=":", label=BOUND)


def _line(axes: Axes, name: str, x: Sequence[float], rows: Sequence[Row]) -> None:
    look = LOOKS[name]
    whiskers = [min(_number(row["log10_mse_error"], 0.0), LONGEST_WHISKER) for row in rows]
    axes.errorbar(
        x,
        [_number(row["log10_mse"]) for row in rows],
        yerr=whiskers,
        label=look.label,
        color=look.colour,
        marker=look.marker,
        linestyle="--" if look.aware else "-",
        markerfacecolor="white" if look.aware else look.colour,
        elinewidth=0.9,
        capsize=2,
    )


def _set_range(axes: Axes, rows: Sequence[Row]) -> None:
    """Of all methods, but trajectory weights may leave the picture upwards by what they are worse than the rest."""
    heights = [_number(row["log10_mse"]) for row in rows] + [
        math.log10(_number(row["bound"])) for row in rows if row["bound"]
    ]
    heights = [height for height in heights if math.isfinite(height)]
    if heights:
        axes.set_ylim(min(heights) - ROOM, max(heights) + ROOM)


def _number(value: object, otherwise: float = math.nan) -> float:
    return float(value) if isinstance(value, (int, float)) else otherwise


def show_errors(rows: Sequence[Row], methods: Sequence[str]) -> list[Row]:
    """The table beneath: only what is drawn, every point once, with the ratio to the bound."""
    found = [
        {
            "environment": NAMES.get(str(row["environment"]), row["environment"]),
            "form": row["form"] if row["method"] not in FORMLESS else "–",
            "method": LOOKS[str(row["method"])].label,
            "trajectories": row["episodes"],
            "horizon": row["horizon"],
            "log10 MSE": row["log10_mse"],
            "± se": row["log10_mse_error"],
            "bias": row["bias"],
            "MSE ÷ bound": _number(row["mse"]) / _number(row["bound"]) if row["bound"] else None,
            "repetitions": row["repetitions"],
            "refused": row["refused"],
        }
        for row in rows
        if row["method"] in methods
    ]
    return list({tuple(row.values())[:5]: row for row in found}.values())
