"""Can the value be what it is said to be?

known bias     a method that is known to be biased on logs like these
interval       a value without an error bar is never trustworthy; one that is no number, or has none beside it, is
               no answer
reward range   a mean of rewards lies among the rewards, a sum of them among the sums of that many. A value that was
               corrected by a model can lie beyond by chance, so that it is the interval which must reach there. One
               whose weights are not normalised is not moved there (:mod:`mixope.checks.possible`), and asks for
               caution
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import Advice, Setting
from mixope.checks.check import LITTLE, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic


def known_bias(evidence: Evidence) -> Diagnostic | None:
    """Whether the method is known to be biased here."""
    bias = evidence.solution.known_bias
    return None if bias is None else BIAS.diagnostic(1.0, 0.0, "warn", bias)


def has_interval(evidence: Evidence) -> Diagnostic | None:
    """Whether there is an interval, and the value and its ends are numbers; None where that is so."""
    interval = evidence.interval
    ends = (evidence.value,) if interval is None else (evidence.value, interval.low, interval.high)
    if not np.all(np.isfinite(ends)):
        said = "the value is" if not np.isfinite(evidence.value) else "the ends of the interval are"
        return INTERVAL.diagnostic(0.0, 1.0, "fail", f"{said} not finite: the logs do not bound it", "at least")
    if interval is not None:
        return None
    because = evidence.uncertainty.because or "there are no scores"
    return INTERVAL.diagnostic(0.0, 1.0, "warn", Advice("there is no interval: ", because), "at least")


def reward_range(evidence: Evidence) -> Diagnostic:
    """Whether the value lies where rewards like those logged can lead."""
    low, high = _possible(evidence)
    value, interval = evidence.value, evidence.interval
    slack = 1e-9 * max(abs(value), 1.0)
    inside = low - slack <= value <= high + slack
    reaches = interval is not None and interval.low <= high + slack and interval.high >= low - slack
    where = "lies inside" if inside else "lies outside, by chance," if reaches else "lies OUTSIDE"
    return RANGE.diagnostic(
        value,
        high if value > high else low,
        "pass" if inside or (reaches and evidence.solution.normalised) else "warn" if reaches else "fail",
        f"the value {where} {_what_is_possible(evidence, low, high)}",
        "at most" if value > high else "at least",
    )


def _possible(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest value; of an episode, what its steps can earn, of which there is at least one.

    Their number is known from counts. On features it is an estimate like the value, so that the most that a discount
    allows stands in for it.
    """
    low, high = rewards_of_a_step(evidence)
    if evidence.estimand.kind != "episode":
        return low, high
    steps = None if evidence.on_features else evidence.measures.episode_length
    if steps is not None:
        return low * steps, high * steps
    most = evidence.estimand.forever if evidence.estimand.discount < 1.0 else np.inf
    return (low if low >= 0 else low * most), (high if high <= 0 else high * most)


def rewards_of_a_step(evidence: Evidence) -> tuple[float, float]:
    """The lowest and the highest; after an end that is absorbing a step earns 0, though no row says so."""
    low, high = evidence.survey.lowest, evidence.survey.highest
    return (min(low, 0.0), max(high, 0.0)) if _counts_steps_after_an_end(evidence) else (low, high)


def _counts_steps_after_an_end(evidence: Evidence) -> bool:
    per_step = not evidence.estimand.restarts and evidence.estimand.kind != "episode"
    return per_step and bool((evidence.survey.episodes.ended > 0).any())


def _what_is_possible(evidence: Evidence, low: float, high: float) -> str:
    if evidence.estimand.kind == "episode":
        return f"what an episode can earn by the logged rewards, {low:.6g} to {high:.6g}"
    after = " (0 is earned after an end)" if _counts_steps_after_an_end(evidence) else ""
    return f"the logged rewards, {low:g} to {high:g}{after}"


BIAS = Check("known bias", "data", LITTLE, "use the estimator that the sentence names", known_bias)
INTERVAL = Check(
    "interval",
    "data",
    LITTLE,
    Advice(Setting("interval", "bca"), ", or 'dr' or 'emp', which have scores"),
    has_interval,
)
RANGE = Check("reward range", "data", LITTLE, "more rows; the target is too far away", reward_range)
