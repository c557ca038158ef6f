"""Do enough rows carry the answer, and do their weights add up?

effective sample size   (Σw)²/Σw², in rows; a plug-in value weighs nothing
largest weight          one row, or one episode, should not decide
cut weights             ratios above e¹⁵, calibrations below 0 and densities above a million are cut
mean weight             weights that are right account for all of the mass, and no more; ratios on counts do by
                        construction
leaked mass             state–action ratios lose mass where the target takes an action that was not logged
"""

from __future__ import annotations

from dataclasses import replace

from mixope.checks.check import FAR, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic

ROWS = 100, 10
HEAVIEST = 0.05, 0.25
CUT = 0.02, 0.2
OFF = 0.2, 0.5
LEAKED = 0.005, 0.10
"""Where each warns, and where it fails; see docs/trust.md."""


def effective_sample_size(evidence: Evidence) -> Diagnostic | None:
    """How many rows of the target's own the weighted logs are worth."""
    size, n = evidence.effective_sample_size, evidence.survey.n_rows
    if size is None:
        return None
    words = f"the weighted logs are worth {size:,.0f} of {n:,} rows ({size / max(n, 1):.1%})"
    return SAMPLE_SIZE.graded(size, *ROWS, words, high_is_bad=False)


def largest_weight(evidence: Evidence) -> Diagnostic | None:
    """The share of the heaviest row, or episode."""
    share = evidence.largest_share
    if share is None:
        return None
    unit = "row" if evidence.measures.effective_episodes is None else "episode"
    return LARGEST.graded(share, *HEAVIEST, f"the heaviest {unit} carries {share:.2%} of all weight")


def cut_weights(evidence: Evidence) -> Diagnostic | None:
    """The share of rows whose weight was cut; None where none was."""
    if not evidence.n_cut:
        return None
    share = evidence.n_cut / max(evidence.survey.n_rows, 1)
    words = (
        f"the weights of {evidence.n_cut:,.0f} rows ({share:.2%}) were cut: ratios above e¹⁵, calibrations below zero,"
        " densities above a million"
    )
    return CUT_WEIGHTS.graded(share, *CUT, words)


def mean_weight(evidence: Evidence) -> Diagnostic | None:
    """How much of the mass the weights account for."""
    mean = evidence.measures.mean_weight
    if mean is None:
        return None
    words = f"the weights add up to {mean:.3g} of what they should"
    return replace(MEAN.graded(abs(mean - 1.0), *OFF, words), value=mean, bound="within")


def leaked_mass(evidence: Evidence) -> Diagnostic | None:
    """The mass that goes to actions never logged."""
    mass = evidence.measures.leaked_mass
    if mass is None:
        return None
    return LEAKS.graded(mass, *LEAKED, f"{mass:.2%} of the mass leaks into actions that were never logged")


SAMPLE_SIZE = Check(
    "effective sample size",
    "weights",
    FAR,
    "ask about a policy in between (Mixture([old, new], [0.5, 0.5]), Softened); log more; pool all loggers ('emp',"
    " 'dr')",
    effective_sample_size,
)
LARGEST = Check(
    "largest weight",
    "weights",
    FAR,
    "look at the heaviest rows, they may be errors; ask about a policy in between; log more; pool all loggers ('emp',"
    " 'dr')",
    largest_weight,
)
CUT_WEIGHTS = Check(
    "cut weights",
    "weights",
    FAR,
    "treat the value as biased towards the logs; ask about a nearer target",
    cut_weights,
)
MEAN = Check(
    "mean weight",
    "stationarity",
    FAR,
    "another estimator ('dr'), a nearer target; on trajectories a shorter horizon",
    mean_weight,
)
LEAKS = Check("leaked mass", "stationarity", FAR, "prefer 'dr'; log these actions", leaked_mass)
