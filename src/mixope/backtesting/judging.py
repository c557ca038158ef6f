"""How far is a prediction off, and are the predictions of all loggers together off by more than chance?

One logger: z = (predicted − earned) / √(se² of the prediction + se² of what was earned). Few episodes make a standard
error itself uncertain, so z is t with Welch's degrees of freedom; its *deviate* is as unlikely under the normal law.

All k loggers: Σ deviate². The predictions share their episodes, so they are not independent. Their errors are sums over
the same episodes, u_j(e) = score of the prediction where others logged e, minus the score of the earnings where j did,
which gives their correlations R. The mean of Σ deviate² is k and its variance 2 Σ R², as of k/ν times a χ² with

    ν = k² / Σ_{jl} R_jl²

degrees of freedom (Satterthwaite): ν is k if they are independent, and 1 if all err together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray
from mixope.checks.steadiness import normal_of_t
from mixope.estimators.counts.on_policy import OnPolicyValue
from mixope.requests.clusters import Clusters
from mixope.requests.episodes import EpisodeTotals
from mixope.uncertainty import few_clusters, quantile, standard_error

_EPISODES = 16_384
"""Episodes whose errors are laid side by side at a time."""


@dataclass(frozen=True)
class LoggerEarnings:
    """What a logger earned, and its scores by episode, with one more (:func:`earned`)."""

    value: float
    scores: FloatArray


@dataclass(frozen=True)
class Distance:
    """How far a prediction is off: in standard errors, as a normal deviate, and whether that is inside the level.

    ``errors`` are by episode of all loggers, in units of the standard error.
    """

    z: float
    deviate: float
    covered: bool
    errors: FloatArray


def earned(mine: EpisodeTotals, everybody: EpisodeTotals, horizon: int | None) -> LoggerEarnings:
    """The mean over T steps (nothing is earned after an end), or over all rows; and the scores of the episodes.

    A good logger may succeed in all of a few episodes and show no spread at all. So one more score is added, as of one
    episode with the spread of everybody's: it keeps the error from being nothing and vanishes with more data.
    """

    def steps_of(episodes: EpisodeTotals) -> FloatArray:
        return episodes.rows if horizon is None else np.full(len(episodes.rows), float(horizon))

    steps, all_steps = steps_of(mine), steps_of(everybody)
    value = float(mine.reward.sum() / steps.sum())
    spread = np.std(everybody.reward - everybody.reward.sum() / all_steps.sum() * all_steps)
    return LoggerEarnings(value, np.append(mine.reward - value * steps, spread) / steps.sum())


def earned_by(own: OnPolicyValue, everybody: OnPolicyValue | str) -> LoggerEarnings:
    """Under an estimand of its own, with the spread of everybody's episodes as one more score.

    ``everybody`` is the pool, whose scores have a share of 1 / episodes each; a logger's have that of its own episodes.
    """
    spread = 0.0 if isinstance(everybody, str) else float(np.std(everybody.scores)) * len(everybody.scores)
    return LoggerEarnings(own.value, np.append(own.scores[own.mine], spread / max(int(own.mine.sum()), 1)))


def distance(
    off: float,
    error: float,
    scores: FloatArray,
    own: FloatArray,
    mine: BoolArray,
    level: float,
    scale: float,
    clusters: Clusters | None = None,
) -> Distance:
    """Of a prediction that is ``off`` with a standard error of its own.

    ``scores`` are by episode of the others, ``own`` of the logger and one more, ``mine`` says which episodes it has. A
    difference that is rounding, relative to ``scale``, is none. Where episodes belong to units, both are by unit; a
    unit that has episodes on both sides errs on both.
    """
    if clusters is not None and clusters.named:
        return _by_unit(off, error, scores, own, mine, level, scale, clusters)
    others, itself = error**2, standard_error(own) ** 2
    both = math.sqrt(others + itself)
    errors = np.zeros(len(mine))
    if both > 0:
        errors[~mine], errors[mine] = scores / both, -own[:-1] / both
    if abs(off) <= 1e-9 * max(abs(scale), 1.0):
        return Distance(0.0, 0.0, True, errors)
    if both == 0:
        return Distance(math.copysign(math.inf, off), math.copysign(math.inf, off), False, errors)
    degrees = both**4 / (others**2 / max(len(scores) - 1, 1) + itself**2 / max(len(own) - 1, 1))
    deviate = normal_of_t(off / both, degrees)
    return Distance(off / both, deviate, abs(deviate) <= quantile(level, 0, "normal"), errors)


def _by_unit(
    off: float,
    error: float,
    scores: FloatArray,
    own: FloatArray,
    mine: BoolArray,
    level: float,
    scale: float,
    clusters: Clusters,
) -> Distance:
    """The same by unit: a prediction's error beyond that of its scores is one of approximation."""
    apart = np.zeros(len(mine))
    apart[~mine], apart[mine] = scores, -own[:-1]
    theirs, ours = clusters.scores(np.where(mine, 0.0, apart)), clusters.scores(np.where(mine, apart, 0.0))
    beyond = max(error**2 - standard_error(theirs) ** 2, 0.0) + float(own[-1]) ** 2
    both = math.sqrt(standard_error(theirs + ours) ** 2 + beyond)
    errors = (theirs + ours) / both if both > 0 else np.zeros(len(clusters))
    if abs(off) <= 1e-9 * max(abs(scale), 1.0):
        return Distance(0.0, 0.0, True, errors)
    if both == 0:
        return Distance(math.copysign(math.inf, off), math.copysign(math.inf, off), False, errors)
    deviate = normal_of_t(off / both, clusters.degrees or 1.0)
    return Distance(off / both, deviate, abs(deviate) <= quantile(level, 0, "normal"), errors)


def independent_predictions(distances: Sequence[Distance]) -> float:
    """ν: how many independent predictions these are worth."""
    if not distances:
        return 0.0
    episodes, alike = len(distances[0].errors), np.zeros((len(distances), len(distances)))
    for low in range(0, episodes, _EPISODES):
        errors = np.stack([found.errors[low : low + _EPISODES] for found in distances])
        alike += errors @ errors.T
    alike *= few_clusters(episodes)
    np.fill_diagonal(alike, 1.0)
    return float(len(distances) ** 2 / np.sum(np.clip(alike, -1.0, 1.0) ** 2))
