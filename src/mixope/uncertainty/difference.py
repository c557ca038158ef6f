"""One value less another on the same data: of targets, of a target and those who wrote the logs, of the arms of a test.

    first − second,   its standard error and interval,   P(first is better),   and the conclusion

The conclusion rests on the joint interval where several differences are made together, else on the interval. From
values that the data do not support nothing follows: there is no probability and no conclusion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mixope.base.rendering import plain
from mixope.uncertainty.clustered import Interval, probability_positive, quantile

_IN_JSON = {"difference": "value", "probability_first_is_better": "probability_better"}
"""Fields that experiments and pairs of targets write under a name of their own."""


@dataclass(frozen=True)
class Difference:
    """``first`` less ``second``, and how likely it is that ``first`` is better.

    Better is more, unless less of a metric is (:attr:`mixope.experiments.ArmResult.less_is_better`). ``joint`` covers
    together with those of all other pairs, where there are such. ``second`` is a name where two targets, or a target
    and a logger, were compared by their names; ``independent_standard_error`` is then that of two evaluations on
    different logs.
    """

    value: float
    standard_error: float
    interval: Interval
    probability_better: float | None
    joint: Interval | None = None
    first: str = "the target"
    second: str = ""
    independent_standard_error: float | None = None

    @classmethod
    def of(cls, value: float, error: float, degrees: float, level: float, method: str) -> Difference:
        """With the interval and the probability of the t distribution."""
        half = quantile(level, degrees) * error
        interval = Interval(value - half, value + half, level, method)
        return cls(value, error, interval, probability_positive(value, error, degrees))

    @property
    def difference(self) -> float:
        """The value, as experiments call it."""
        return self.value

    @property
    def probability_first_is_better(self) -> float | None:
        """The probability, as comparisons call it."""
        return self.probability_better

    @property
    def decisive(self) -> Interval:
        """The interval on which the conclusion rests."""
        return self.joint or self.interval

    @property
    def narrower(self) -> float:
        """How many times narrower than if the two had been evaluated on different logs."""
        if self.independent_standard_error is None:
            return math.nan
        return self.independent_standard_error / self.standard_error if self.standard_error > 0 else math.inf

    @property
    def conclusion(self) -> str | None:
        """Which is better, all pairs considered, or that these data cannot tell."""
        if self.probability_better is None:
            return None
        if self.standard_error == 0.0 and self.value == 0.0:
            return "the same on every episode"
        if self.decisive.low > 0:
            return f"{self.first} is better"
        if self.decisive.high < 0:
            return f"{self.first} is worse" if not self.second else f"{self.second} is better"
        return "cannot be told apart"

    @property
    def without_conclusion(self) -> Difference:
        """The same where the data do not support an answer."""
        return replace(self, probability_better=None)

    @property
    def as_cost(self) -> Difference:
        """The same where less is better."""
        return replace(self, probability_better=_opposite(self.probability_better))

    @property
    def reversed(self) -> Difference:
        """The second, which has a name, less the first."""
        return replace(
            self,
            value=-self.value,
            interval=_opposite_interval(self.interval),
            probability_better=_opposite(self.probability_better),
            joint=self.joint and _opposite_interval(self.joint),
            first=self.second,
            second=self.first,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values; of a pair with its names, and None for ``narrower`` if they are the same on every episode."""
        interval = self.interval.to_dict()
        if not self.second:
            own: dict[str, Any] = {"value": self.value, "standard_error": self.standard_error, "interval": interval}
            return {**own, "probability_better": self.probability_better}
        alone, apart = plain(self.standard_error), plain(self.independent_standard_error)
        return {
            **self._pair,
            "interval": interval,
            "joint": self.decisive.to_dict(),
            "probability_first_is_better": self.probability_better,
            "narrower": apart / alone if alone and apart is not None else None,  # of the numbers that are written
            "conclusion": self.conclusion,
        }

    def row(self) -> dict[str, Any]:
        """One line of a table of pairs."""
        alone, joint = self.interval, self.decisive
        return {
            **self._pair,
            "probability_first_is_better": self.probability_better,
            "low": alone.low,
            "high": alone.high,
            "joint_low": joint.low,
            "joint_high": joint.high,
            "conclusion": self.conclusion,
        }

    @property
    def _pair(self) -> dict[str, Any]:
        names = ("first", "second", "value", "standard_error", "independent_standard_error")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields, under whichever names they were written."""
        return {_IN_JSON.get(name, name): value for name, value in written.items()}


def _opposite(probability: float | None) -> float | None:
    return None if probability is None else 1.0 - probability


def _opposite_interval(interval: Interval) -> Interval:
    return replace(interval, low=-interval.high, high=-interval.low)


def probability_words(chance: float | None) -> str:
    """Three digits, never rounded to certainty: < 0.001, > 0.999; a dash where there is none."""
    if chance is None:
        return "–"
    return "< 0.001" if chance < 0.001 else "> 0.999" if chance > 0.999 else f"{chance:.3f}"
