"""Differences between targets that the same episodes carry.

For a pair of targets with scores s_{ek} by m episodes e,

    value_k − value_l  ±  t_{level, m − 1} √ m/(m−1) Σ_e (s_{ek} − s_{el})²

which for similar targets is far narrower than what two separate intervals suggest (√(se_k² + se_l²)). Joint intervals
cover all pairs at once: t is replaced by the quantile of the largest |t| over pairs.

The pairs of k targets are k(k − 1)/2. Of more than ``MOST_PAIRED`` targets the best by its value is set against each of
the others, k − 1 differences. Which one that is was found on the same episodes, so their joint intervals hold for all
pairs none the less, by Bonferroni's bound.

What a logger earned by itself under the same estimand (:mod:`mixope.estimators.counts.on_policy`) has scores on its own
episodes and 0 on all others, so it stands beside the targets like one of them.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mixope.differences.joint import JointScores
from mixope.uncertainty import Difference, Interval, probability_positive, quantile, standard_error

MOST_PAIRED = 12
"""Up to so many targets, all pairs are compared; of more, each with the best."""
Pair = tuple[int, int]


def pairwise(joint: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every pair once, in the order of the targets."""
    return subtract(joint, list(combinations(range(len(joint.names)), 2)), level, seed)


def with_best(joint: JointScores, level: float, best: str | None = None) -> tuple[Difference, ...]:
    """The best less every other, in the order of their values; the intervals hold together for all pairs.

    The best is that of the highest value, or the one that is named: a value that was refused is no best.
    """
    order = joint.order
    first = order[0] if best is None else joint.names.index(best)
    others = [k for k in order if k != first]
    every = len(others) * (len(others) + 1) // 2
    together = quantile(1 - (1 - level) / every, joint.degrees)
    return _subtracted(joint, [(first, other) for other in others], level, together)


def against(joint: JointScores, others: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every target less every one of the others."""
    n = len(joint.names)
    pairs = [(i, n + j) for i in range(n) for j in range(len(others.names))]
    return subtract(joint.beside(others), pairs, level, seed)


def subtract(joint: JointScores, pairs: list[Pair], level: float, seed: int = 0) -> tuple[Difference, ...]:
    """These pairs, with intervals for each alone and for all together."""
    single = quantile(level, joint.degrees)
    together = single if len(pairs) == 1 else max(single, _largest_of_all(joint, pairs, level, seed))
    return _subtracted(joint, pairs, level, together)


def _subtracted(joint: JointScores, pairs: list[Pair], level: float, together: float) -> tuple[Difference, ...]:
    """These pairs, given the quantile for all of them together."""
    single = quantile(level, joint.degrees)
    alone = np.sqrt(np.diag(joint.covariance))
    found = []
    for i, j in pairs:
        error = _spread(joint, i, j)
        value = float(joint.values[i] - joint.values[j])
        if max(abs(value), error) <= joint.rounding:
            value = error = 0.0  # the same target, by another way
        found.append(
            Difference(
                first=joint.names[i],
                second=joint.names[j],
                value=value,
                standard_error=error,
                independent_standard_error=float(np.hypot(alone[i], alone[j])),
                interval=_around(value, single * error, level, "difference of clustered scores, t"),
                joint=_around(value, together * error, level, "difference of clustered scores, all pairs"),
                probability_better=probability_positive(value, error, joint.degrees),
            )
        )
    return tuple(found)


def _around(value: float, half: float, level: float, method: str) -> Interval:
    return Interval(value - half, value + half, level, method)


def _spread(joint: JointScores, i: int, j: int) -> float:
    return standard_error(joint.scores[:, i] - joint.scores[:, j])


def _largest_of_all(joint: JointScores, pairs: list[Pair], level: float, seed: int) -> float:
    """The quantile of max |t| over pairs."""
    draws, rounding = joint.draws(seed), joint.rounding
    largest = np.zeros(len(draws))
    for i, j in pairs:
        error = _spread(joint, i, j)
        if error > rounding:
            np.maximum(largest, np.abs(draws[:, i] - draws[:, j]) / error, out=largest)
    return float(np.quantile(largest, level))
