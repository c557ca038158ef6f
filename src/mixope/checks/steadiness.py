"""Is the value, and is the world, the same in early and late episodes, in early and late steps, in all episodes?

And is the value the same whoever logged the rows?

All of it comes from sums by episode that the interval needs anyway, at no further scan.

    value over episodes   mean score of the late half of every logger's episodes less that of the early half, in
                          standard deviations. A change of rewards or dynamics moves it by what it moves the value.
    value over loggers    the mean score of every logger's episodes, compared by Welch's test: each is zero up to
                          chance if all met the same world, also where states are not counted. Sees units or signs that
                          differ between loggers, and a logger whose failures were not kept.
    value over steps      Σ (t − t̄) score_t by episode. Scores have mean zero given the state, so a start-up effect
                          (states are other at the start) does not show; rewards or dynamics that depend on t do.
    world over episodes   the same halves compared on rewards and next states (:mod:`mixope.requests.probes`), by
                          Hotelling's T² = Dᵀ C⁻¹ D: sees changes that cancel in the value's first order.
    rewards over steps    Σ (t − t̄)(r − r̄) by episode, r̄ the mean reward of the transition.
    rewards by episode    Σ x / √ Σ x²,  x = (R² − Q) / (1 + ρ (N − 1))²: R² = (Σ (r − r̄))² exceeds Q = Σ (r − r̄)²
                          in the mean only if rewards of the same transition hang together within an episode: something
                          that is not in the state, such as who recorded them, matters. Over episodes with N ≥ 2 random
                          rewards: of a single one R² is Q. The weights are best if a share ρ of the variance is common.

Differences of halves are t with ν = episodes − 2 loggers degrees of freedom, and F for T²; both are turned into
standard deviations of a normal law, so that few episodes raise no false alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc, ndtri, stdtr

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.checks.check import WORLDS, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic
from mixope.requests.episodes import EpisodeSums
from mixope.requests.probes import EpisodeProbes
from mixope.uncertainty import standard_error

WARN, FAIL = 3.0, 10.0
"""Standard deviations; see the table in docs/trust.md."""
SHARED_WARN, SHARED_FAIL = 2.0, 10.0
LOGGERS_WARN, LOGGERS_FAIL = 2.5, 10.0
SHARED = 0.05
"""ρ: the share of the variance that is looked for; without weights a few long episodes decide."""
_LEAST_TAIL = 1e-300
LEAST = 3
"""Episodes that each half of a logger must have to be compared."""
ROUNDING = 1e-18
"""A variance of scores below this share of their squared mean is what floats leave."""
_MEANWHILE = "; the world may have changed meanwhile"
_HIDDEN = "; something that is not in the state depends on the step"


@dataclass(frozen=True)
class Halves:
    """Late less early, over loggers: the difference of every column, its covariance, its degrees of freedom."""

    difference: FloatArray
    covariance: FloatArray
    degrees: int


def logs_are_steady(sums: EpisodeSums) -> tuple[Diagnostic, ...]:
    """The checks of the logs, whatever was asked of them; none where nothing was counted."""
    if sums.probes is None:
        return ()
    clusters = sums.totals.clusters()
    parts, logger = clusters.within(sums.totals.logger)
    found = (
        world_over_episodes(sums.probes.summed(parts), logger),
        rewards_over_steps(sums.probes.summed(clusters), sums.mean_step),
        rewards_by_episode(sums.probes.summed(clusters), clusters.named),
    )
    return tuple(d for d in found if d is not None)


def value_is_steady(evidence: Evidence) -> tuple[Diagnostic, ...]:
    """The checks of one estimate, from its scores by episode; none where it has none, or where they are all zero."""
    scores, sums, by_step = evidence.scores, evidence.sums, evidence.by_step
    if scores is None or sums is None or not np.isfinite(scores).all():
        return ()
    if evidence.solution.degrees is not None:  # scores of folds, which tell nothing of single episodes
        return ()
    if evidence.is_rounding(standard_error(scores)):  # nothing is left to chance, and rounding is no drift
        return ()
    logger, rows = sums.totals.logger, sums.rows
    if evidence.clusters is not None and evidence.clusters.named and evidence.solution.scores is not None:
        parts, logger = evidence.clusters.within(logger)
        scores, rows = parts.sums(evidence.solution.scores.by_cluster), parts.sums(rows)
        by_step = None if by_step is None else parts.sums(by_step)
    found = [value_over_episodes(scores, logger), value_over_loggers(scores, logger)]
    if by_step is not None and np.isfinite(by_step).all():
        found.append(value_over_steps(by_step, scores, rows, sums.mean_step))
    return tuple(d for d in found if d is not None)


def value_over_episodes(scores: FloatArray, logger: IntArray) -> Diagnostic | None:
    """Whether early and late episodes give the same value; None where they are too few."""
    found = compare_halves(scores[:, None], logger)
    if found is None:
        return None
    variance = float(found.covariance[0, 0])
    z = normal_of_t(float(found.difference[0]) / np.sqrt(variance), found.degrees) if variance > 0 else 0.0
    return _judged(VALUE_OVER_EPISODES, z, "early and late episodes {}give the same value", _MEANWHILE)


def value_over_loggers(scores: FloatArray, logger: IntArray) -> Diagnostic | None:
    """Whether all loggers' episodes give the same value; None where fewer than two loggers have enough of them."""
    parts = [scores[logger == j] for j in np.unique(logger)]
    parts = [part for part in parts if len(part) >= 2 * LEAST]
    if len(parts) < 2 or not any(part.any() for part in parts):
        return None
    z = welch(parts)
    bad = z > LOGGERS_WARN
    said = f"the rows of all loggers {'do not ' if bad else ''}give the same value ({z:.1f} standard deviations)"
    cause = "; a unit, a label, or which episodes were kept may differ between them" if bad else ""
    return VALUE_OVER_LOGGERS.graded(z, LOGGERS_WARN, LOGGERS_FAIL, said + cause)


