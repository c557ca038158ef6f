"""The last round that all feature estimators share: value, scores by episode, and how far approximation may be off.

By episode it sums  w = c ω ρ,  w r  and  w (r + γV(s′) − q(s,a))  or  w (r + γV(s′) − V(s)),  from which

    emp and its kin    η = Σ w r / Σ w                    score  w (r − η + V(s′) − q(s,a)) / Σ w   (logged: V(s) for q)
    dr (average)       η = Σ w (r + V(s′) − q) / Σ w      score  w (r + V(s′) − q − η) / Σ w
    dr (sums)          η = k E_μ₀ V + Σ w (r + γV(s′) − q) / N,   with the start term k (V(s₀) − E V), k = 1 − γ for the
                       discounted value and 1 for the total of an episode

V and q come from :mod:`mixope.estimators.features.value`, twice: from all rows, and without the row's own fold. The
standard error is the larger of the two, so that a fit that has learnt its rows by heart does not look good.

Scores know of chance, not of what bumps cannot follow. Where the bumps chose themselves, the ratio is solved with half
of them too, and Δ is the value less the value with half the bumps. An error that halves when their number doubles is
Δ, one that falls faster is less. One Δ may be small by luck, so that ``dr`` also allows for a quarter of what its ratio
alone moves by (measured: about as much of the ratio's error is left in it):

    emp   approximation error  |Δ|
    dr    approximation error  √(Δ² + (Δ_ratio/4)²),   Δ_ratio the change of Σ w r / Σ w

which :func:`mixope.uncertainty.widen` puts into the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixope.base.arrays import FloatArray, IntArray
from mixope.base.errors import DataError
from mixope.base.estimand import Estimand
from mixope.estimators.asking import Asking
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.features.ratio import RatioReport
from mixope.estimators.features.value import SolvedValue, ValueFit
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.requests.by_episode import pieces_of_episodes, sum_by_episode
from mixope.requests.grouping import GroupSums
from mixope.requests.request import Batch, SlicedRequest
from mixope.requests.rows import Rows, stands_still
from mixope.requests.scores import ClusterScores
from mixope.requests.skewness import deciding_events
from mixope.requests.weights import WeightCount

STILL_ROWS = 10
"""Rows that a state has at least, if nothing leaves it."""
COMMON = 0.95
"""The share of the rows that must earn the same for other rewards to be rare."""
_NOT_DRAWABLE = "the target gives densities only; an interval needs a target that can be drawn from (a sample method)"


class Weigher(Protocol):
    """A solved ratio as the score pass sees it."""

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        ...

    def weights(self, rows: Rows, fold: int | None = None) -> FloatArray:
        """The importance weight of every row; with a fold, from a ratio that has not seen it."""
        ...


@dataclass(frozen=True)
class ScorePart:
    """Sums by episode of some rows, and how their weights are spread."""

    sums: GroupSums
    seen: WeightCount

    def merge(self, other: ScorePart) -> ScorePart:
        """Of the rows of both."""
        return ScorePart(self.sums.merge(other.sums), self.seen.merge(other.seen))


@dataclass(frozen=True)
class ScoreSums(SlicedRequest):
    """The request: by episode, or by pieces of it, everything that value and scores are made of."""

    ratio: Weigher
    coarse: Weigher | None = None
    value: ValueFit | None = None
    logged: bool = False
    crossed: bool = False
    piece_steps: int | None = None

    sees_unfollowed = True

    @property
    def n_columns(self) -> int:
        """Columns that are summed: those of the rows, and those of each ratio."""
        return 5 * (2 if self.coarse is None else 3)

    def add(self, total: ScorePart | None, batch: Batch) -> ScorePart:
        """With one slice added; all its episodes are there, and no more is added than is known what followed."""
        known = batch.followed
        columns, weight = self._row_columns(known.rows, batch.fold) if len(known) else self._of_nothing()
        sums = sum_by_episode(batch.table, batch.laid(columns), "scores", self.piece_steps)
        part = ScorePart(sums, WeightCount.of(weight, known.rows.times))
        return part if total is None else total.merge(part)

    def _of_nothing(self) -> tuple[dict[str, FloatArray], FloatArray]:
        """No policy is asked about no rows."""
        return {f"x{k}": np.zeros(0) for k in range(self.n_columns)}, np.zeros(0)

    def _row_columns(self, rows: Rows, fold: int) -> tuple[dict[str, FloatArray], FloatArray]:
        n, held = rows.times, fold if self.crossed else None
        w = self.ratio.weights(rows, held)
        zero = np.zeros((len(rows), 2))
        difference, first = self.value.terms(rows, fold, self.logged) if self.value else (zero, zero)
        difference = difference + rows.reward[:, None]
        squared = np.divide(w**2, n, out=np.zeros_like(w), where=n > 0)
        fixed = [self.ratio.weight(rows), rows.start * n, squared, *(n * first.T)]
        both = [w] if self.coarse is None else [w, self.coarse.weights(rows, held)]
        by_ratio = [[v, v * rows.reward, v * rows.terminated, *(v * difference.T)] for v in both]
        every = [*fixed, *(column for columns in by_ratio for column in columns)]
        return {f"x{k}": column for k, column in enumerate(every)}, np.divide(w, n, out=np.zeros_like(w), where=n > 0)


@dataclass(frozen=True)
class EpisodeTerms:
    """By episode: Σ c, Σ w, Σ w r, Σ w (r + γV(s′) − base), Σ V(s₀), starts, Σ w at ends.

    What has V in it comes twice: from all rows, and without the row's own fold.
    """

    count: FloatArray
    weight: FloatArray
    reward: FloatArray
    difference: FloatArray
    first_value: FloatArray
    starts: FloatArray
    ended: FloatArray

    def by(self, held: bool) -> EpisodeTerms:
        """With V from all rows, or without the row's own fold."""
        side = int(held)
        return replace(self, difference=self.difference[:, side], first_value=self.first_value[:, side])


