"""Figures 2 to 5: mean squared errors as the paper draws them, over trajectories and horizon, a line per environment.

    2   one logger: BCH, EMP and step-wise importance sampling, four environments
    3   what knowing the behaviour is worth: BCH (knows it), EMP (estimates it), SADL (never needs it); logs of figure 2
    4   four unknown loggers, an equal share of the trajectories each: EMP (single), EMP, KL-EMP and MIS
    5   (the paper's appendix) each method of figure 4 against its twin that knows the policies; logs of figure 4

Figures of the same logs share what was measured. The columns on the left are the general form, those on the right the
paper's; the dotted line is the efficiency bound, which no regular estimator can stay below. Whiskers are one standard
error; a whisker down beyond one unit is cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from mixope.paper.experiment import Exhibit, Row, Size, number
from mixope.paper.mean_squared_errors import (
    FORMS,
    HORIZON,
    OTHERS,
    TRAJECTORIES,
    ErrorSettings,
    Sweep,
    plan,
    summarise,
)
from mixope.paper.style import BLACK, LOOKS, NAMES, draw_method, mark_places, share_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORM_NAMES = {"general": "general form", "paper": "the paper's form"}
SWEEP_NAMES = {TRAJECTORIES: "trajectories", HORIZON: "steps of a trajectory"}
FORMLESS = ("sadl", "is-step", "wis-step", "mis", "mis-step", *OTHERS)
"""State–action ratios, trajectory weights, kernel and network: measured once, drawn beside every form that there is."""
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
        for axes, (form, sweep) in zip(line, product(FORMS, (TRAJECTORIES, HORIZON)), strict=True):
            beside = [row for row in mine if row["form"] == form or row["method"] in FORMLESS]
            if any(row["form"] == form for row in mine):
                _panel(axes, [row for row in beside if row["sweep"] == sweep], methods)
                axes.set_title(f"{NAMES.get(name, name)}, {FORM_NAMES[form]}", fontsize=9)
                axes.set_xlabel(SWEEP_NAMES[sweep])
            else:
                axes.set_axis_off()
        line[0].set_ylabel("log10 MSE")
        _set_range(line[0], mine)
    share_legend(figure, grid.flat)
    return figure


def _panel(axes: Axes, rows: Sequence[Row], methods: Sequence[str]) -> None:
    mark_places(axes, (row["x"] for row in rows))
    for k, name in enumerate(methods):
        mine = sorted((row for row in rows if row["method"] == name), key=lambda row: number(row["x"]))
        shift = 1.0 + 0.012 * (k - len(methods) / 2)
        if mine:
            x, y = [number(row["x"]) * shift for row in mine], [number(row["log10_mse"]) for row in mine]
            whiskers = [min(number(row["log10_mse_error"], 0.0), LONGEST_WHISKER) for row in mine]
            draw_method(axes, name, x, y, whiskers, elinewidth=0.9)
    bound = sorted({(number(row["x"]), number(row["bound"])) for row in rows if row["bound"]})
    if bound:
        axes.plot([x for x, _ in bound], [math.log10(b) for _, b in bound], color=BLACK, linestyle=":", label=BOUND)


def _set_range(axes: Axes, rows: Sequence[Row]) -> None:
    """Of all methods, but trajectory weights may leave the picture upwards by what they are worse than the rest."""
    heights = [number(row["log10_mse"]) for row in rows] + [
        math.log10(number(row["bound"])) for row in rows if row["bound"]
    ]
    heights = [height for height in heights if math.isfinite(height)]
    if heights:
        axes.set_ylim(min(heights) - ROOM, max(heights) + ROOM)


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
            "MSE ÷ bound": number(row["mse"]) / number(row["bound"]) if row["bound"] else None,
            "repetitions": row["repetitions"],
            "refused": row["refused"],
        }
        for row in rows
        if row["method"] in methods
    ]
    return list({tuple(row.values())[:5]: row for row in found}.values())


def _figure(
    name: str, *, title: str, caption: str, sizes: Mapping[Size, ErrorSettings], methods: Sequence[str]
) -> Exhibit:
    """An error figure that shows some methods."""

    def draw(rows: Sequence[Row]) -> Figure:
        return draw_errors(rows, methods)

    def show(rows: Sequence[Row]) -> list[Row]:
        return show_errors(rows, methods)

    return Exhibit(name, title, caption, sizes, plan, summarise, draw, show)


ONE_LOGGER: dict[Size, ErrorSettings] = {
    "smoke": ErrorSettings(
        1,
        (
            Sweep("taxi", (20, 80), (25, 50), 20, 50, 2, 0),
            Sweep("singlepath", (20, 80), (25, 50), 20, 50, 2, 1),
            Sweep("pendulum", (6,), (50,), 6, 50, 1, 0, bumps=20),
        ),
    ),
    "quick": ErrorSettings(
        1,
        (
            Sweep("taxi", (25, 50, 100), (50, 100, 200), 50, 100, 3, 1),
            Sweep("singlepath", (25, 50, 100), (50, 100, 200), 50, 100, 10, 10),
            Sweep("gridworld-slip", (25, 50, 100), (50, 100, 200), 50, 100, 10, 10),
            Sweep("pendulum", (10, 20), (50, 100), 10, 100, 2, 0, bumps=60),
        ),
    ),
    "full": ErrorSettings(
        1,
        (
            Sweep("taxi", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("singlepath", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 30, 30),
            Sweep("gridworld-slip", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 30, 30),
            Sweep("pendulum", (12, 25, 50), (50, 100, 200), 50, 200, 20, 0, other_points=((50, 50),)),
        ),
    ),
}
FOUR_LOGGERS: dict[Size, ErrorSettings] = {
    "smoke": ErrorSettings(
        4,
        (
            Sweep("singlepath", (20, 80), (25, 50), 20, 50, 2, 1),
            Sweep("gridworld-slip", (40, 80), (25, 50), 40, 50, 2, 0),
        ),
    ),
    "quick": ErrorSettings(
        4,
        (
            Sweep("taxi", (40, 80), (50, 100), 40, 100, 3, 1),
            Sweep("singlepath", (24, 48, 96), (50, 100, 200), 48, 100, 10, 10),
            Sweep("gridworld-slip", (24, 48, 96), (50, 100, 200), 48, 100, 10, 10),
            Sweep("pendulum", (12, 24), (50, 100), 12, 100, 1, 0, bumps=40),
        ),
    ),
    "full": ErrorSettings(
        4,
        (
            Sweep("taxi", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("singlepath", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("gridworld-slip", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("pendulum", (24, 48), (50, 100, 200), 24, 200, 20, 0),
        ),
    ),
}
TWINS = (("bch", "emp-single"), ("bch-pooled", "emp"), ("bch-kl-pooled", "kl-emp"))

FIGURE_2 = _figure(
    "figure2",
    title="Figure 2: one logger",
    caption="Mean squared error of the estimated average reward, from the logs of one policy. BCH and importance "
    "sampling know that policy, EMP estimates it. On the left the general form of the equations (BCH calibrated), on "
    "the right the paper's form; the dotted line is the efficiency bound (0 on Pendulum, whose dynamics are "
    "deterministic). On Pendulum, kernel and network are EMP with a ratio that is not linear in features; the kernel "
    "takes at most 3,000 rows. Whiskers: one standard error.",
    sizes=ONE_LOGGER,
    methods=("bch", "emp", *OTHERS, "is-step", "wis-step"),
)
FIGURE_3 = _figure(
    "figure3",
    title="Figure 3: aware, partially agnostic, agnostic",
    caption="Mean squared error from the logs of one policy: BCH knows that policy, EMP estimates it, SADL learns the "
    "ratio of state–action laws and never needs it. On the left the general form of the equations for BCH and EMP, on "
    "the right the paper's; SADL has one form and stands in both. The dotted line is the efficiency bound.",
    sizes={
        size: ErrorSettings(given.loggers, tuple(s for s in given.sweeps if s.environment in ("taxi", "pendulum")))
        for size, given in ONE_LOGGER.items()
    },
    methods=("bch", "emp", "sadl"),
)
FIGURE_4 = _figure(
    "figure4",
    title="Figure 4: several unknown loggers",
    caption="Mean squared error from the logs of four policies: EMP (single) treats each logger alone and averages, "
    "EMP pools all rows and estimates the mixture, KL-EMP pools them with the paper's weights, MIS is importance "
    "sampling with the balance heuristic, which knows all policies. On the left the general form of the equations, on "
    "the right the paper's; MIS has neither and stands in both. The dotted line is the efficiency bound.",
    sizes=FOUR_LOGGERS,
    methods=("emp-single", "emp", "kl-emp", "mis", "mis-step"),
)
FIGURE_5 = _figure(
    "figure5",
    title="Figure 5: with and without the policies",
    caption="Mean squared error from the logs of four policies. Three pairs, told apart by their markers: each logger "
    "alone (BCH, EMP (single)), pooled (BCH (pooled), EMP), pooled with the paper's weights (BCH (KL-pooled), KL-EMP). "
    "The first of a pair knows the policies (dashed, hollow), the second estimates them (solid, filled). On the left "
    "the general form of the equations, with BCH calibrated, on the right the paper's. The dotted line is the "
    "efficiency bound.",
    sizes=FOUR_LOGGERS,
    methods=tuple(name for pair in TWINS for name in pair),
)
