"""Loggers that learned from their own rows: whether they did, and how much wider an interval must then be.

Means over such rows are biased (:mod:`mixope.requests.learning`), by up to two standard errors in the worlds of
``benchmarks/adaptive.py``, and nothing in the rows tells by how much: what is missing was never tried again. Of J
loggers that learn apart, the bias is that of one by J, because their luck is mixed, and the standard error that of one
by √J. So the scores are stretched by 1 + 1/√J, from a threshold that healthy logs pass in one of forty; the check
itself warns later.
"""

from __future__ import annotations

import numpy as np

from mixope.checks.check import WORLDS, Check
from mixope.checks.verdicts import Diagnostic

STRETCHED, WARN = 2.0, 3.0
"""Standard deviations from which intervals are wider, and from which the verdict asks for caution."""


def loggers_learned(followed: float | None) -> Diagnostic | None:
    """Whether loggers did again what had been lucky; None where nothing could tell."""
    if followed is None:
        return None
    words = (
        f"loggers repeated actions that happened to pay, by {followed:.1f} standard deviations more than chance: they"
        " seem to have learned from these rows, which biases the means"
        if followed > WARN
        else "the loggers' later actions do not follow chance in their earlier rewards"
    )
    return LEARNED.graded(followed, WARN, np.inf, words)


def stretch_of(followed: float | None, loggers: int) -> float:
    """The factor by which scores are stretched: 1 unless loggers learned; see docs/adaptive-loggers.md."""
    return 1.0 + 1.0 / float(np.sqrt(loggers)) if followed is not None and followed > STRETCHED else 1.0


def about_learning(followed: float | None, stretch: float) -> tuple[str, ...]:
    """What a reader should know of the interval."""
    if followed is None or followed <= STRETCHED:
        return ()
    said = f"loggers seem to have learned from their own rows ({followed:.1f} standard deviations), which biases means"
    if stretch > 1.0:
        return (f"{said}; the interval is {stretch:.3g} times as wide for it",)
    return (f"{said}; this interval does not know of it and covers less than it says, the automatic one is wider",)


LEARNED = Check(
    "loggers learned",
    "data",
    WORLDS,
    "the interval is already wider; log some actions at random, or evaluate rows of policies that were fixed before",
    judge_logs=lambda logs: loggers_learned(logs.sums.learning),
)
