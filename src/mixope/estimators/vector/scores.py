"""The last pass that all feature estimators share: value, scores by episode, and how far approximation may be off.

By episode it sums  w = c ω ρ,  w r  and  w (r + γV(s′) − q(s,a))  or  w (r + γV(s′) − V(s)),  from which

    emp and its kin    η = Σ w r / Σ w                    score  w (r − η + V(s′) − q(s,a)) / Σ w   (logged: V(s) for q)
    dr (average)       η = Σ w (r + V(s′) − q) / Σ w      score  w (r + V(s′) − q − η) / Σ w
    dr (discounted)    η = (1−γ) E_μ₀ V + Σ w (r + γV(s′) − q) / N,   N the rows, with the start term (1−γ)(V(s₀) − E V)

V and q come from :mod:`mixope.estimators.vector.value`, for several λ and each time twice: from all rows, and without
the row's own fold. The standard error of a λ is the larger of the two, so that neither a fit that is too smooth nor one
that has learnt its rows by heart looks good; the smallest λ within a tenth of the best is taken.

Scores know of chance, not of what bumps cannot follow. Where the bumps chose themselves, the ratio is solved with half
of them too, and Δ is the value less the value with half the bumps. An error that halves when their number doubles is
Δ, one that falls faster is less. One Δ may be small by luck, so that ``dr`` also allows for a quarter of what its ratio
alone moves by (measured: about as much of the ratio's error is left in it):

    emp   approximation error  |Δ|
    dr    approximation error  √(Δ² + (Δ_ratio/4)²),   Δ_ratio the change of Σ w r / Σ w

which :mod:`mixope.intervals.approximation` puts into the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixope.arrays import FloatArray
from mixope.errors import UsageError
from mixope.estimators.solution import Solution, Weights
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.value import ValueFit
from mixope.estimators.weight_bins import WeightBin, WeightCount
from mixope.solvers.outcome import Solved
from mixope.statistics.rows import Rows

_NOT_DRAWABLE = "the target gives densities only; an interval needs a target that can be drawn from (a sample method)"
_SLACK = 1.1


class RowRatio(Protocol):
    """A solved ratio as the score pass sees it."""

    @property
    def misfit(self) -> float | None:
        """How far the behaviour was off before calibration, where there is one."""
        ...

    @property
    def whole(self) -> tuple[FloatArray, Solved, float]:
        """Coefficients, how they were solved, the condition number."""
        ...

    def weight(self, rows: Rows) -> FloatArray:
        """c."""
        ...

    def weights(self, rows: Rows, crossed: bool = False) -> FloatArray:
        """The importance weight of every row."""
        ...


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

    def at(self, ridge: int, held_out: bool) -> EpisodeTerms:
        """By one λ, with the fit on all rows or with the one that has not seen the episode."""
        side = int(held_out)
        return replace(self, difference=self.difference[:, ridge, side], first_value=self.first_value[:, ridge, side])


@dataclass(frozen=True)
class Summed:
    """What the pass brings home: the terms, the same with half the bumps, and how weights are spread."""

    terms: EpisodeTerms
    coarse: EpisodeTerms | None
    weights: Weights
    bins: tuple[WeightBin, ...]


def score(
    problem: VectorProblem,
    ratio: RowRatio,
    name: str,
    *,
    logged: bool = False,
    doubly_robust: bool = False,
    coarse: RowRatio | None = None,
) -> Solution:
    """The last pass, then value and scores by episode; ``coarse`` is the ratio with half the bumps."""
    _, solved, condition = ratio.whole
    model = problem.value if doubly_robust else problem.value_if_drawable
    crossed = doubly_robust and problem.cross_fit
    summed = _sum_rows(problem, ratio, coarse, model, name, logged=logged, crossed=crossed)
    if float(summed.terms.weight.sum()) <= 0:
        raise UsageError("all weights are zero: the target cannot be followed on these logs")
    found = _solution(problem, summed, model, doubly_robust=doubly_robust, crossed=crossed)
    measures = {**found.measures, "condition": condition, "stationarity_residual": solved.residual}
    misfit = ratio.misfit if coarse is None else coarse.misfit  # more bumps, more tests that overlap
    if misfit is not None:
        measures["behaviour_misfit"] = misfit
    return replace(found, solved=solved, measures=measures)


def _solution(
    problem: VectorProblem, summed: Summed, model: ValueFit | None, *, doubly_robust: bool, crossed: bool
) -> Solution:
    """Value, scores and measures from the sums by episode."""
    terms, total = summed.terms, float(summed.terms.weight.sum())
    ridge = _choose(problem, terms, doubly_robust)
    value, plain = _estimate(problem, terms.at(ridge, crossed), doubly_robust)
    _, honest = _estimate(problem, terms.at(ridge, True), doubly_robust)
    scores = honest if problem.features is None and _size(honest) > _size(plain) else plain
    measures = {
        "effective_sample_size": total**2 / float(summed.weights.squared.sum()),
        "largest_share": summed.weights.largest / total,
        "mean_weight": total / float(terms.count.sum()),
    }
    if model is not None:
        measures |= {"plug_in": model.value, "ridge": model.ridges[ridge]}
        if not doubly_robust:
            measures["corrected"] = _estimate(problem, terms.at(ridge, crossed), True)[0]
    if summed.coarse is not None:
        half, _ = _estimate(problem, summed.coarse.at(ridge, crossed), doubly_robust)
        own = [_estimate(problem, each.at(ridge, crossed), False)[0] for each in (terms, summed.coarse)]
        change, change_of_ratio = value - half, own[0] - own[1]
        error = float(np.hypot(change, change_of_ratio / 4)) if doubly_robust else abs(change)
        measures |= {"approximation": error, "half_the_bumps": half}
    return Solution(
        value,
        episode_scores=None if model is None else scores,
        measures=measures,
        no_interval_because=_NOT_DRAWABLE if model is None else None,
        weight_bins=summed.bins,
        episode_weights=summed.weights,
    )


def _choose(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> int:
    """The smallest λ whose standard error, the larger of the two, is within a tenth of the best."""
    errors = [
        max(_size(_estimate(problem, terms.at(k, held), doubly_robust)[1]) for held in (False, True))
        for k in range(terms.difference.shape[1])
    ]
    usable = [error if np.isfinite(error) else np.inf for error in errors]
    return next(k for k, error in enumerate(usable) if error <= _SLACK * min(usable))


def _size(scores: FloatArray) -> float:
    return float(np.sqrt(np.sum(scores**2)))


def _sum_rows(
    problem: VectorProblem,
    ratio: RowRatio,
    coarse: RowRatio | None,
    model: ValueFit | None,
    name: str,
    *,
    logged: bool,
    crossed: bool,
) -> Summed:
    seen, shape = WeightCount(), (len(model.ridges) if model else 1, 2)

    def batch(rows: Rows) -> FloatArray:
        w = ratio.weights(rows, crossed)
        seen.update(w)
        zero = np.zeros((len(rows), *shape))
        difference, first = model.terms(rows, logged) if model else (zero, zero)
        difference = (difference + rows.reward[:, None, None]).reshape(len(rows), -1)
        fixed = [ratio.weight(rows), rows.start.astype(np.float64), w**2, *first.reshape(len(rows), -1).T]
        both = [w] if coarse is None else [w, coarse.weights(rows, crossed)]
        by_ratio = [[v, v * rows.reward, v * rows.terminated, *(v * difference.T)] for v in both]
        return np.stack([*fixed, *(column for columns in by_ratio for column in columns)], axis=1)

    n = shape[0] * shape[1]
    parts = 1 if coarse is None else 2
    sums = problem.scan.by_episode(f"scores of {name}", batch, 3 + n + parts * (3 + n))
    count, starts, squared = sums[:, :3].T
    first = sums[:, 3 : 3 + n].reshape(-1, *shape)
    found = [_terms(part, count, starts, first) for part in np.split(sums[:, 3 + n :], parts, axis=1)]
    weights = Weights(found[0].weight, squared, seen.largest)
    return Summed(found[0], found[1] if coarse is not None else None, weights, seen.bins())


def _terms(part: FloatArray, count: FloatArray, starts: FloatArray, first: FloatArray) -> EpisodeTerms:
    """The columns that belong to one ratio, with those that do not."""
    weight, reward, ended = part[:, :3].T
    return EpisodeTerms(count, weight, reward, part[:, 3:].reshape(first.shape), first, starts, ended)


def _estimate(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    of = _average_value if problem.estimand.kind == "average" else _discounted_value
    return of(problem, terms, doubly_robust)


def _average_value(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    total = float(terms.weight.sum())
    corrected = float(terms.difference.sum()) / total
    value = corrected if doubly_robust else float(terms.reward.sum()) / total
    scores = (terms.difference - terms.weight * corrected) / total
    return value, scores + float(terms.ended.sum()) / total * _start_spread(terms)


def _start_spread(terms: EpisodeTerms) -> FloatArray:
    """(V(s₀) − mean V(s₀))/starts by episode: what estimating the start law adds."""
    n_starts = max(float(terms.starts.sum()), 1.0)
    return np.asarray((terms.first_value - float(terms.first_value.sum()) / n_starts * terms.starts) / n_starts)


def _discounted_value(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    """Self-normalised by Σw where nothing ends (the ratio then has mass one), by Σc where something does."""
    gamma = float(problem.estimand.gamma or 0.0)
    base = terms.count if terms.ended.any() else terms.weight
    size, n_starts = float(base.sum()), max(float(terms.starts.sum()), 1.0)
    first = float(terms.first_value.sum()) / n_starts
    correction = float(terms.difference.sum()) / size
    scores = (terms.difference - correction * base) / size
    scores = scores + (1 - gamma) * _start_spread(terms)
    value = (1 - gamma) * first + correction if doubly_robust else float(terms.reward.sum()) / size
    return value, scores