@dataclass(frozen=True)
class Summed:
    """What the round brings home: the terms, the same with half the bumps, and how weights are spread."""

    terms: EpisodeTerms
    coarse: EpisodeTerms | None
    weights: Weights
    part: ScorePart


def score(
    problem: FeatureProblem,
    ratio: Weigher,
    report: RatioReport,
    model: SolvedValue | None,
    *,
    logged: bool = False,
    doubly_robust: bool = False,
    coarse: tuple[Weigher, RatioReport] | None = None,
) -> Asking[Solution]:
    """The last round, then value and scores by episode; ``coarse`` is the ratio with half the bumps."""
    request = ScoreSums(
        ratio,
        coarse[0] if coarse else None,
        model.fit if model else None,
        logged,
        doubly_robust and problem.cross_fit,
        problem.piece_steps,
    )
    (part,) = yield (request,)
    summed = _summed(problem, part, request)
    if float(summed.terms.weight.sum()) <= 0:
        raise DataError("all weights are zero: the target cannot be followed on these logs")
    found = _solution(problem, summed, model, doubly_robust=doubly_robust, crossed=request.crossed)
    parked_share, parked_reward = _parked(problem, ratio)
    fewer_bumps = report if coarse is None else coarse[1]  # more bumps, more tests that overlap
    measures = replace(
        found.measures,
        stationarity_residual=report.solved.residual,
        condition=report.condition,
        behaviour_misfit=fewer_bumps.misfit,
        held_out=report.held_out,
        truncated_ratios=report.truncated or None,
        clipped_calibrations=report.clipped or None,
        capped_densities=report.capped or None,
        rare_rewards=_rare_rewards(problem, ratio),
        parked_share=parked_share,
        parked_reward=parked_reward,
        start_error=None if model is None or not problem.piece_steps else _start_error(problem, model, summed.terms),
    )
    scores = found.scores and replace(found.scores, start_error=measures.start_error)
    return replace(found, scores=scores, solved=report.solved, measures=measures)


