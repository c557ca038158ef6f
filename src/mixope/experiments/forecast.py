"""Do the first days predict the later ones? The test of the whole method that the data themselves allow.

The chains of the arms are made from the rows of the first k periods alone; then the periods after are predicted, and
held against what was seen there. The mean over the later periods is judged, for every arm and for the difference, with
the error of prediction and sight together from the jackknife over buckets of units. The difference is what a test asks
for (*later periods*); but an arm whose level is not where it was predicted (*later levels*) shows that the state leaves
something out or that the world drifts, and what is said of the two may drift apart later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray
from mixope.checks import Check, Diagnostic
from mixope.checks.check import EXPERIMENT
from mixope.experiments.chains import chain_of, start_law
from mixope.experiments.counts import Counts, jackknife_error

WARN = 3.0
LEVELS_WARN, LEVELS_SHARE = 4.0, 0.05
"""Standard errors and share of the level by which an arm must be off; in many units what is sure need not matter."""
LEAST_DAYS = 4
"""A test of fewer periods has no later ones worth the name."""
LATER_PERIODS = Check(
    "later periods",
    "stationarity",
    EXPERIMENT,
    "add to the state what builds up or wears off; run the test longer; trust the path no farther than the test",
)
LATER_LEVELS = Check(
    "later levels",
    "stationarity",
    EXPERIMENT,
    "add to the state what builds up or wears off; do not rely on levels, and hardly on differences far ahead",
)


@dataclass(frozen=True)
class ByDay:
    """Rows and metric of every (bucket, arm, period since entry)."""

    rows: FloatArray
    reward: FloatArray


@dataclass(frozen=True)
class Forecast:
    """Predicted and seen over the later periods: treatment, control, difference."""

    first: int
    predicted: tuple[float, float, float]
    seen: tuple[float, float, float]
    deviates: tuple[float, float, float]
    names: tuple[str, str] = ("treatment", "control")

    @property
    def check(self) -> Diagnostic:
        """Whether the difference is where it was predicted."""
        off = abs(self.deviates[2])
        ahead, after = self.predicted[2], self.seen[2]
        said = f"the first {self.first} periods predict a difference of {ahead:.3g} later on; it was {after:.3g}"
        if off > WARN:
            return LATER_PERIODS.diagnostic(off, WARN, "warn", f"{said}: {off:.1f} standard errors off")
        return LATER_PERIODS.diagnostic(off, WARN, "pass", said)

    @property
    def levels(self) -> Diagnostic:
        """Whether each arm is: the one that is the most standard errors off."""
        arm = int(np.argmax(np.abs(self.deviates[:2])))
        off, ahead, after = abs(self.deviates[arm]), self.predicted[arm], self.seen[arm]
        said = (
            f"the first {self.first} periods predict {ahead:.3g} per period later on for arm {self.names[arm]}; it was"
        )
        said = f"{said} {after:.3g} ({off:.1f} standard errors off)"
        if off <= LEVELS_WARN or abs(ahead - after) <= LEVELS_SHARE * abs(after):
            return LATER_LEVELS.diagnostic(off, LEVELS_WARN, "pass", said)
        alike = abs(self.deviates[2]) <= WARN
        rest = "; so far both arms are off alike, and their difference is not" if alike else ""
        cause = "what units do next does not follow from their state alone, or the world drifts"
        return LATER_LEVELS.diagnostic(off, LEVELS_WARN, "warn", f"{said}: {cause}{rest}")


def forecast(early: Counts, seen: ByDay, treatment: int, control: int, first: int) -> Forecast:
    """From the counts of the first periods to all after them."""
    buckets = np.arange(seen.rows.shape[0])
    predicted, watched = _compared(early, seen, buckets >= 0, treatment, control, first)
    others = []
    for bucket in buckets[seen.rows.sum(axis=(1, 2)) > 0]:
        ahead, after = _compared(early.take(early.bucket != bucket), seen, buckets != bucket, treatment, control, first)
        others.append(ahead - after)
    error = jackknife_error(np.stack(others))
    deviates = np.where(error > 0, (predicted - watched) / np.where(error > 0, error, 1.0), 0.0)
    names = early.arms[treatment], early.arms[control]
    return Forecast(first, _three(predicted), _three(watched), _three(deviates), names)


def _three(values: FloatArray) -> tuple[float, float, float]:
    treatment, control, difference = values.tolist()
    return treatment, control, difference


def _compared(
    early: Counts, seen: ByDay, chosen: BoolArray, treatment: int, control: int, first: int
) -> tuple[FloatArray, FloatArray]:
    """Means over the later periods, weighted by the units that were seen in them."""
    start = start_law(early)
    days = seen.rows.shape[2]
    rows, reward = seen.rows[chosen].sum(axis=0), seen.reward[chosen].sum(axis=0)
    ahead, after = [], []
    for arm in (treatment, control):
        path = chain_of(early, arm, start).path(days)
        weight = rows[arm, first:]
        ahead.append(float(weight @ path[first:] / weight.sum()))
        after.append(float(reward[arm, first:].sum() / weight.sum()))
    ahead.append(ahead[0] - ahead[1])
    after.append(after[0] - after[1])
    return np.array(ahead), np.array(after)
