"""Scores side by side, and what follows from them.

Scores s_{ek} of episode e for target k have the covariance Σ_e s_{ek} s_{el}. For a pair,

    value_k − value_l  ±  t_{level, episodes − 1} √ Σ_e (s_{ek} − s_{el})²

which for similar targets is far narrower than what two separate intervals suggest (√(se_k² + se_l²)). Joint intervals
cover all pairs at once: t is replaced by the quantile of the largest |t| over pairs. Probabilities and ranks come from
draws of a multivariate t around the values.

What a logger earned, m_j = Σ_e R_e / Σ_e n_e over its own episodes, has the score (R_e − m_j n_e) / Σ n on these and 0
on all others, so it stands beside the targets like one of them. n_e is the length of the episode, or the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import stdtr

from mixope.arrays import FloatArray
from mixope.differences.records import Difference, Ranking
from mixope.intervals import Interval, quantile, standard_error
from mixope.statistics.episodes import EpisodeTotals

DRAWS = 20_000
Pair = tuple[int, int]


@dataclass(frozen=True)
class JointScores:
    """Values of several targets and their scores by cluster (clusters × targets)."""

    names: tuple[str, ...]
    values: FloatArray
    scores: FloatArray

    @property
    def degrees(self) -> int:
        """Of freedom of the t law."""
        return len(self.scores) - 1

    @property
    def covariance(self) -> FloatArray:
        """Σ_e s_e s_eᵀ."""
        return np.asarray(self.scores.T @ self.scores)

    def draws(self, n: int, seed: int) -> FloatArray:
        """Deviations of the values from the truth by the multivariate t law, shape (n, targets)."""
        generator = np.random.default_rng([seed, 17])
        spread, directions = np.linalg.eigh(self.covariance)
        normal = generator.standard_normal((n, len(self.values)))
        scale = np.sqrt(self.degrees / generator.chisquare(self.degrees, size=(n, 1)))
        return np.asarray((normal * np.sqrt(np.maximum(spread, 0.0))) @ directions.T * scale)

    def beside(self, other: JointScores) -> JointScores:
        """Both, on the same clusters."""
        return JointScores(
            (*self.names, *other.names),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.scores, other.scores], axis=1),
        )


def logged_means(totals: EpisodeTotals, loggers: Mapping[str, int], horizon: int | None) -> JointScores:
    """What these loggers (labels and numbers) earned a step, with scores; nothing is earned after an end."""
    steps = totals.rows if horizon is None else np.full(len(totals.rows), float(horizon))
    values, columns = [], []
    for number in loggers.values():
        mine = (totals.logger == number).astype(np.float64)
        size = float(mine @ steps)
        mean = float(mine @ totals.reward) / size
        values.append(mean)
        columns.append(mine * (totals.reward - mean * steps) / size)
    return JointScores(tuple(loggers), np.array(values), np.stack(columns, axis=1))


def pairwise(joint: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every pair once, in the order of the targets."""
    return subtract(joint, list(combinations(range(len(joint.names)), 2)), level, seed)


def against(joint: JointScores, others: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every target less every one of the others."""
    n = len(joint.names)
    pairs = [(i, n + j) for i in range(n) for j in range(len(others.names))]
    return subtract(joint.beside(others), pairs, level, seed)


def subtract(joint: JointScores, pairs: list[Pair], level: float, seed: int = 0) -> tuple[Difference, ...]:
    """These pairs, with intervals for each alone and for all together."""
    spread = [standard_error(joint.scores[:, i] - joint.scores[:, j]) for i, j in pairs]
    single = quantile(level, joint.degrees)
    together = single if len(pairs) == 1 else max(single, _largest_of_all(joint, pairs, spread, level, seed))
    alone = np.sqrt(np.diag(joint.covariance))
    found = []
    for (i, j), error in zip(pairs, spread, strict=True):
        value = float(joint.values[i] - joint.values[j])
        found.append(
            Difference(
                first=joint.names[i],
                second=joint.names[j],
                value=value,
                standard_error=error,
                independent_standard_error=float(np.hypot(alone[i], alone[j])),
                interval=_around(value, single * error, level, "difference of clustered scores, t"),
                joint=_around(value, together * error, level, "difference of clustered scores, all pairs"),
                probability_first_is_better=_probability_positive(value, error, joint.degrees),
            )
        )
    return tuple(found)


def _around(value: float, half: float, level: float, method: str) -> Interval:
    return Interval(value - half, value + half, level, method)


def _largest_of_all(joint: JointScores, pairs: list[Pair], spread: list[float], level: float, seed: int) -> float:
    """The quantile of max |t| over pairs."""
    draws = joint.draws(DRAWS, seed)
    largest = np.zeros(len(draws))
    for (i, j), error in zip(pairs, spread, strict=True):
        if error > 0:
            np.maximum(largest, np.abs(draws[:, i] - draws[:, j]) / error, out=largest)
    return float(np.quantile(largest, level))


def _probability_positive(value: float, error: float, degrees: int) -> float:
    if error == 0.0:
        return 0.5 if value == 0.0 else float(value > 0.0)
    return float(stdtr(degrees, value / error))


def rank(joint: JointScores, level: float, seed: int = 0) -> tuple[Ranking, ...]:
    """Places by draws around the values, best first; the same seed gives the same probabilities.

    Equal ones share their places: those whose draws do not differ are ordered by a coin.
    """
    believed = joint.values + joint.draws(DRAWS, seed)
    scale = np.abs(believed).max(axis=0, initial=1.0)
    coin = np.random.default_rng([seed, 18]).random(believed.shape)
    order = np.lexsort((coin, -np.round(believed / scale.max(), 12)), axis=1)
    place = np.argsort(order, axis=1, kind="stable") + 1
    errors = np.sqrt(np.diag(joint.covariance))
    found = []
    for k, name in enumerate(joint.names):
        low, high = np.quantile(place[:, k], [0.5 - level / 2, 0.5 + level / 2], method="inverted_cdf")
        found.append(
            Ranking(
                target=name,
                value=float(joint.values[k]),
                standard_error=float(errors[k]),
                probability_best=float(np.mean(place[:, k] == 1)),
                expected_rank=float(place[:, k].mean()),
                low=int(low),
                high=int(high),
                ranks=tuple(float(np.mean(place[:, k] == p)) for p in range(1, len(joint.names) + 1)),
            )
        )
    return tuple(sorted(found, key=lambda r: -r.value))
