"""The counted mixture: maximum likelihood in the tabular case is the frequency of each action in each state.

All loggers are pooled, which is the idea of EMP:  π̂₀(a|s) = Σ c n(s,a) / Σ c n(s).  Inside
:class:`~mixope.behaviours.per_logger.PerLogger` the rows of each logger are counted separately. With ``smoothing`` κ
each of the A actions counts κ more in every state:  (Σ c n(s,a) + κ) / (Σ c n(s) + κ A).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import UsageError
from mixope.behaviours.protocol import Behaviour, FittedBehaviour, Inverse, check_possible, numbered, usable_rows
from mixope.features.one_hot import FittedOneHot, OneHot
from mixope.requests.rows import Rows


@dataclass(frozen=True)
class CountedMixture(Behaviour):
    """b = π̂₀, counted over the pooled (and possibly re-weighted) rows."""

    smoothing: float = 0.0
    name = "mixture"

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < np.inf:
            raise UsageError(f"expected a smoothing of 0 or more counts per action, got {self.smoothing}")

    @property
    def counted(self) -> bool:
        """Smoothed counts do not fit the rows exactly."""
        return self.smoothing == 0

    def fit(self, rows: Rows, weight: FloatArray, seed: int = 0) -> FittedCounted:
        """Count pairs and states, by the numbers that the rows bring along or by their values."""
        rows, weight = usable_rows(rows, weight)
        known = None if rows.pair is not None else (OneHot().fit(rows.observation), OneHot().fit(rows.action))
        state, pair = _numbers(rows, known)
        extra = self.smoothing * len(np.unique(rows.action)) if self.smoothing else 0.0
        return FittedCounted(
            sum_by(pair, weight) + self.smoothing, sum_by(state, weight) + extra, known, self.smoothing
        )


@dataclass(frozen=True)
class FittedCounted(FittedBehaviour):
    """Counts of pairs and of states by number, and how values are numbered where rows bring no numbers."""

    by_pair: FloatArray
    by_state: FloatArray
    known: tuple[FittedOneHot, FittedOneHot] | None
    smoothing: float

    @property
    def counted(self) -> bool:
        """Unless smoothed."""
        return self.smoothing == 0

    def log_prob(self, rows: Rows) -> FloatArray:
        """log π̂₀(a|s)."""
        return np.log(self._prob(rows))

    def invert(self, rows: Rows) -> Inverse:
        """From the shares themselves."""
        return Inverse.of(self._prob(rows), rows)

    def _prob(self, rows: Rows) -> FloatArray:
        state, pair = _numbers(rows, self.known)
        pairs, states = _at(self.by_pair, pair, self.smoothing), _at(self.by_state, state, 0.0)
        result = np.divide(pairs, states, out=np.zeros(len(rows)), where=states > 0)
        if not result.all():
            check_possible(np.where(result > 0, 0.0, -np.inf), rows, "the counted mixture")
        return result


def _numbers(rows: Rows, known: tuple[FittedOneHot, FittedOneHot] | None) -> tuple[IntArray, IntArray]:
    """State and pair of every row: its own numbers, or those of known states and actions, −1 for strangers."""
    if known is None:
        return numbered(rows.state), numbered(rows.pair)
    states, actions = known
    state, action = states.columns(rows.observation), actions.columns(rows.action)
    return state, np.where((state < 0) | (action < 0), -1, state * actions.size + action)


def _at(count: FloatArray, number: IntArray, otherwise: float) -> FloatArray:
    """The count of every number; what was never counted has ``otherwise``."""
    known = (number >= 0) & (number < len(count))
    return np.where(known, count[np.where(known, number, 0)], otherwise)
