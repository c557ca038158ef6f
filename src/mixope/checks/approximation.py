"""How much of the uncertainty is approximation, not chance?

On vectors it is what moves when there are half as many features; on factors, the spread of what kriging predicts for
actions that were never logged.
"""

from __future__ import annotations

from mixope.checks.check import LITTLE, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic

MOST = 0.8
"""The share of the squared standard error beyond which it is twice as large as chance, and an interval a guess."""


def approximation(evidence: Evidence) -> Diagnostic | None:
    """τ² as a share of se² + τ²; None where nothing was solved twice or there is no interval."""
    error, standard_error = evidence.measures.approximation, evidence.uncertainty.standard_error
    if error is None or not standard_error:
        return None
    share = 0.0 if evidence.is_rounding(error) else min(error / standard_error, 1.0) ** 2
    half = evidence.measures.half_the_bumps
    unlogged = "what was never logged is predicted"
    counted = unlogged if evidence.solution.corrects_coverage else "actions logged once in a state hide their noise"
    cause = counted if half is None else f"with half as many features it is {half:.4g}"
    words = f"{cause}; an error of approximation of {error:.2g} makes {share:.0%} of the variance behind the interval"
    much = share > MOST
    said = f"{words}, more than twice as much as chance" if much else words
    return APPROXIMATION.diagnostic(share, MOST, "warn" if much else "pass", said)


def correction(evidence: Evidence) -> Diagnostic | None:
    """How far the value model would move a plain ratio's value, in half-widths of its interval."""
    corrected, interval = evidence.measures.corrected, evidence.interval
    if corrected is None or interval is None or not interval.width > 0:
        return None
    off = abs(evidence.value - corrected)
    reach = 0.0 if evidence.is_rounding(off) else off / (interval.width / 2)
    much = reach > 1.0
    where = "outside the interval: use 'dr'" if much else "inside the interval"
    words = f"corrected by the value model the value would be {corrected:.4g}, {where}"
    return CORRECTION.diagnostic(reach, 1.0, "warn" if much else "pass", words)


APPROXIMATION = Check(
    "approximation",
    "coverage",
    LITTLE,
    "more rows; other features (features=); a learned value ('fqe') beside it",
    approximation,
)
CORRECTION = Check("correction", "coverage", LITTLE, "trust 'dr' more than 'emp'; look at both", correction)
