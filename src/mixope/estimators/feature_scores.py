"""The last round that all feature estimators share: value, scores by episode, and how far approximation may be off.

By episode it sums  w = c ω ρ,  w r  and  w (r + γV(s′) − q(s,a))  or  w (r + γV(s′) − V(s)),  from which

    emp and its kin    η = Σ w r / Σ w                    score  w (r − η + V(s′) − q(s,a)) / Σ w   (logged: V(s) for q)
    dr (average)       η = Σ w (r + V(s′) − q) / Σ w      score  w (r + V(s′) − q − η) / Σ w
    dr (discounted)    η = (1−γ) E_μ₀ V + Σ w (r + γV(s′) − q) / N,   N the rows, with the start term (1−γ)(V(s₀) − E V)

V and q come from :mod:`mixope.estimators.feature_value`, for several λ and each time twice: from all rows, and without
the row's own fold. The standard error of a λ is the larger of the two, so that neither a fit that is too smooth nor one
that has learnt its rows by heart looks good; the smallest λ within a tenth of the best is taken.

Scores know of chance, not of what bumps cannot follow. Where the bumps chose themselves, the ratio is solved with half
of them too, and Δ is the value less the value with half the bumps. An error that halves when their number doubles is
Δ, one that falls faster is less. One Δ may be small by luck, so that ``dr`` also allows for a quarter of what its ratio
alone moves by (measured: about as much of the ratio's error is left in it):

    emp   approximation error  |Δ|
    dr    approximation error  √(Δ² + (Δ_ratio/4)²),   Δ_ratio the change of Σ w r / Σ w

which :func:`mixope.intervals.widen` puts into the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import DataError
from mixope.estimators.asking import Asking
from mixope.estimators.feature_problem import FeatureProblem
from mixope.estimators.feature_ratio import RatioReport
from mixope.estimators.feature_value import ValueFit, ValueSystem
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.statistics.by_episode import pieces_of_episodes, sum_by_episode
from mixope.statistics.grouping import GroupSums
from mixope.statistics.request import Batch, SlicedRequest
from mixope.statistics.rows import Rows
from mixope.statistics.weights import WeightCount

_NOT_DRAWABLE = "the target gives densities only; an interval needs a target that can be drawn from (a sample method)"
_SLACK = 1.1


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

    @property
    def shape(self) -> tuple[int, int]:
        """λ, and whether the fit has seen the row."""
        return (self.value.n_ridges if self.value else 1, 2)

    @property
    def n_columns(self) -> int:
        """Columns that are summed: those of the rows, and those of each ratio."""
        by_ridge = self.shape[0] * self.shape[1]
        return (3 + by_ridge) * (2 if self.coarse is None else 3)

    def add(self, total: ScorePart | None, batch: Batch) -> ScorePart:
        """With one slice added."""
        if len(batch) == 0:
            return total or self._of_nothing(batch)
        columns, weight = self._row_columns(batch.rows, batch.fold)
        sums = sum_by_episode(batch.table, columns, "scores", self.piece_steps)
        part = ScorePart(sums, WeightCount.of(weight, batch.rows.times))
        return part if total is None else total.merge(part)

    def _of_nothing(self, batch: Batch) -> ScorePart:
        """No policy is asked about no rows."""
        columns = {f"x{k}": np.zeros(0) for k in range(self.n_columns)}
        none = sum_by_episode(batch.table, columns, "scores", self.piece_steps)
        return ScorePart(none, WeightCount.of(np.zeros(0), np.zeros(0)))

    def _row_columns(self, rows: Rows, fold: int) -> tuple[dict[str, FloatArray], FloatArray]:
        n, held = rows.times, fold if self.crossed else None
        w = self.ratio.weights(rows, held)
        zero = np.zeros((len(rows), *self.shape))
        difference, first = self.value.terms(rows, fold, self.logged) if self.value else (zero, zero)
        flat = (len(rows), self.shape[0] * self.shape[1])
        difference = (difference + rows.reward[:, None, None]).reshape(flat)
        squared = np.divide(w**2, n, out=np.zeros_like(w), where=n > 0)
        fixed = [self.ratio.weight(rows), rows.start * n, squared, *(n * first.reshape(flat).T)]
        both = [w] if self.coarse is None else [w, self.coarse.weights(rows, held)]
        by_ratio = [[v, v * rows.reward, v * rows.terminated, *(v * difference.T)] for v in both]
        every = [*fixed, *(column for columns in by_ratio for column in columns)]
        return {f"x{k}": column for k, column in enumerate(every)}, np.divide(w, n, out=np.zeros_like(w), where=n > 0)


@dataclass(frozen=True)
class EpisodeTerms:
    """By episode: Σ c, Σ w, Σ w r, Σ w (r + γV(s′) − base), Σ V(s₀), starts, Σ w at ends; the last but two by λ."""

    count: FloatArray
    weight: FloatArray
    reward: FloatArray
    difference: FloatArray
    first_value: FloatArray
    starts: FloatArray
    ended: FloatArray

    def at(self, ridge: int, held: bool) -> EpisodeTerms:
        """By one λ, from all rows or without the row's own fold."""
        side = int(held)
        return replace(self, difference=self.difference[:, ridge, side], first_value=self.first_value[:, ridge, side])


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
    model: ValueSystem | None,
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
    summed = _summed(part, request)
    if float(summed.terms.weight.sum()) <= 0:
        raise DataError("all weights are zero: the target cannot be followed on these logs")
    found = _solution(problem, summed, model, doubly_robust=doubly_robust, crossed=request.crossed)
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
    )
    return replace(found, solved=report.solved, measures=measures)


