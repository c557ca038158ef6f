"""Figure 4: four unknown loggers. EMP (single), EMP, KL-EMP and MIS over trajectories and horizon, four environments.

The trajectories are those of all loggers together, an equal share each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments.errors import Settings, Sweep, plan, summarise
from mixope.experiments.experiment import Experiment, Row, Size
from mixope.experiments.panels import draw_errors, show_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("emp-single", "emp", "kl-emp", "mis", "mis-step")

SIZES: dict[Size, Settings] = {
    "smoke": Settings(
        4,
        (
            Sweep("singlepath", (20, 80), (25, 50), 20, 50, 2, 1),
            Sweep("gridworld-slip", (40, 80), (25, 50), 40, 50, 2, 0),
        ),
    ),
    "quick": Settings(
        4,
        (
            Sweep("taxi", (40, 80), (50, 100), 40, 100, 3, 1),
            Sweep("singlepath", (24, 48, 96), (50, 100, 200), 48, 100, 10, 10),
            Sweep("gridworld-slip", (24, 48, 96), (50, 100, 200), 48, 100, 10, 10),
            Sweep("pendulum", (12, 24), (50, 100), 12, 100, 1, 0, bumps=40),
        ),
    ),
    "full": Settings(
        4,
        (
            Sweep("taxi", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 4),
            Sweep("singlepath", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("gridworld-slip", (48, 100, 200, 400), (50, 100, 200, 400), 200, 200, 20, 20),
            Sweep("pendulum", (24, 48), (50, 100, 200), 24, 200, 4, 0),
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
    name="figure4",
    title="Figure 4: several unknown loggers",
    caption="Mean squared error from the logs of four policies: EMP (single) treats each logger alone and averages, "
    "EMP pools all rows and estimates the mixture, KL-EMP pools them with the paper's weights, MIS is importance "
    "sampling with the balance heuristic, which knows all policies. On the left the general form of the equations, on "
    "the right the paper's; MIS has neither and stands in both. The dotted line is the efficiency bound.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
