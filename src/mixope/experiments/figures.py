"""What counts alone say of a treatment and the control: the path by day, the short cuts, the parts of the difference.

Every number has its error from one jackknife over buckets of units, in which the chains of the arms are made once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.experiments.chains import Pair
from mixope.experiments.counts import Counts, jackknife
from mixope.experiments.records import Day, Driver, Line
from mixope.experiments.seen import SeenDays
from mixope.uncertainty import Difference, quantile

DRIVERS = 8
BY_JACKKNIFE = "jackknife over units"
LEAST_SHARED = 0.95
"""Of the rows lie in states that both arms were seen in, where differences in Q are to speak for all of them."""


@dataclass(frozen=True)
class Figures:
    """Numbers of one pair of arms: surrogate, dq, at once, carried over, the path by day, and dq less the long run."""

    pair: Pair
    tested: int
    ahead: int
    level: float
    values: FloatArray
    errors: FloatArray
    degrees: int

    def _effect(self, place: int) -> Difference:
        value, error = float(self.values[place]), float(self.errors[place])
        return Difference.of(value, error, self.degrees, self.level, BY_JACKKNIFE)

    def lines(self, half: float) -> tuple[Line, ...]:
        """The short cuts, each where its conditions hold; ``half`` is that of the interval of the long run."""
        said = f"over {self.ahead} periods, as if treatment ended with the test and left units where they were"
        surrogate = Line("surrogate", self._effect(0), said)
        if self.why_no_dq(half) is not None:
            return (surrogate,)
        return surrogate, Line("dq", self._effect(1), "long run to first order, from all arms")

    def why_no_dq(self, half: float) -> str | None:
        """Why differences in Q, which are the long run to first order, say nothing of it here; None where they do.

        The same counts have the long run itself: what is between the two is what the first order leaves out. It is too
        much where it is beyond chance, and more than the interval of the long run allows.
        """
        shared = self.pair.shared
        if shared < LEAST_SHARED:
            return f"{1 - shared:.1%} of the rows lie in states that one of the arms was never seen in"
        gap, error = float(self.values[-1]), float(self.errors[-1])
        if abs(gap) <= max(half, quantile(self.level, self.degrees) * error):
            return None
        return (
            "it is a first-order method, and treatment moves units too far for that: on the same counts it is"
            f" {gap:+.3g} off the long run"
        )

    @property
    def at_once(self) -> Difference:
        """What treatment earns in the states of the control."""
        return self._effect(2)

    @property
    def carried(self) -> Difference:
        """What it earns by moving units to other states."""
        return self._effect(3)

    def on_day(self, day: int) -> Difference:
        """The difference in one period; the first is 1."""
        return self._effect(3 + day)

    def days(self, seen: SeenDays) -> tuple[Day, ...]:
        """The path, beside what was seen."""
        reach = quantile(self.level, self.degrees)
        found = []
        for day, (value, error) in enumerate(zip(self.values[4:-1].tolist(), self.errors[4:-1].tolist(), strict=True)):
            inside = day < len(seen.difference) and bool(np.isfinite(seen.error[day]))
            difference, spread = (float(of[day]) if inside else None for of in (seen.difference, seen.error))
            found.append(Day(day, difference, spread, value, value - reach * error, value + reach * error))
        return tuple(found)

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """The states that add most to the difference."""
        at_once, carried = self.pair.parts_by_state()
        treated, plain = self.pair.laws
        counts = self.pair.counts
        order = np.argsort(-(np.abs(at_once) + np.abs(carried)), kind="stable")[:DRIVERS]
        return tuple(
            Driver(
                dict(zip(counts.columns, counts.states[s], strict=True)),
                float(at_once[s]),
                float(carried[s]),
                float(plain[s]),
                float(treated[s]),
            )
            for s in order
        )


def figures(counts: Counts, treatment: int, control: int, tested: int, days: int, level: float) -> Figures:
    """All of them, for a test of ``tested`` periods and a path of ``days``."""
    ahead = max(days, tested)

    def compute(some: Counts) -> FloatArray:
        pair = Pair(some, treatment, control)
        dq, parts = pair.differences_in_q(), [part.sum() for part in pair.parts_by_state()]
        return np.array([pair.surrogate_index(tested, ahead), dq, *parts, *pair.path(days), dq - sum(parts)])

    values, errors, degrees = jackknife(counts, compute)
    return Figures(Pair(counts, treatment, control), tested, ahead, level, values, errors, degrees)
