"""Which targets to take: the place of each, the probability that it is the best, and what is lost if a few are taken.

All of it rests on the joint law of the values (:mod:`mixope.differences.joint`). With v the values, θ the truths,
s_{ij} the standard error of v_i − v_j, and K targets:

    places     i is surely better than j where v_i − v_j > q s_{ij}, with q the quantile of the largest |t| over all
               pairs. A place is 1 + how many are surely better, to K − how many are surely worse; the places of all
               targets hold together (Mogstad, Romano, Shaikh and Wilhelm, 2024).
    the best   if i is the best, then v_j − v_i ≤ q_i s_{ij} for all j at the level, with q_i the quantile of the
               largest t of the others less i. Those of which that can be said hold the best at the level (Hsu, 1984).
               It is one question and not one for every pair, so q_i is smaller than q.
    regret     of the k highest values S, θ_best − max_{i∈S} θ_i. If b is the best, then for all i together
               θ_b − θ_i ≤ v_b − v_i + q_b s_{bi}, so that the regret is at most

                   max_{b∉S} [ min_{i∈S} (v_b − v_i + q_b s_{bi}) ]₊

               for all k together, and although S was chosen on the same episodes: the best is the same whatever was
               chosen. So the bound has no winner's curse.
    expected   the mean of the regret, and the probability of being the best, by draws of θ around v: given these
               estimates, and if all truths were equally likely beforehand (a flat prior). The quantile of these draws
               is no bound: of 20 targets of which one is better by a standard error of a difference it covers 70 % for
               k = 3, where the bound above covers at least 95 %.

Scores say nothing of bias. Who is ranked at all is decided where estimates are known
(:mod:`mixope.differences.by_estimator`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from mixope.base.arrays import FloatArray
from mixope.differences.joint import JointScores
from mixope.differences.pairs import MOST_PAIRED
from mixope.differences.records import Rank, Regret
from mixope.uncertainty import few_clusters, quantile

MOST_JOINT = 40
"""Of more targets than this the quantiles are Bonferroni's bounds: the work grows with the square of the targets."""
MOST_TAKEN = 5
"""Up to so many targets are taken."""


@dataclass(frozen=True)
class Contest:
    """Targets, best value first, and all that places and regret rest on.

    ``gaps`` and ``errors`` are v_i − v_j and s_{ij}, both 0 where two targets are the same; ``first`` is the first
    target that is the same as this one. ``pairs`` is q, ``best`` has the q_i, ``values`` the quantile that holds for
    all values together.
    """

    joint: JointScores
    gaps: FloatArray
    errors: FloatArray
    first: NDArray[np.intp]
    believed: FloatArray
    pairs: float
    best: FloatArray
    values: float

    @property
    def ahead(self) -> NDArray[np.bool_]:
        """Row i: those that i is surely better than."""
        return np.asarray(self.gaps > self.pairs * self.errors)

    @property
    def may_be_best(self) -> NDArray[np.bool_]:
        """Those that cannot be told apart from the best."""
        return np.asarray((self.gaps + self.best[:, None] * self.errors >= 0.0).all(axis=1))


def contest(joint: JointScores, level: float, seed: int = 0) -> Contest:
    """The joint law of these targets, whatever the order in which they come."""
    ordered = joint.take(joint.order)
    gaps, errors = ordered.values[:, None] - ordered.values[None, :], _errors(ordered)
    same = (np.abs(gaps) <= ordered.rounding) & (errors <= ordered.rounding)
    gaps[same] = errors[same] = 0.0
    first = np.argmax(same, axis=1)
    draws = ordered.draws(seed)[:, first]
    return Contest(
        ordered, gaps, errors, first, ordered.values[first] + draws, *_quantiles(ordered, errors, draws, level)
    )


def _errors(joint: JointScores) -> FloatArray:
    """s_{ij}, from differences of scores: differences of variances would lose what is small."""
    m = few_clusters(len(joint.scores))
    squares = [((joint.scores - joint.scores[:, [k]]) ** 2).sum(axis=0) for k in range(len(joint.names))]
    return np.sqrt(m * np.stack(squares))