def _rare_rewards(problem: FeatureProblem, ratio: Weigher) -> float | None:
    """Where nearly all rows earn the same: how many of the others the weighted logs are worth; None elsewhere."""
    sample = problem.known.sample
    values, which = np.unique(sample.reward, return_inverse=True)
    rows = np.bincount(which, weights=sample.times)
    if len(values) < 2 or rows.max() < COMMON * rows.sum():
        return None
    rare = sample.take(which != rows.argmax())
    w = ratio.weights(rare)
    squared = float(np.sum(np.divide(w**2, rare.times, out=np.zeros_like(w), where=rare.times > 0)))
    return float(w.sum()) ** 2 / squared * problem.known.n_rows / float(rows.sum()) if squared > 0 else 0.0


def _parked(problem: FeatureProblem, ratio: Weigher) -> tuple[float, float] | tuple[None, None]:
    """The weight of rows that stand still, and what they earn, by size; None where no row does."""
    sample = problem.known.sample
    still = stands_still(sample, STILL_ROWS * len(sample) / problem.known.n_rows)
    if not still.any():
        return None, None
    w = ratio.weights(sample)
    total = float(w.sum())
    return float(w[still].sum()) / total, float(w[still] @ np.abs(sample.reward[still])) / total


def _start_error(problem: FeatureProblem, model: SolvedValue, terms: EpisodeTerms) -> float | None:
    """The standard error of the start law, had starts the spread of the logged states; None where ends start again."""
    if problem.estimand.restarts:
        return None
    worth = model.fit.worth(problem.known.sample)
    return float(problem.estimand.scale * worth.std() / np.sqrt(max(float(terms.starts.sum()), 1.0)))


def _summed(problem: FeatureProblem, part: ScorePart, request: ScoreSums) -> Summed:
    parts = 1 if request.coarse is None else 2
    columns = [part.sums.column(f"x{k}") for k in range(request.n_columns)]
    sums = np.stack(columns, axis=1)
    count, starts, squared = sums[:, :3].T
    found = [_terms(each, count, starts, sums[:, 3:5]) for each in np.split(sums[:, 5:], parts, axis=1)]
    by_episode = Weights(found[0].weight, squared, part.seen.largest)
    weights = by_episode.by(_loggers(problem, part.sums), len(problem.labels))
    return Summed(found[0], found[1] if parts == 2 else None, weights, part)


def _terms(part: FloatArray, count: FloatArray, starts: FloatArray, first: FloatArray) -> EpisodeTerms:
    """The columns that belong to one ratio, with those that do not."""
    weight, reward, ended = part[:, :3].T
    return EpisodeTerms(count, weight, reward, part[:, 3:], first, starts, ended)


def _solution(
    problem: FeatureProblem, summed: Summed, model: SolvedValue | None, *, doubly_robust: bool, crossed: bool
) -> Solution:
    """Value, scores and measures from the sums by episode."""
    terms, total = summed.terms, float(summed.terms.weight.sum())
    value, plain = _estimate(problem, terms.by(crossed), doubly_robust)
    _, honest = _estimate(problem, terms.by(True), doubly_robust)
    scores = honest if problem.known.features is None and _size(honest) > _size(plain) else plain
    measures = Measures(
        effective_sample_size=total**2 / float(summed.weights.squared.sum()),
        largest_share=summed.weights.largest / total,
        mean_weight=float(_accounted(problem.estimand, terms).sum()) / float(terms.count.sum()),
        episode_length=_length(problem.estimand, terms),
        effective_ends=_effective_ends(problem.estimand, terms),
        deciding_events=deciding_events(plain),
    )
    if model is not None:
        other = _estimate(problem, terms.by(crossed), not doubly_robust)[0]
        measures = replace(measures, plug_in=model.value, ridge=model.ridge)
        measures = replace(measures, uncorrected=other) if doubly_robust else replace(measures, corrected=other)
    if summed.coarse is not None:
        half, _ = _estimate(problem, summed.coarse.by(crossed), doubly_robust)
        own = [_estimate(problem, each.by(crossed), False)[0] for each in (terms, summed.coarse)]
        change, change_of_ratio = value - half, own[0] - own[1]
        error = float(np.hypot(change, change_of_ratio / 4)) if doubly_robust else abs(change)
        measures = replace(measures, approximation=error, half_the_bumps=half)
    lengths = pieces_of_episodes(summed.part.sums) if problem.piece_steps else None
    return Solution(
        value,
        summed.weights,
        None if model is None else ClusterScores.of_pieces(scores, lengths),
        measures=measures,
        no_interval_because=_NOT_DRAWABLE if model is None else None,
        weight_bins=summed.part.seen.bins(),
    )


