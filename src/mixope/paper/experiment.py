"""What an experiment is: settings, a plan of repetitions, a summary, a drawing; and all of them by name.

settings → plan(settings, seed) → repetitions → measure() → rows → summarise(settings, rows) → CSV → draw(CSV)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from mixope.base.errors import UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Size = Literal["smoke", "quick", "full"]
Cell = str | int | float | None
Row = dict[str, Cell]
"""One measurement, or one line of a summary. None stands for a number that there is not (also for NaN)."""


def number(cell: object, otherwise: float = math.nan) -> float:
    """The number in a cell, or what stands for none."""
    return float(cell) if isinstance(cell, (int, float)) else otherwise


class Repetition(Protocol):
    """A frozen dataclass of plain values that can measure what it describes, and nothing else decides the outcome."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """What it costs on one core, as measured when it was written; only for telling the user beforehand."""
        ...

    def measure(self) -> list[Row]:
        """Do the work; runs in a process of its own."""
        ...


@dataclass(frozen=True)
class Exhibit:
    """One figure or table. ``summarise`` gets rows that hold the fields of their repetition besides what it measured.

    ``draw`` gets the lines of the CSV and gives a figure; ``show`` gives the lines of the table beneath it (by
    default the CSV itself). ``caption`` says what there is to see and how to read it.
    """

    name: str
    title: str
    caption: str
    sizes: Mapping[Size, Any]
    plan: Callable[[Any, int], Sequence[Repetition]]
    summarise: Callable[[Any, Sequence[Row]], list[Row]]
    draw: Callable[[Sequence[Row]], Figure] | None = None
    show: Callable[[Sequence[Row]], list[Row]] | None = None


REGISTRY: dict[str, str] = {
    "figure1": "mixope.paper.figure1:EXPERIMENT",
    "figure2": "mixope.paper.error_figures:FIGURE_2",
    "figure3": "mixope.paper.error_figures:FIGURE_3",
    "figure4": "mixope.paper.error_figures:FIGURE_4",
    "figure5": "mixope.paper.error_figures:FIGURE_5",
    "coverage": "mixope.paper.coverage:EXPERIMENT",
    "claims": "mixope.paper.claims:EXPERIMENT",
    "phases": "mixope.paper.phases:EXPERIMENT",
}
"""Where each is, imported when it is asked for; in the order in which ``all`` runs them."""


def get(name: str) -> Exhibit:
    """The experiment of that name."""
    if name not in REGISTRY:
        raise UnknownName("experiment", name, [*REGISTRY, "all"])
    found = resolve_name(REGISTRY[name])
    assert isinstance(found, Exhibit)
    return found
