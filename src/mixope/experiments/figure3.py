"""Figure 3: what knowing the behaviour is worth. BCH (knows it), EMP (estimates it), SADL (never needs it).

The logs are those of figure 2, so what that figure has measured is not measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments import figure2
from mixope.experiments.errors import Settings, plan, summarise
from mixope.experiments.experiment import Experiment, Row, Size
from mixope.experiments.panels import draw_errors, show_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENVIRONMENTS = ("taxi", "pendulum")
METHODS = ("bch", "emp", "sadl")

SIZES: dict[Size, Settings] = {
    size: Settings(given.loggers, tuple(sweep for sweep in given.sweeps if sweep.environment in ENVIRONMENTS))
    for size, given in figure2.SIZES.items()
}


def draw(rows: Sequence[Row]) -> Figure:
    """From the lines of the CSV."""
    return draw_errors(rows, METHODS)


def show(rows: Sequence[Row]) -> list[Row]:
    """The lines of the table."""
    return show_errors(rows, METHODS)


EXPERIMENT = Experiment(
    name="figure3",
    title="Figure 3: aware, partially agnostic, agnostic",
    caption="Mean squared error from the logs of one policy: BCH knows that policy, EMP estimates it, SADL learns the "
    "ratio of state–action laws and never needs it. On the left the general form of the equations for BCH and EMP, on "
    "the right the paper's; SADL has one form and stands in both. The dotted line is the efficiency bound.",
    sizes=SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
