"""Does an arm do the same in the same state all through the test? It does where the state is all that matters.

What the state leaves out builds up or wears off while a unit is watched, fast at first and then slower. So what a state
earns, and where it leads, must not have a trend in the root of the time since entry:

    Σ (y − r(s)) · (√step − its mean in s)  ≈  0            Σ (h(s′) − (P h)(s)) · (√step − its mean in s)  ≈  0

with r, P and h the rewards, moves and relative values of the arm: a next state is worth what it will bring. Both are
sums over units, so buckets of units give t values. Arms that drift alike, as with a season that the state does not
hold, leave their difference as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.checks import Check, Diagnostic
from mixope.checks.check import EXPERIMENT
from mixope.experiments.chains import ArmChain, chain_of, start_law
from mixope.experiments.counts import Counts, t_value

WARN = 2.6
"""Of four t values the largest passes this in 4 of 100 tests in which nothing drifts."""
ALIKE = 1.2
"""Arms that drift in the same direction, and apart by less than this, drift alike."""
DRIFT = Check("drift", "stationarity", EXPERIMENT, "add to the state what builds up or wears off; run the test longer")


@dataclass(frozen=True)
class _Part:
    """The trends of one part of what an arm does, in standard errors."""

    does: str
    treatment: float
    control: float
    apart: float

    @property
    def most(self) -> float:
        return max(abs(self.treatment), abs(self.control))

    @property
    def alike(self) -> bool:
        return self.treatment * self.control > 0 and abs(self.apart) < ALIKE


def drift_check(counts: Counts, treatment: int, control: int) -> Diagnostic:
    """The part that drifts most, in the arm in which it does; arms that drift alike do no harm."""
    parts = _parts(counts, treatment, control)
    most = max(part.most for part in parts)
    if most <= WARN:
        said = f"arms do the same in the same states all through the test ({most:.1f} standard errors at most)"
        return DRIFT.diagnostic(most, WARN, "pass", said)
    apart = [part for part in parts if part.most > WARN and not part.alike]
    worst = max(apart or parts, key=lambda part: part.most)
    name = counts.arms[treatment if abs(worst.treatment) >= abs(worst.control) else control]
    said = f"in the same states {name} does not {worst.does} early and late ({worst.most:.1f} standard errors)"
    if not apart:
        said += "; all arms drift alike, so their difference stands"
        return DRIFT.diagnostic(abs(worst.apart), WARN, "pass", said)
    said += ": something that the state does not hold builds up or wears off"
    return DRIFT.diagnostic(worst.most, WARN, "warn", said)


def _parts(counts: Counts, treatment: int, control: int) -> tuple[_Part, _Part]:
    chains = [(arm, chain_of(counts, arm, start_law(counts))) for arm in (treatment, control)]
    earned = [_earned(counts, arm, chain) for arm, chain in chains]
    moved = [_moved(counts, arm, chain) for arm, chain in chains]
    return _compared("earn the same", *earned), _compared("move on in the same way", *moved)


def _compared(does: str, first: FloatArray, second: FloatArray) -> _Part:
    return _Part(does, t_value(first), t_value(second), t_value(first - second))


def _earned(counts: Counts, arm: int, chain: ArmChain) -> FloatArray:
    """By bucket: does a state earn more, or less, as time goes on?"""
    mine = counts.take(counts.arm == arm)
    mean = chain.reward[mine.state]
    centre = _mean_time(mine)[mine.state]
    trend = mine.timed_reward - mine.times * mean - centre * (mine.reward - mine.rows * mean)
    return _by_bucket(counts, mine, trend)


def _moved(counts: Counts, arm: int, chain: ArmChain) -> FloatArray:
    """By bucket: does a state lead to better states, or to worse ones, as time goes on?"""
    mine = counts.take((counts.arm == arm) & (counts.next_state >= 0))
    worth = chain.excess(chain.long_run())
    gain = worth[mine.next_state] - (chain.moves @ worth)[mine.state]
    trend = gain * (mine.times - _mean_time(mine)[mine.state] * mine.rows)
    return _by_bucket(counts, mine, trend)


def _mean_time(mine: Counts) -> FloatArray:
    """Of the rows in each state."""
    rows, times = (sum_by(mine.state, what, mine.n_states) for what in (mine.rows, mine.times))
    return np.asarray(times / np.maximum(rows, 1.0))


def _by_bucket(counts: Counts, mine: Counts, trend: FloatArray) -> FloatArray:
    """Mean of a bucket's rows, so that arms of different sizes can be held against each other."""
    return np.asarray(sum_by(mine.bucket, trend, int(counts.bucket.max()) + 1) / mine.rows.sum())