def _quantiles(
    joint: JointScores, errors: FloatArray, draws: FloatArray, level: float
) -> tuple[float, FloatArray, float]:
    """Of all pairs, of the others less each one, and of all values: drawn, but no less than that of one alone.

    Nor are they more than Bonferroni's bound, so that of two targets they are exact.
    """
    k, degrees = len(joint.names), joint.degrees
    pairs, others = max(k * (k - 1) // 2, 1), max(k - 1, 1)
    alone, every = quantile(level, degrees), quantile(1 - (1 - level) / pairs, degrees)
    one_side = quantile(2 * level - 1, degrees), quantile(1 - 2 * (1 - level) / others, degrees)
    own = np.sqrt(np.diag(joint.covariance))
    known = own > joint.rounding
    values = _quantile(np.abs(draws[:, known]) / own[known], level) if known.any() else 0.0
    together = max(alone, min(values, quantile(1 - (1 - level) / k, degrees)))
    if k > MOST_JOINT:
        return every, np.full(k, max(0.0, one_side[1])), together
    drawn, best = _largest(errors, draws, level)
    return float(np.clip(drawn, alone, every)), np.maximum(0.0, np.clip(best, *one_side)), together


def _largest(errors: FloatArray, draws: FloatArray, level: float) -> tuple[float, FloatArray]:
    """Quantiles of the largest t: of all pairs, and of the others less each one."""
    largest, best = np.zeros((len(draws), 1)), np.zeros(len(errors))
    for b, error in enumerate(errors):
        other = error > 0.0
        if other.any():
            beyond = ((draws[:, other] - draws[:, [b]]) / error[other]).max(axis=1, keepdims=True)
            best[b] = _quantile(beyond, level)
            np.maximum(largest, beyond, out=largest)
    return _quantile(largest, level), best


def _quantile(found: FloatArray, level: float) -> float:
    return float(np.quantile(found.max(axis=1), level))


def ranks(found: Contest) -> tuple[Rank, ...]:
    """Every target, best first; those that are the same share their places."""
    joint, ahead = found.joint, found.ahead
    errors, k = np.sqrt(np.diag(joint.covariance)), len(joint.names)
    beaten = _beaten(found)
    chances = _chances(found)
    low, high = 1 + ahead.sum(axis=0), k - ahead.sum(axis=1)
    may = found.may_be_best
    return tuple(
        Rank(
            target=name,
            value=float(joint.values[i]),
            place=1 + int((found.gaps[:, i] > 0.0).sum()),
            standard_error=float(errors[i]),
            probability_best=float(np.clip(chances[i, 0], max(0.0, 1 - beaten[i].sum()), 1 - beaten[i].max())),
            expected_rank=float(1 + beaten[i].sum()),
            low=int(low[i]),
            high=int(high[i]),
            may_be_best=bool(may[i]),
            places=tuple(chances[i].tolist()),
        )
        for i, name in enumerate(joint.names)
    )


def _beaten(found: Contest) -> FloatArray:
    """Row i: the probability that each of the others is better than i; exact, by the t law."""
    behind, sure = -found.gaps, found.errors == 0.0
    chance = stdtr(found.joint.degrees, behind / np.where(sure, 1.0, found.errors))
    chance[sure] = 0.5 + 0.5 * np.sign(behind[sure])
    np.fill_diagonal(chance, 0.0)
    return np.asarray(chance)


def _chances(found: Contest) -> FloatArray:
    """Row i: the probability of its first places; of targets that are the same each has a part of theirs."""
    k = len(found.joint.names)
    alone, number = np.unique(found.first, return_inverse=True)
    many = np.bincount(number)
    order = np.argsort(-found.believed[:, alone], axis=1, kind="stable")
    last = np.cumsum(many[order], axis=1)
    place = np.empty_like(last)
    np.put_along_axis(place, order, last, axis=1)
    shown = min(k, MOST_PAIRED)
    inside = [((place >= p) & (place < p + many)).mean(axis=0) / many for p in range(1, shown + 1)]
    return np.stack(inside, axis=1)[number]


def regrets(found: Contest, level: float) -> tuple[Regret, ...]:
    """Of the highest value alone, of the two highest, and so on."""
    joint, n = found.joint, len(found.joint.names)
    most = found.believed.max(axis=1)
    reach = found.best[:, None] * found.errors + found.gaps
    made = []
    for k in range(1, min(n, MOST_TAKEN) + 1):
        lost = most - found.believed[:, :k].max(axis=1)
        bound = max(0.0, float(reach[k:, :k].min(axis=1).max())) if k < n else 0.0
        made.append(Regret(k, n, joint.names[:k], float(lost.mean()), bound, level))
    return tuple(made)
