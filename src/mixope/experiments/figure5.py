"""Figure 5 (the paper's appendix): each method of figure 4 against its twin that knows the policies.

The logs are those of figure 4, so what that figure has measured is not measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixope.experiments import figure4
from mixope.experiments.errors import plan, summarise
from mixope.experiments.experiment import Experiment, Row
from mixope.experiments.panels import draw_errors, show_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TWINS = (("bch", "emp-single"), ("bch-pooled", "emp"), ("bch-kl-pooled", "kl-emp"))
METHODS = tuple(name for pair in TWINS for name in pair)


def draw(rows: Sequence[Row]) -> Figure:
    """From the lines of the CSV."""
    return draw_errors(rows, METHODS)


def show(rows: Sequence[Row]) -> list[Row]:
    """The lines of the table."""
    return show_errors(rows, METHODS)


EXPERIMENT = Experiment(
    name="figure5",
    title="Figure 5: with and without the policies",
    caption="Mean squared error from the logs of four policies. Three pairs, told apart by their markers: each logger "
    "alone (BCH, EMP (single)), pooled (BCH (pooled), EMP), pooled with the paper's weights (BCH (KL-pooled), KL-EMP). "
    "The first of a pair knows the policies (dashed, hollow), the second estimates them (solid, filled). On the left "
    "the general form of the equations, with BCH calibrated, on the right the paper's. The dotted line is the "
    "efficiency bound.",
    sizes=figure4.SIZES,
    plan=plan,
    summarise=summarise,
    draw=draw,
    show=show,
)
