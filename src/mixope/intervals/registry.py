"""All intervals by name: from scores at hand, or from refits. To add one: a file, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mixope.arrays import FloatArray
from mixope.errors import UnknownName
from mixope.intervals.clustered import Interval, clustered_interval
from mixope.intervals.likelihood import likelihood_interval

FromScores = Callable[[float, FloatArray, float], Interval | None]

SCORE_INTERVALS: dict[str, FromScores] = {
    "t": clustered_interval,
    "normal": partial(clustered_interval, law="normal"),
    "likelihood": likelihood_interval,
}
"""Made from the value, the scores of the episodes and the level."""

REFIT_INTERVALS = ("bca", "percentile")
"""Made by refitting on resampled episodes: :func:`mixope.resampling.refitted_uncertainty`."""


def from_scores(name: str) -> FromScores:
    """An interval from scores by name; a name that needs refits is not one of these."""
    if name not in SCORE_INTERVALS:
        raise UnknownName("interval", name, [*SCORE_INTERVALS, *REFIT_INTERVALS])
    return SCORE_INTERVALS[name]
