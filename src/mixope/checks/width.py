"""Does the interval say anything?

An interval that holds nearly every value that rewards and lengths allow is right whatever the truth is, and worth
nothing. What is possible of a value per step lies between the lowest and the highest reward; of an episode, between
what its first step alone can earn and what as many steps as the longest logged episode has can.
"""

from __future__ import annotations

from mixope.checks.check import LITTLE, Check
from mixope.checks.evidence import Evidence
from mixope.checks.value import rewards_of_a_step
from mixope.checks.verdicts import Diagnostic

MOST = 0.75
"""The share of what is possible that an interval may hold; docs/trust.md says how often healthy logs are beyond it."""


def interval_says_something(evidence: Evidence) -> Diagnostic | None:
    """The share of the possible values that the interval holds; None where there is but one, or no interval."""
    interval = evidence.interval
    if interval is None:
        return None
    low, high = possible(evidence)
    if not high > low or interval.high < low or interval.low > high:
        return None
    share = (min(interval.high, high) - max(interval.low, low)) / (high - low)
    what = "logged rewards and lengths" if evidence.estimand.kind == "episode" else "logged rewards"
    words = f"the interval holds {share:.0%} of the values that the {what} allow, {low:.6g} to {high:.6g}"
    said = f"{words}, so that it hardly says anything" if share > MOST else words
    return WIDTH.diagnostic(share, MOST, "warn" if share > MOST else "pass", said)


def possible(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest value that the question can have on such logs."""
    low, high = rewards_of_a_step(evidence)
    if evidence.estimand.kind != "episode":
        return low, high
    longest, gamma = float(evidence.survey.episodes.rows.max(initial=1.0)), evidence.estimand.discount
    steps = longest if gamma == 1.0 else (1.0 - gamma**longest) / (1.0 - gamma)
    return (low if low >= 0 else low * steps), (high if high <= 0 else high * steps)


WIDTH = Check(
    "interval width",
    "data",
    LITTLE,
    "more rows; a nearer target or a nearer horizon; it says nothing for or against the target",
    interval_says_something,
)
