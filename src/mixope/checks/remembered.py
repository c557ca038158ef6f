"""Do longer windows say something else than those that were used?

An estimator with memory has k rows in view, and its value was found for longer windows, too
(:mod:`mixope.estimators.memory`). With η_k used and η_l of l > k, the difference has the standard error of the
difference of their scores by episode or unit. What the state leaves out may show only over more steps than k: it is a
warning if some η_l lies more than half a half-width of the interval off, and two and a half standard errors (of several
k one lies two off by chance); a failure if it lies more than two half-widths off, and three standard errors. Windows
that rest on few episodes have no say.
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import Advice, Setting
from mixope.checks.check import WORLDS, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.ladder import error_of
from mixope.estimators.memory import FEWEST

WARN, FAIL = 0.5, 2.0
"""Half-widths."""
MOVES, SURELY = 2.5, 3.0
"""Standard errors."""


def longer_windows_agree(evidence: Evidence) -> Diagnostic | None:
    """The check of one estimate; None where nothing is remembered, or no longer window has a say."""
    ladder, interval = evidence.solution.ladder, evidence.interval
    if ladder is None or interval is None or not np.isfinite(interval.width):
        return None
    used = next(step for step in ladder.steps if step.memory == ladder.used)
    longer = [step for step in ladder.steps if step.memory > used.memory and step.effective >= FEWEST]
    if not longer:
        return None
    half, worst = max(interval.width / 2, 1e-300), None
    for step in longer:
        off, scores = abs(step.value - used.value), step.scores - used.scores
        error = error_of(scores if evidence.clusters is None else evidence.clusters.scores(scores))
        if off > MOVES * error and not evidence.is_rounding(off) and (worst is None or off > worst[0]):
            worst = off, off / max(error, 1e-300), step
    if worst is None:
        most = longer[-1].memory
        return LONGER.diagnostic(0.0, WARN, "pass", f"counting up to {most} steps together moves the value no further")
    off, deviates, step = worst
    said = (
        f"counting {step.memory} steps together moves the value from {used.value:.3g} to {step.value:.3g}"
        f" ({deviates:.1f} standard errors)"
    )
    return LONGER.graded(off / half, WARN, FAIL if deviates > SURELY else np.inf, said)


LONGER = Check(
    "longer memory",
    "data",
    WORLDS,
    Advice(
        "let the logs choose: ",
        Setting("memory", "auto"),
        "; or put what was done lately, or a finer record, into the state",
    ),
    longer_windows_agree,
)
