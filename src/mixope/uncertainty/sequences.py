"""Confidence sequences: intervals that hold at all times together, however often one looks.

An interval for one time holds the truth with its level at a time that was fixed in advance. Who looks every day and
stops when the interval excludes zero sees the worst of many intervals, and errs far more often. A confidence sequence
holds at *all* times at once, with probability ``level``, so that any rule for stopping may be used.

**Clustered scores.** The value's errors, times the information 1/se², are a Brownian motion in the information (the
central limit theorem for running sums of scores; for estimators whose information grows over time the canonical joint
law of group-sequential analysis). By Ville's inequality on Robbins' normal mixture, with α = 1 − level

    |θ̂ − θ|  ≤  se · √( (1 + 1/f) (log(1 + f) + 2 log 1/α) )     for all f > 0, with probability 1 − α

where f is proportional to the information (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit
theory and asymptotic confidence sequences", 2021; Robbins 1970). Here f = c · clock, where ``clock`` is the number of
episodes (or other amount of data) over the number *planned*, and c makes the multiple of se least at clock 1: there it
is 3.0 at 95 % (one look: 1.96); 3.8 at a tenth of the plan, 3.2 at ten times the plan. The plan must be fixed before
the data are seen. Assumed: scores of episodes are independent; the approximation is good from the first look on, so
that one does not look at a handful of episodes; and information grows no faster than the clock (if it grows more
slowly, looks are more alike than was reckoned with, and the sequence errs less often). The standard error is estimated:
the t law's multiple with the same tail stands for the normal one.

**Bounded rewards.** No approximation is needed where terms ξ_i ≥ 0 have the mean μ ≤ 1 given the past. With predictable
λ_i < 1 and m_i ≤ 1, and ψ(λ) = −log(1 − λ) − λ (Howard and others 2021; Waudby-Smith, Wu, Ramdas, Karampatziakis and
Mineiro, "Anytime-valid off-policy inference for contextual bandits", 2022),

    μ  ≥  ( Σ λ_i ξ_i − log 1/α − Σ ψ(λ_i) (ξ_i − m_i)² ) / Σ λ_i      for all n, with probability 1 − α

With ξ = w (r − low)/(high − low) and importance weights w that are known, not estimated, it bounds the value from
below; with w (high − r)/(high − low) from above. The weights need no bound.
"""

from __future__ import annotations

import numpy as np
from scipy.special import lambertw, ndtr, stdtrit

from mixope.base.arrays import FloatArray
from mixope.base.errors import UsageError
from mixope.uncertainty.clustered import Interval, degrees_of_freedom, standard_error

PLANNED = 1_000
"""Clusters at which the sequence is narrowest, where nobody plans: within a quarter of that from 100 to a million."""
ANYTIME = "anytime-valid"
LEAST_TAIL = 1e-12
"""Of an interval for one look: beyond seven standard errors there is nothing to lose, and numbers end."""
BOLDEST = 0.5
"""The largest bet λ."""


def boundary(clock: float, level: float) -> float:
    """How many standard errors the sequence reaches to each side when so much of what was planned is there."""
    alpha = 1.0 - level
    best = -float(lambertw(-(alpha**2) / np.e, -1).real) - 1.0
    f = best * clock
    return float(np.sqrt((1.0 + 1.0 / f) * (np.log1p(f) - 2.0 * np.log(alpha))))


def one_look_level(clock: float, level: float) -> float:
    """The level of the interval for one look that is as wide as the sequence is now."""
    return 1.0 - max(2.0 * float(ndtr(-boundary(clock, level))), LEAST_TAIL)


def sequence_reach(clock: float, level: float, degrees: float) -> float:
    """The multiple of an estimated standard error: that of the t law with the tail of the boundary."""
    return -float(stdtrit(degrees, float(ndtr(-boundary(clock, level)))))


def sequence_around(value: float, error: float, clock: float, level: float, degrees: float, said: str) -> Interval:
    """The sequence now, from a standard error."""
    half = sequence_reach(clock, level, degrees) * error
    return Interval(value - half, value + half, level, f"{said}, {ANYTIME}")


def sequence_interval(
    value: float, episode_scores: FloatArray, level: float, planned: int = PLANNED
) -> Interval | None:
    """The sequence after these episodes, narrowest at ``planned`` of them; nothing for fewer than two."""
    episodes = len(episode_scores)
    if episodes < 2 or not np.isfinite(value):
        return None
    error, degrees = standard_error(episode_scores), degrees_of_freedom(episode_scores)
    return sequence_around(value, error, episodes / planned, level, degrees, "clustered score")


def bounded_sequence(
    rewards: FloatArray, low: float, high: float, level: float = 0.95, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Ends of the sequence after each of these rewards, in the order in which they came; exact for any sample size.

    :param rewards: one number per independent unit (a decision, or the return of an episode), between ``low`` and
        ``high``, which are known in advance and not read off the data.
    :param weights: importance weights, target over logger, from propensities that were recorded; all 1 on policy.
    :returns: the lower and the upper ends; they only ever come closer.
    """
    earned = np.asarray(rewards, dtype=np.float64)
    weight = np.ones(len(earned)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not high > low or not bool(np.all((earned >= low) & (earned <= high))):
        raise UsageError(f"rewards must lie between low and high, got {low!r} and {high!r}, and rewards beyond them")
    if weight.shape != earned.shape or not bool(np.all(weight >= 0)):
        raise UsageError("weights are as many as rewards, and none is negative")
    share, tail = (earned - low) / (high - low), (1.0 - level) / 2.0
    least, most = lower_sequence(weight * share, tail), 1.0 - lower_sequence(weight * (1.0 - share), tail)
    return low + (high - low) * least, low + (high - low) * most


def lower_sequence(terms: FloatArray, alpha: float) -> FloatArray:
    """Lower ends for the mean, between 0 and 1, of terms that are not negative: none is ever too high but with α."""
    n = np.arange(1, len(terms) + 1)
    before = np.append(0.5, (0.5 + np.cumsum(terms)) / (n + 1.0))[:-1]
    guess = np.minimum(before, 1.0)
    spread = np.append(0.25, (0.25 + np.cumsum((terms - guess) ** 2)) / (n + 1.0))[:-1]
    bet = np.minimum(np.sqrt(2.0 * np.log(1.0 / alpha) / (spread * n * np.log(n + 1.0))), BOLDEST)
    cost = np.log(1.0 / alpha) + np.cumsum((-np.log1p(-bet) - bet) * (terms - guess) ** 2)
    found = (np.cumsum(bet * terms) - cost) / np.cumsum(bet)
    return np.clip(np.maximum.accumulate(found), 0.0, 1.0)