def welch(parts: Sequence[FloatArray]) -> float:
    """Welch's analysis of variance: whether means are equal, variances being what they are, in standard deviations.

    No variance is taken for less than half the common one: of something rare, a few episodes may show none at all.
    """
    k, n = len(parts), np.array([len(part) for part in parts], dtype=np.float64)
    mean, variance = np.array([part.mean() for part in parts]), np.array([part.var(ddof=1) for part in parts])
    common = float((n - 1.0) @ variance / np.sum(n - 1.0))
    if common <= ROUNDING * float(np.max(mean**2)):
        return 0.0
    weight = n / np.maximum(variance, common / 2)
    share = weight / weight.sum()
    unsure = float(np.sum((1.0 - share) ** 2 / (n - 1.0)))
    between = float(weight @ (mean - share @ mean) ** 2) / (k - 1)
    f = between / (1.0 + 2.0 * (k - 2) / (k**2 - 1) * unsure)
    return normal_of_f(f, k - 1, (k**2 - 1) / (3.0 * unsure))


def value_over_steps(by_step: FloatArray, scores: FloatArray, rows: FloatArray, steps: float) -> Diagnostic | None:
    """Whether early and late steps do; ``by_step`` is Σ t score_t by episode, ``steps`` the mean of t over all rows."""
    z = trend(by_step - steps * scores) if rows.max(initial=0.0) > 1 else None
    if z is None:
        return None
    return _judged(VALUE_OVER_STEPS, z, "early and late steps of the episodes {}give the same value", _HIDDEN)


def rewards_over_steps(probes: EpisodeProbes, steps: float) -> Diagnostic | None:
    """Whether the same transition earns the same at early and late steps; None where rewards are certain."""
    z = trend(probes.reward_by_step - steps * probes.reward)
    if z is None:
        return None
    return _judged(REWARDS_OVER_STEPS, z, "the same transitions {}earn the same at early and late steps", _HIDDEN)


def trend(by_episode: FloatArray) -> float | None:
    """The sum of what has mean zero in every episode, in standard deviations; None where there is nothing to judge."""
    spread = float(np.sqrt(by_episode @ by_episode))
    if len(by_episode) < 2 * LEAST or spread == 0:
        return None
    return normal_of_t(float(by_episode.sum()) / spread, len(by_episode) - 1)


def world_over_episodes(probes: EpisodeProbes, logger: IntArray) -> Diagnostic | None:
    """Whether early and late episodes met the same rewards and next states."""
    columns = np.column_stack([probes.reward, probes.moves])
    found = compare_halves(columns, logger)
    if found is None:
        return None
    z = hotelling(found)
    bad = z > WARN
    words = "met different rewards or next states" if bad else "met the same rewards and next states"
    said = f"early and late episodes {words} ({z:.1f} standard deviations){_MEANWHILE if bad else ''}"
    return WORLD.graded(z, WARN, FAIL, said)


