"""A behaviour is what stands in the denominator of ρ = π(a|s)/b(a|s).

It answers with 1/b for the rows of every group, as sums, because that is all that is ever needed of it: Σ 1/b, Σ r/b
and Σ 1/b². A behaviour that is a function of (s, a) and perhaps the logger gives one number a group; logged
propensities may differ from row to row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mixope.arrays import FloatArray
from mixope.problem import Problem
from mixope.statistics.transitions import Transitions


@dataclass(frozen=True)
class Inverse:
    """Sums of 1/b over the rows of every group; ``by_row`` where 1/b is not a function of the group."""

    inverse: FloatArray
    reward: FloatArray
    squared: FloatArray
    by_row: bool = False

    @classmethod
    def of_groups(cls, behaviour: FloatArray, transitions: Transitions) -> Inverse:
        """From one b(a|s) a group."""
        return cls(
            transitions.rows / behaviour, transitions.reward / behaviour, transitions.rows / behaviour**2, by_row=False
        )


class Behaviour(Protocol):
    """Fits, or reads, b on some rows with row weights c (one a logger)."""

    name: str
    #: Whether b is the frequency of actions in each state, which fits the rows by construction.
    counted: bool
    #: Whether b was estimated from these rows: that changes the score (the efficient influence function).
    fitted: bool

    def invert(self, problem: Problem, weight: FloatArray) -> Inverse:
        """1/b over the groups of ``problem.transitions``; ``weight`` is c for every group."""
        ...
