"""How a solve ended: an enumeration whose values are the messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What happened, what it means, what to try."""

    DIRECT = "solved directly"
    ITERATED = "solved by iteration to the tolerance"
    KRYLOV = "solved by ARPACK to the tolerance"
    INACCURATE = (
        "the residual stayed above the tolerance: the chain mixes too slowly for these logs. "
        "Treat the value with caution; more rows between its slowly connected parts would help"
    )
    CLIPPED = "solved; small negative ratios were set to zero"
    CERTAIN = "read off the logs; nothing was solved"


@dataclass(frozen=True)
class Solved:
    """How well: the outcome, the largest residual of the equations, iterations where there were any."""

    outcome: Outcome
    residual: float
    iterations: int = 0

    @property
    def ok(self) -> bool:
        """Whether the equations hold to the tolerance."""
        return self.outcome is not Outcome.INACCURATE
