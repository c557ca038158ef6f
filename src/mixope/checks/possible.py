"""What is possible: a value, its interval and its outer band, kept to what rewards like those logged can make.

An average of rewards lies between the lowest and the highest of them, whoever acts, and so do a discounted average and
that of the first steps (0 among the rewards where a step after an end counts). The total of an episode has bounds on
the side where more steps can only add. The correction of a doubly robust value knows nothing of that and can miss it
by chance.

With θ in [low, high], the nearest value there and the part of the interval that lies there are no worse:
|clip(v) − θ| ≤ |v − θ|, and what is cut off cannot hold θ. Where the whole interval lies outside, no chance explains
it: nothing is moved, and the check *reward range* fails. Nor is anything moved where fewer than ``ENOUGH`` rows stand
behind the value: a handful of rewards may all lie on one side of their mean. A value whose weights are not normalised
is shown as it comes, to show what these weights do; beyond the rewards the same check asks for caution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.checks.evidence import ROUNDING, Evidence
from mixope.checks.value import rewards_of_a_step
from mixope.uncertainty import Interval

ENOUGH = 20
"""Effective rows: as many rewards lie on one side of a middle one with probability 2⁻¹⁹."""
CUT = "cut to what rewards allow"


@dataclass(frozen=True)
class Possible:
    """The value and the interval that are reported; ``note`` says so where the value was moved."""

    value: float
    interval: Interval | None
    low: float
    high: float
    note: str | None = None

    def around(self, band: tuple[float, float]) -> tuple[float, float]:
        """An outer band that counts chance too, so that it holds the interval: its ends are as uncertain as the value.

        The band by itself takes counts as they are, and an estimator that corrects what was counted need not lie in it.
        """
        low, high = min(band[0], self.value), max(band[1], self.value)
        if self.interval is not None:
            low, high = low - (self.value - self.interval.low), high + (self.interval.high - self.value)
        return max(low, min(self.low, self.value)), min(high, max(self.high, self.value))


def within_possible(evidence: Evidence) -> Possible:
    """The value and its interval, as far as rewards like those logged allow."""
    low, high = possible_range(evidence)
    value, found = evidence.value, evidence.interval
    apart = evidence.solution.is_reference or not evidence.solution.normalised
    if apart or not np.isfinite(value) or _rows(evidence) < ENOUGH:
        return Possible(value, found, -np.inf, np.inf)
    slack = ROUNDING * max(abs(value), *(abs(end) for end in (low, high) if np.isfinite(end)), 0.0)
    beyond = max(low - value, value - high)
    if beyond > slack and (found is None or not (found.low <= high + slack and found.high >= low - slack)):
        return Possible(value, found, -np.inf, np.inf)
    nearest = float(np.clip(value, low, high))
    note = _moved(value, nearest, low, high) if beyond > slack else None
    return Possible(nearest, None if found is None else _cut(found, nearest, low, high), low, high, note)


def _rows(evidence: Evidence) -> float:
    weighed = evidence.effective_sample_size
    return evidence.survey.n_rows if weighed is None else min(weighed, evidence.survey.n_rows)


def possible_range(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest value, of which nothing is estimated but what single rewards there are."""
    low, high = rewards_of_a_step(evidence)
    if evidence.estimand.kind != "episode":
        return low, high
    most = evidence.estimand.forever if evidence.estimand.discount < 1.0 else np.inf
    return (low if low >= 0 else low * most), (high if high <= 0 else high * most)


def _cut(found: Interval, value: float, low: float, high: float) -> Interval:
    """The part that is possible; the value lies in it, also where both touch by rounding alone."""
    ends = min(max(found.low, low), value), max(min(found.high, high), value)
    if ends == (found.low, found.high):
        return found
    return replace(found, low=ends[0], high=ends[1], method=f"{found.method}, {CUT}")


def _moved(value: float, nearest: float, low: float, high: float) -> str:
    allowed = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
    if not np.isfinite([low, high]).all():
        allowed = f"at least {low:.6g}" if np.isfinite(low) else f"at most {high:.6g}"
    return (
        f"by chance the estimate was {value:.6g}, beyond what the logged rewards allow ({allowed}); it is reported as"
        f" {nearest:.6g}"
    )