def _summed(part: ScorePart, request: ScoreSums) -> Summed:
    shape = request.shape
    n, parts = shape[0] * shape[1], 1 if request.coarse is None else 2
    columns = [part.sums.column(f"x{k}") for k in range(request.n_columns)]
    sums = np.stack(columns, axis=1)
    count, starts, squared = sums[:, :3].T
    first = sums[:, 3 : 3 + n].reshape(-1, *shape)
    found = [_terms(each, count, starts, first) for each in np.split(sums[:, 3 + n :], parts, axis=1)]
    weights = Weights(found[0].weight, squared, part.seen.largest)
    return Summed(found[0], found[1] if parts == 2 else None, weights, part)


def _terms(part: FloatArray, count: FloatArray, starts: FloatArray, first: FloatArray) -> EpisodeTerms:
    """The columns that belong to one ratio, with those that do not."""
    weight, reward, ended = part[:, :3].T
    return EpisodeTerms(count, weight, reward, part[:, 3:].reshape(first.shape), first, starts, ended)


def _solution(
    problem: FeatureProblem, summed: Summed, model: ValueSystem | None, *, doubly_robust: bool, crossed: bool
) -> Solution:
    """Value, scores and measures from the sums by episode."""
    terms, total = summed.terms, float(summed.terms.weight.sum())
    ridge = _choose(problem, terms, doubly_robust)
    value, plain = _estimate(problem, terms.at(ridge, crossed), doubly_robust)
    _, honest = _estimate(problem, terms.at(ridge, True), doubly_robust)
    scores = honest if problem.known.features is None and _size(honest) > _size(plain) else plain
    measures = Measures(
        effective_sample_size=total**2 / float(summed.weights.squared.sum()),
        largest_share=summed.weights.largest / total,
        mean_weight=total / float(terms.count.sum()),
    )
    if model is not None:
        corrected = None if doubly_robust else _estimate(problem, terms.at(ridge, crossed), True)[0]
        measures = replace(measures, plug_in=model.value, ridge=model.ridges[ridge], corrected=corrected)
    if summed.coarse is not None:
        half, _ = _estimate(problem, summed.coarse.at(ridge, crossed), doubly_robust)
        own = [_estimate(problem, each.at(ridge, crossed), False)[0] for each in (terms, summed.coarse)]
        change, change_of_ratio = value - half, own[0] - own[1]
        error = float(np.hypot(change, change_of_ratio / 4)) if doubly_robust else abs(change)
        measures = replace(measures, approximation=error, half_the_bumps=half)
    return Solution(
        value,
        episode_scores=None if model is None else scores,
        measures=measures,
        no_interval_because=_NOT_DRAWABLE if model is None else None,
        weight_bins=summed.part.seen.bins(),
        episode_weights=summed.weights,
        pieces=pieces_of_episodes(summed.part.sums) if problem.piece_steps else None,
    )


def _choose(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> int:
    """The smallest λ whose standard error, the larger of the two, is within a tenth of the best."""
    errors = [
        max(_size(_estimate(problem, terms.at(k, held), doubly_robust)[1]) for held in (False, True))
        for k in range(terms.difference.shape[1])
    ]
    usable = [error if np.isfinite(error) else np.inf for error in errors]
    return next(k for k, error in enumerate(usable) if error <= _SLACK * min(usable))


def _size(scores: FloatArray) -> float:
    return float(np.sqrt(np.sum(scores**2)))


def _estimate(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    of = _average_value if problem.estimand.kind == "average" else _discounted_value
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


def _discounted_value(problem: FeatureProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    """Self-normalised by Σw where nothing ends (the ratio then has mass one), by Σc where something does."""
    base = terms.count if terms.ended.any() else terms.weight
    size, n_starts = float(base.sum()), max(float(terms.starts.sum()), 1.0)
    first = float(terms.first_value.sum()) / n_starts
    correction = float(terms.difference.sum()) / size
    scores = (terms.difference - correction * base) / size
    scores = scores + (1 - problem.gamma) * _start_spread(terms)
    value = (1 - problem.gamma) * first + correction if doubly_robust else float(terms.reward.sum()) / size
    return value, scores
