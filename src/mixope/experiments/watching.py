"""A test that is watched while it runs: what looking often does to intervals.

Intervals for all times are as wide as intervals for one look at a higher level (:mod:`mixope.uncertainty.sequences`).
So an experiment is computed at that level from end to end, whatever it is made of, and its intervals are then given the
level that they have at all times together. The clock is the number of rows, one per unit and period: units come in,
and those that are in stay. What a unit shows on a later day is akin to what it showed before, so that information grows
no faster than rows, and where it grows more slowly the sequence errs less often than it says.
"""

from __future__ import annotations

from dataclasses import replace

from mixope.base.arrays import is_whole
from mixope.base.errors import Advice, Setting, UsageError
from mixope.experiments.records import Part, with_each
from mixope.uncertainty import ANYTIME, Interval

PLANNED_ROWS = 100_000
"""Rows at which the sequence is narrowest where nobody plans: a quarter wider from ten thousand to ten million."""
ONE_LOOK = (
    "intervals are for one look, at a time that was fixed before the test. Whoever looks again and again and stops at"
    " the first clear answer is wrong far more often; for that, say "
)


def as_planned_rows(planned: int | None) -> int:
    """How many rows a watched test is to bring, or what is taken where nobody says."""
    if planned is not None and (not is_whole(planned) or planned < 1):
        raise UsageError(f"planned is the number of rows that the test is to bring, at least 1, got {planned!r}")
    return PLANNED_ROWS if planned is None else int(planned)


def about_looking(sequential: bool, planned: int) -> tuple[str, ...]:
    """How often one may look."""
    if not sequential:
        return (Advice(ONE_LOOK, Setting("sequential", True)),)
    return (
        f"intervals hold however often one looks, from the first look whose verdict is trustworthy on; they are"
        f" narrowest at {planned:,} rows, a number to be fixed before the test. Probabilities and checks are those of"
        " this look",
    )


def at_all_times(part: Part, level: float) -> Part:
    """The same record with its intervals as what they are: valid at all times together, at this level."""
    return with_each(part, Interval, lambda found: replace(found, level=level, method=f"{found.method}, {ANYTIME}"))
