"""Were the equations solved, and do their solutions hold on rows that they were not made of?

held-out stationarity   the ratio of some episodes on the flow of the others, in the direction of the value
solver                  whether the equations hold to the tolerance
"""

from __future__ import annotations

from mixope.checks.check import LITTLE, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic

WARN, FAIL = 3.0, 10.0
"""Standard deviations; see docs/trust.md."""
TOLERANCE = 1e-8


def held_out_stationarity(evidence: Evidence) -> Diagnostic | None:
    """The imbalance in standard deviations; None where nothing was held out."""
    off = evidence.measures.held_out
    if off is None:
        return None
    words = f"on held-out episodes, flow under the estimated ratio is out of balance by {off:.1f} standard deviations"
    return HELD_OUT.graded(off, WARN, FAIL, words)


def solver(evidence: Evidence) -> Diagnostic:
    """Whether the equations were solved."""
    solved = evidence.solution.solved
    return SOLVER.diagnostic(solved.residual, TOLERANCE, "pass" if solved.ok else "warn", solved.outcome.value)


HELD_OUT = Check(
    "held-out stationarity",
    "stationarity",
    LITTLE,
    "more episodes, fewer columns, a nearer target",
    held_out_stationarity,
)
SOLVER = Check("solver", "stationarity", LITTLE, "report it with the logs; try 'dr'", solver)
