"""Scores side by side, and what follows from them.

Scores s_{ek} of m episodes e for target k have the covariance m/(m−1) Σ_e s_{ek} s_{el}. For a pair,

    value_k − value_l  ±  t_{level, m − 1} √ m/(m−1) Σ_e (s_{ek} − s_{el})²

which for similar targets is far narrower than what two separate intervals suggest (√(se_k² + se_l²)). Joint intervals
cover all pairs at once: t is replaced by the quantile of the largest |t| over pairs. Probabilities and ranks come from
draws of a multivariate t around the values.

The pairs of k targets are k(k − 1)/2. Of more than ``MOST_PAIRED`` targets the best by its value is set against each of
the others, k − 1 differences. Which one that is was found on the same episodes, so their joint intervals hold for all
pairs none the less, by Bonferroni's bound.

What a logger earned by itself under the same estimand (:mod:`mixope.estimators.own_values`) has scores on its own
episodes and 0 on all others, so it stands beside the targets like one of them.

Estimates of one run keep their scores, so that differences between them read nothing again. The scores say nothing of
bias: a target whose mass the logs do not cover is named in ``alerts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mixope.arrays import FloatArray
from mixope.diagnostics import Verdict
from mixope.differences.records import Difference, Differences, Ranking
from mixope.errors import Advice
from mixope.estimate import Estimate
from mixope.intervals import (
    Interval,
    block_scores,
    few_clusters,
    few_episodes,
    probability_positive,
    quantile,
    standard_error,
)

DRAWS, MOST_DRAWN = 20_000, 4_000_000
"""Draws of all targets, fewer where there would be more numbers than this in all."""
MOST_PAIRED = 12
"""Up to so many targets, all pairs are compared; of more, each with the best."""
UNCOVERED = 0.01
"""Target mass outside the logs above which a difference is said to be biased."""
_APPROXIMATE = "{}: an approximation error of about {:.3g} is part of its own interval and not of its differences'"
MOST_LOGGERS = 20
"""With more loggers than this, targets are set against none: a table of all of them says nothing to a reader."""
Pair = tuple[int, int]


@dataclass(frozen=True)
class JointScores:
    """Values of several targets and their scores by cluster (clusters × targets)."""

    names: tuple[str, ...]
    values: FloatArray
    scores: FloatArray
    at_most: float = np.inf
    """Degrees of freedom, where scores belong to a few folds rather than to each cluster."""

    @property
    def degrees(self) -> float:
        """Of freedom of the t law."""
        return min(len(self.scores) - 1, self.at_most)

    @property
    def covariance(self) -> FloatArray:
        """m/(m−1) Σ_e s_e s_eᵀ."""
        return np.asarray(few_clusters(len(self.scores)) * (self.scores.T @ self.scores))

    def draws(self, seed: int) -> FloatArray:
        """Deviations of the values from the truth by the multivariate t law, shape (draws, targets)."""
        n = min(DRAWS, MOST_DRAWN // len(self.values))
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
            min(self.at_most, other.at_most),
        )


def pairwise(joint: JointScores, level: float, seed: int = 0) -> tuple[Difference, ...]:
    """Every pair once, in the order of the targets."""
    return subtract(joint, list(combinations(range(len(joint.names)), 2)), level, seed)


def with_best(joint: JointScores, level: float) -> tuple[Difference, ...]:
    """The best less every other, in the order of their values; the intervals hold together for all pairs."""
    best, *others = np.argsort(-joint.values, kind="stable").tolist()
    every = len(others) * (len(others) + 1) // 2
    together = quantile(1 - (1 - level) / every, joint.degrees)
    return _subtracted(joint, [(best, other) for other in others], level, together)


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
        found.append(
            Difference(
                first=joint.names[i],
                second=joint.names[j],
                value=value,
                standard_error=error,
                independent_standard_error=float(np.hypot(alone[i], alone[j])),
                interval=_around(value, single * error, level, "difference of clustered scores, t"),
                joint=_around(value, together * error, level, "difference of clustered scores, all pairs"),
                probability_first_is_better=probability_positive(value, error, joint.degrees),
            )
        )
    return tuple(found)


def _around(value: float, half: float, level: float, method: str) -> Interval:
    return Interval(value - half, value + half, level, method)


def _spread(joint: JointScores, i: int, j: int) -> float:
    return standard_error(joint.scores[:, i] - joint.scores[:, j])


def _largest_of_all(joint: JointScores, pairs: list[Pair], level: float, seed: int) -> float:
    """The quantile of max |t| over pairs."""
    draws = joint.draws(seed)
    largest = np.zeros(len(draws))
    for i, j in pairs:
        error = _spread(joint, i, j)
        if error > 0:
            np.maximum(largest, np.abs(draws[:, i] - draws[:, j]) / error, out=largest)
    return float(np.quantile(largest, level))


def rank(joint: JointScores, level: float, seed: int = 0) -> tuple[Ranking, ...]:
    """Places by draws around the values, best first; the same seed gives the same probabilities.

    Equal ones share their places: those whose draws do not differ are ordered by a coin.
    """
    believed = joint.values + joint.draws(seed)
    scale = np.abs(believed).max(axis=0, initial=1.0)
    coin = np.random.default_rng([seed, 18]).random(believed.shape)
    order = np.lexsort((coin, -np.round(believed / scale.max(), 12)), axis=1)
    place = np.argsort(order, axis=1, kind="stable") + 1
    errors, shown = np.sqrt(np.diag(joint.covariance)), min(len(joint.names), MOST_PAIRED)
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
                ranks=tuple(float(np.mean(place[:, k] == p)) for p in range(1, shown + 1)),
            )
        )
    return tuple(sorted(found, key=lambda r: -r.value))


def differences_of(
    estimates: Sequence[Estimate], level: float, seed: int = 0, all_pairs: bool = False
) -> tuple[Differences, ...]:
    """One record for each estimator that has scores for two targets or more, in the order of the estimators.

    Of more than ``MOST_PAIRED`` targets each is compared with the best, unless ``all_pairs`` are asked for.
    """
    made = (_one(group, level, seed, all_pairs) for group in _by_estimator(estimates))
    return tuple(found for found in made if found is not None)


def _by_estimator(estimates: Sequence[Estimate]) -> list[list[Estimate]]:
    """The targets of each estimator; two estimators under one name are told apart by their order."""
    seen: dict[tuple[str, str], int] = {}
    groups: dict[tuple[str, int], list[Estimate]] = {}
    for estimate in estimates:
        if estimate.verdict is Verdict.REFERENCE:
            continue
        turn = seen.get((estimate.target, estimate.estimator), 0)
        seen[estimate.target, estimate.estimator] = turn + 1
        groups.setdefault((estimate.estimator, turn), []).append(estimate)
    return list(groups.values())


def _one(group: list[Estimate], level: float, seed: int, all_pairs: bool) -> Differences | None:
    usable = [e for e in group if _usable(e)]
    if len(usable) < 2:
        return None
    first = usable[0]
    at_most = min((e.degrees for e in usable if e.degrees is not None), default=np.inf)
    names, values = tuple(e.target for e in usable), np.array([e.value for e in usable])
    joint = JointScores(names, values, _clusters(usable), at_most)
    every = all_pairs or len(usable) <= MOST_PAIRED
    left_out = [
        Advice(f"{e.target}: left out, ", e.no_interval_because or "it has no scores") for e in group if not _usable(e)
    ]
    return Differences(
        estimator=first.estimator,
        estimand=first.estimand,
        level=level,
        n_episodes=first.n_episodes,
        pairs=pairwise(joint, level, seed) if every else with_best(joint, level),
        ranking=rank(joint, level, seed),
        loggers=_against_loggers(first, joint, level, seed),
        compared="all pairs" if every else "with the best",
        alerts=(
            *left_out,
            *bias_alerts([(e.target, e.uncovered_mass) for e in usable], any(e.corrects_coverage for e in usable)),
            *(_APPROXIMATE.format(e.target, off) for e in usable if (off := e.measures.approximation or 0.0) > 0),
            *(f"{e.target}: {e.verdict}, and so is every difference with it" for e in usable if _refused(e)),
            *([few] if (few := few_episodes(first.n_episodes)) else []),
        ),
    )


def _usable(estimate: Estimate) -> bool:
    """Scores of two episodes or more, or of steps that can be cut into blocks."""
    enough = estimate.scores is not None and (len(estimate.scores) > 1 or estimate.step_scores is not None)
    return enough and bool(np.isfinite(estimate.value))


def _clusters(usable: Sequence[Estimate]) -> FloatArray:
    """Scores side by side, by episode; one long episode is cut into the same blocks of steps for all of them."""
    if usable[0].n_episodes > 1:
        return np.stack([e.scores for e in usable if e.scores is not None], axis=1)
    return block_scores(np.stack([e.step_scores for e in usable if e.step_scores is not None], axis=1))


def _refused(estimate: Estimate) -> bool:
    return estimate.verdict is Verdict.UNSUPPORTED


def _against_loggers(estimate: Estimate, joint: JointScores, level: float, seed: int) -> tuple[Difference, ...]:
    """Every target less what each logger earned by itself, of those that have a value of their own."""
    known = [(j.label, j.earned.value, j.earned.scores) for j in estimate.loggers if j.earned.value is not None]
    alike = [(label, value, scores) for label, value, scores in known if len(joint.scores) == len(_scores(scores))]
    if not alike or len(estimate.loggers) > MOST_LOGGERS:
        return ()
    labels, values, scores = zip(*alike, strict=True)
    return against(joint, JointScores(labels, np.array(values), np.stack(scores, axis=1)), level, seed)


def _scores(found: FloatArray | None) -> FloatArray:
    return np.zeros(0) if found is None else found


def bias_alerts(masses: Sequence[tuple[str, float]], corrects_coverage: bool) -> tuple[str, ...]:
    """A sentence for every target with uncovered mass."""
    rests = (
        "there the difference rests on the value model"
        if corrects_coverage
        else "the difference can be off by more than its interval shows"
    )
    return tuple(
        f"{name}: {mass:.1%} of the target's mass is on actions that were never logged; {rests}"
        for name, mass in masses
        if mass > UNCOVERED
    )