def _loggers(problem: FeatureProblem, sums: GroupSums) -> IntArray:
    """The number of the logger of every episode, or piece of one."""
    return np.searchsorted(np.array(problem.labels), sums.values("policy_id").astype(str)).astype(np.int64)


def _length(estimand: Estimand, terms: EpisodeTerms) -> float | None:
    """The mean (discounted) number of steps of an episode."""
    if estimand.kind != "episode":
        return None
    return float(terms.weight.sum()) / float(_accounted(estimand, terms).sum())


def _effective_ends(estimand: Estimand, terms: EpisodeTerms) -> float | None:
    """(Σ w)²/Σ w² of the ends: how many the weighted logs are worth, where the answer hangs on them."""
    squares = float(np.sum(terms.ended**2))
    return float(terms.ended.sum()) ** 2 / squares if estimand.needs_ends and squares > 0 else None


def _size(scores: FloatArray) -> float:
    return float(np.sqrt(np.sum(scores**2)))


def _estimate(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    of = _average_value if problem.estimand.restarts else _summed_value
    return of(problem, terms, doubly_robust)


def _average_value(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    total = float(terms.weight.sum())
    corrected = float(terms.difference.sum()) / total
    value = corrected if doubly_robust else float(terms.reward.sum()) / total
    scores = (terms.difference - terms.weight * corrected) / total
    return value, scores + float(terms.ended.sum()) / total * _start_spread(terms)


def _start_spread(terms: EpisodeTerms) -> FloatArray:
    """(V(s₀) − mean V(s₀))/starts by episode: what estimating the start law adds."""
    n_starts = max(float(terms.starts.sum()), 1.0)
    return np.asarray((terms.first_value - float(terms.first_value.sum()) / n_starts * terms.starts) / n_starts)


def _summed_value(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    """Self-normalised by what the weights account for."""
    base = _accounted(problem.estimand, terms)
    size, n_starts = float(base.sum()), max(float(terms.starts.sum()), 1.0)
    if size <= 0:
        raise DataError(
            "the weights account for no episode: none of the rows that the target would reach ends one",
            hint="ask for a discounted value, or give logs in which episodes end where the target goes",
        )
    first = float(terms.first_value.sum()) / n_starts
    correction = float(terms.difference.sum()) / size
    scores = (terms.difference - correction * base) / size
    scores = scores + problem.estimand.scale * _start_spread(terms)
    value = problem.estimand.scale * first + correction if doubly_robust else float(terms.reward.sum()) / size
    return value, scores


def _accounted(estimand: Estimand, terms: EpisodeTerms) -> FloatArray:
    """What weights make of the test f = 1, by episode; if they are right, it sums to Σ c whatever the estimand.

    Weights average one for the average. With an absorbing end they average the mass that is left, and the mass that
    has ended accounts for the rest: ((1−γ) Σ w + γ Σ w at ends)/k.
    """
    if estimand.restarts:
        return terms.weight
    gamma = estimand.discount
    return np.asarray(((1.0 - gamma) * terms.weight + gamma * terms.ended) / estimand.scale)
