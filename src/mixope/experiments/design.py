"""What the user says of an experiment: which column holds what, and who is the control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from mixope.base.arrays import is_whole
from mixope.base.errors import UsageError

Period = Literal["hour", "day", "week", "month", "visit"]
"""What a period is called, and how dates are counted; visits are counted by the user."""
Absent = Literal["zero", "unknown"]
ABSENT: tuple[Absent, ...] = get_args(Absent)
PERIODS: tuple[Period, ...] = get_args(Period)
MOST_LAGS = 3


@dataclass(frozen=True)
class ExperimentDesign:
    """The columns of a table with one row per unit and period, and what is made of them.

    ``states`` may be empty: then the table's other columns are taken, and a note says which. ``season`` is a number of
    periods after which the world is where it was (7 for days of a week); ``lags`` puts so many earlier periods of the
    states beside them. With ``exposure``, a unit has its arm in the periods in which that column is true, and is as the
    control in the others. ``absent`` is what a period without a row means, after a unit has entered.
    """

    unit: str
    time: str
    arm: str
    control: str
    metrics: tuple[str, ...]
    states: tuple[str, ...] = ()
    period: Period = "day"
    season: int | None = None
    lags: int = 0
    exposure: str | None = None
    bins: int = 5
    missing: str | None = None
    absent: Absent | None = None

    def __post_init__(self) -> None:
        if not self.metrics:
            raise UsageError("an experiment needs a metric: the column with what a unit earned in a period")
        _refuse_twice(self.columns)
        if self.period not in PERIODS:
            raise UsageError(f"period is one of {', '.join(PERIODS)}, got {self.period!r}")
        if self.season is not None and (not is_whole(self.season) or self.season < 2):
            raise UsageError(f"season is a number of periods, 7 for days of a week; got {self.season!r}")
        if not is_whole(self.lags) or not 0 <= self.lags <= MOST_LAGS:
            raise UsageError(f"lags is a number from 0 to {MOST_LAGS}, got {self.lags!r}")
        if not is_whole(self.bins) or not 2 <= self.bins <= 20:
            raise UsageError(f"bins is a number from 2 to 20, got {self.bins!r}")
        if self.absent is not None and self.absent not in ABSENT:
            raise UsageError(f"absent is one of {', '.join(ABSENT)}, got {self.absent!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the table that are named."""
        exposure = () if self.exposure is None else (self.exposure,)
        return (self.unit, self.time, self.arm, *self.metrics, *self.states, *exposure)


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column or several."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _refuse_twice(columns: Sequence[str]) -> None:
    twice = next((name for place, name in enumerate(columns) if name in columns[:place]), None)
    if twice is not None:
        raise UsageError(f"column {twice!r} is given two meanings; unit, time, arm, metrics and states differ")
