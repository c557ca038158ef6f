"""How sure a longer test would be: the standard error of the long-run difference after the first k periods, carried on.

A test of k periods shows k − 1 moves of every unit. Its rows are part of the table, so that its standard error can be
had without running it, by the jackknife over units (:mod:`mixope.experiments.counts`). Where units are seen again and
again the error falls by a power of the length,

    se(k)² ∝ k⁻ˢ        s = 1: each day tells as much as the one before;  s < 1: what a unit shows is akin to the past

and s is fitted to the later half of the lengths that were seen; at most 1 is believed, for faster falls are chance, or
the beginning of a test whose units have not been everywhere yet. To go beyond the test is an extrapolation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import DataError
from mixope.experiments.chains import chain_of
from mixope.experiments.counts import Counts, count, jackknife
from mixope.experiments.panel import Panel

LEAST = 3
"""Periods of the shortest test that is looked at."""
MOST_LENGTHS = 10


@dataclass(frozen=True)
class ErrorsByLength:
    """Standard errors after so many periods; the last is that of the whole test."""

    periods: IntArray
    error: FloatArray

    @property
    def power(self) -> float:
        """s, between 0 and 1: how fast the squared error falls with the length."""
        later = self.periods * 2 >= self.periods[-1]
        slope = np.polyfit(np.log(self.periods[later]), np.log(self.error[later] ** 2), 1)[0]
        return float(min(max(-slope, 0.0), 1.0))


def errors_by_length(panel: Panel, metric: str, treatment: str) -> ErrorsByLength:
    """The standard error of the long-run difference if the test had ended sooner, and as it is."""
    names = panel.facts.names
    pair = names.index(treatment), names.index(panel.design.control)
    longest = panel.facts.longest
    if longest < 2 * LEAST:
        raise DataError(
            "The test is too short to see how its standard error falls with its length",
            where=panel.name,
            expected=f"units that were watched for {2 * LEAST} periods or more",
            got=f"{longest} periods",
        )
    periods = np.unique(np.linspace(LEAST, longest, min(MOST_LENGTHS, longest - LEAST + 1)).round().astype(np.int64))
    found = [jackknife(_first(panel, metric, int(k)), lambda c: _difference(c, *pair)) for k in periods]
    return ErrorsByLength(periods, np.array([float(error[0]) for _, error, _ in found]))


def _first(panel: Panel, metric: str, periods: int) -> Counts:
    """Moves that a test of so many periods would have shown."""
    return count(panel, metric, f"step < {periods - 1} AND follows").merged()


def _difference(counts: Counts, treatment: int, control: int) -> FloatArray:
    values = [(chain := chain_of(counts, arm)).long_run() @ chain.reward for arm in (treatment, control)]
    return np.array([values[0] - values[1]])
