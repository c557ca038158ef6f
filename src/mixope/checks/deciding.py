"""Do enough events decide?

Where one row in thousands pays, or three episodes end, the value hangs on a handful of events, and nobody knows how
many there would be next time. Intervals allow for the skewness of such scores (:mod:`mixope.uncertainty.clustered`),
but not for events of which none was seen.

    deciding episodes   N = 1/γ², γ the skewness of the mean of the episodes' scores: N events of one size have
                        γ = 1/√N. Of m symmetric scores it is about m²/6, so that few episodes alone do not make it
                        small. On vectors, where an episode may stand out only because a fit that has not seen it is far
                        off there, the fit on all rows may say that it does not.
    rare rewards        on vectors, where nearly all rows earn the same: what the others are worth to the target, in
                        rows. Chance among a few events is larger than their spread between episodes.
    rare ends           the total of an episode is the worth of a step over the chance that it is the last. With few
                        ends that chance is hardly known, and its inverse less so: the ends of the weighted logs count
                        as (Σ w)²/Σ w² over the terminated rows. If they decide, the standard error is the value over
                        the root of their number; where it is smaller, something else tells the length (most episodes
                        begin near their end), and (value / standard error)² counts instead.
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import Advice, Setting
from mixope.checks.check import FAR, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic
from mixope.requests.skewness import deciding_events
from mixope.uncertainty import standard_error

FEWEST_EPISODES = 40
"""Of fewer, one that stands out among healthy ones would look like a rare event."""
LEAST = 3
"""Events below which the interval cannot be trusted; see docs/trust.md."""
ENDS = 10
ROWS = 30


def few_decide(evidence: Evidence) -> Diagnostic | None:
    """How many events of one size would make scores as skewed; None where there are too few episodes to tell."""
    scores, uncertainty = evidence.scores, evidence.uncertainty
    if scores is None or uncertainty.n_blocks is not None or evidence.solution.degrees is not None:
        return None
    if len(scores) < FEWEST_EPISODES or not np.isfinite(scores).all() or evidence.is_rounding(standard_error(scores)):
        return None
    worth = max(deciding_events(scores), evidence.measures.deciding_events or 0.0)
    words = (
        f"the interval rests on about {worth:.1f} events; with fewer than {LEAST}, which chance may double or leave"
        " out, no interval can be trusted"
        if worth < LEAST
        else f"the value does not hang on a few events: its scores are as skewed as those of {worth:,.0f} equal ones"
    )
    return DECIDING.graded(worth, LEAST, -np.inf, words, high_is_bad=False)


def rare_rewards(evidence: Evidence) -> Diagnostic | None:
    """What rows that earn otherwise than the rest are worth; None where rewards differ more than that."""
    worth = evidence.measures.rare_rewards
    if worth is None:
        return None
    words = f"nearly all rows earn the same; those that do not are worth {worth:,.0f} rows to the target" + (
        f"; of fewer than {ROWS} no interval can tell how often they happen" if worth < ROWS else ""
    )
    return RARE_REWARDS.graded(worth, ROWS, -np.inf, words, high_is_bad=False)


def rare_ends(evidence: Evidence) -> Diagnostic | None:
    """How many ends the weighted logs are worth; None where the answer does not hang on them."""
    if not evidence.estimand.needs_ends:
        return None
    ends, error = _ends_behind(evidence), evidence.uncertainty.standard_error
    if ends is None or not error or not np.isfinite(evidence.value):
        return None
    worth = max(ends, (evidence.value / error) ** 2)
    words = f"the ends of episodes that the target reaches are worth {ends:,.1f}" + (
        f"; with fewer than {ENDS} nobody can tell how long its episodes are" if worth < ENDS else ""
    )
    return RARE_ENDS.graded(worth, ENDS, -np.inf, words, high_is_bad=False)


def _ends_behind(evidence: Evidence) -> float | None:
    measured = evidence.measures.effective_ends
    return measured if evidence.readings.effective_ends is None else evidence.readings.effective_ends


RARE_REWARDS = Check(
    "rare rewards", "data", FAR, "log more of the rare event, or make its chance the reward", rare_rewards
)
DECIDING = Check(
    "deciding episodes",
    "data",
    FAR,
    "log more of the rare event, or make its chance the reward; do not read the value before the event has come a few"
    " times",
    few_decide,
)
RARE_ENDS = Check(
    "rare ends",
    "data",
    FAR,
    Advice(
        "follow episodes longer; ask for a discounted value (", Setting("estimand", "discounted"), "), or for a horizon"
    ),
    rare_ends,
)