def rewards_by_episode(probes: EpisodeProbes, units: bool = False) -> Diagnostic | None:
    """Whether rewards of the same transition hang together within episodes, or within units where there are such.

    None where too few have two random ones.
    """
    several = probes.n_random >= 2
    excess = ((probes.reward**2 - probes.reward_squared) / (1.0 + SHARED * (probes.n_random - 1.0)) ** 2)[several]
    spread = float(np.sqrt(excess @ excess))
    if spread == 0 or len(excess) < 2 * LEAST:
        return None
    z, who = float(excess.sum()) / spread, "unit" if units else "episode"
    return BY_EPISODE.graded(
        z,
        SHARED_WARN,
        SHARED_FAIL,
        f"rewards of the same transition differ as much within {who}s as between them"
        if z <= SHARED_WARN
        else f"rewards of the same transition differ from {who} to {who}, by {z:.1f} standard deviations; something"
        " that is not in the state, such as who recorded them, matters",
    )


def compare_halves(columns: FloatArray, logger: IntArray) -> Halves | None:
    """The late half of every logger's episodes, in the order of their ids, less the early half, weighted by size."""
    late, usable = late_half(logger)
    width, degrees = columns.shape[1], 0
    difference, covariance = np.zeros(width), np.zeros((width, width))
    for j in np.unique(logger[usable]):
        mine = logger == j
        early_part, late_part = columns[mine & ~late], columns[mine & late]
        a, b = len(early_part), len(late_part)
        weight = a * b / (a + b)
        difference += weight * (late_part.mean(axis=0) - early_part.mean(axis=0))
        spread = _scatter(late_part) / (b * (b - 1)) + _scatter(early_part) / (a * (a - 1))
        covariance += weight**2 * spread
        degrees += a + b - 2
    return Halves(difference, covariance, degrees) if degrees else None


def late_half(logger: IntArray) -> tuple[BoolArray, BoolArray]:
    """Which episodes are in the late half of their logger's, and which belong to a logger that has enough."""
    late, usable = np.zeros(len(logger), dtype=bool), np.zeros(len(logger), dtype=bool)
    for j in np.unique(logger):
        mine = np.flatnonzero(logger == j)
        late[mine[(len(mine) + 1) // 2 :]] = True
        usable[mine] = len(mine) >= 2 * LEAST
    return late, usable


def hotelling(halves: Halves) -> float:
    """T² in standard deviations. Columns are scaled first; one that only differs between halves is not divided by 0."""
    scale = np.sqrt(np.diag(halves.covariance) + halves.difference**2)
    known = scale > 0
    width = int(known.sum())
    if width == 0:
        return 0.0
    d = halves.difference[known] / scale[known]
    c = halves.covariance[np.ix_(known, known)] / np.outer(scale[known], scale[known]) + 1e-6 * np.eye(width)
    squared, rest = float(d @ np.linalg.solve(c, d)), halves.degrees - width + 1
    return normal_of_f(squared * rest / (halves.degrees * width), width, rest) if rest > 0 else 0.0


def normal_of_t(t: float, degrees: float) -> float:
    """The normal deviate as unlikely as t; beyond 37 standard deviations a float cannot tell."""
    return float(np.copysign(-ndtri(max(float(stdtr(degrees, -abs(t))), _LEAST_TAIL)), t))


def normal_of_f(f: float, above: float, below: float) -> float:
    """The normal deviate as unlikely as F with these degrees of freedom."""
    return float(-ndtri(min(max(float(fdtrc(above, below, max(f, 0.0))), _LEAST_TAIL), 1.0 - 1e-16)))


def _scatter(part: FloatArray) -> FloatArray:
    centred = part - part.mean(axis=0)
    return np.asarray(centred.T @ centred)


def _judged(check: Check, z: float, claim: str, cause: str) -> Diagnostic:
    """A claim that holds within chance, or its negation and what may be the cause."""
    bad = abs(z) > WARN
    said = f"{claim.format('do not ' if bad else '')} ({z:+.1f} standard deviations){cause if bad else ''}"
    return check.graded(abs(z), WARN, FAIL, said)


WHAT_CHANGED = "find the date; evaluate the rows of the world that will be"
THE_STEP = "put the step, or what it stands for, into the state"
WORLD = Check(
    "world over episodes", "stationarity", WORLDS, WHAT_CHANGED, judge_logs=lambda logs: logs_are_steady(logs.sums)
)
REWARDS_OVER_STEPS = Check("rewards over steps", "stationarity", WORLDS, THE_STEP)
BY_EPISODE = Check(
    "rewards by episode", "data", WORLDS, "put what moves whole episodes (a user, a device, a day) into the state"
)
VALUE_OVER_EPISODES = Check("value over episodes", "stationarity", WORLDS, WHAT_CHANGED, value_is_steady)
VALUE_OVER_LOGGERS = Check(
    "value over loggers",
    "stationarity",
    WORLDS,
    "evaluate one logger's rows, or put what differs into the state",
)
VALUE_OVER_STEPS = Check("value over steps", "stationarity", WORLDS, THE_STEP)
