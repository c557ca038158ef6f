"""Figure 2: one logger. BCH, EMP and step-wise importance sampling over trajectories and horizon, four environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments.errors import Settings, Sweep, plan, summarise
from mixope.experiments.experiment import Experiment, Row, Size
from mixope.experiments.panels import draw_errors, show_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("bch", "emp", "is-step", "wis-step")

SIZES: dict[Size, Settings] = {
    "smoke": Settings(
        1,
        (
            Sweep("taxi", (20, 80), (25, 50), 20, 50, 2, 0),
            Sweep("singlepath", (20, 80), (25, 50), 20, 50, 2, 1),
            Sweep("pendulum", (6,), (50,), 6, 50, 1, 0, bumps=20),
        ),
    ),
    "quick": Settings(
        1,
        (
            Sweep("taxi", (25, 50, 100), (50, 100, 200), 50, 100, 3, 1),
            Sweep("singlepath", (25, 50, 100), (50, 100, 200), 50, 100, 10, 10),
            Sweep("gridworld-slip", (25, 50, 100), (50, 100, 200), 50, 100, 10, 10),
            Sweep("pendulum", (10, 20), (50, 100), 10, 100, 2, 0, bumps=60),
        ),
    ),
    "full": Settings(
        1,
        (
            Sweep("taxi", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 6),
            Sweep("singlepath", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 30, 30),
            Sweep("gridworld-slip", (50, 100, 200, 400), (50, 100, 200, 400), 200, 200, 30, 30),
            Sweep("pendulum", (25, 50, 100), (50, 100, 200), 50, 200, 6, 0),
        ),
    ),
}


def draw(rows: Sequence[Row]) -> Figure:
    """From the lines of the CSV."""
    return draw_errors(rows, METHODS)


def show(rows: Sequence[Row]) -> list[Row]:
    """The lines of the table."""
    return show_errors(rows, METHODS)


EXPERIMENT = Experiment(
    name="figure2",
    title="Figure 2: one logger",
    caption="Mean squared error of the estimated average reward, from the logs of one policy. BCH and importance "
    "sampling know that policy, EMP estimates it. On the left the general form of the equations (BCH calibrated), on "
    "the right the paper's form; the dotted line is the efficiency bound (0 on Pendulum, whose dynamics are "
    "deterministic). Whiskers: one standard error.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
