"""The state-ratio seven, LSTD-Q and doubly robust EMP on features: one mechanism with the tabular family's switches.

A last pass sums, by episode,  w = c ω ρ,  w r  and  w (r + γV(s′) − q(s,a))  or  w (r + γV(s′) − V(s)), from which

    emp and its kin    η = Σ w r / Σ w                    score  w (r − η + V(s′) − q(s,a)) / Σ w   (logged: V(s) for q)
    dr (average)       η = Σ w (r + V(s′) − q) / Σ w      score  w (r + V(s′) − q − η) / Σ w
    dr (discounted)    η = (1−γ) E_μ₀ V + Σ w (r + γV(s′) − q) / N,   N the rows, with the start term (1−γ)(V(s₀) − E V)

V and q come from :mod:`mixope.estimators.vector.value`. ``cross_fit=True`` takes ratio and
value of ``dr`` from the other half of the episodes: honest with few features, unstable with many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.doubly_robust import NO_SCORE, PLUG_IN_BIAS
from mixope.estimators.solution import Solution
from mixope.estimators.vector.defaults import default_behaviour, known_behaviour, nearest_logger_weights
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.value import ValueFit
from mixope.solvers.outcome import Solved
from mixope.statistics.rows import Rows

Source = Literal["mixture", "logged", "known"]


@dataclass(frozen=True)
class VectorRatio:
    """A state-ratio estimator on features; ``doubly_robust`` adds the value model's correction."""

    name: str
    source: Source = "mixture"
    behaviour: RowBehaviour | None = None
    pooled: bool = True
    nearest: bool = False
    doubly_robust: bool = False

    def solve(self, problem: VectorProblem) -> Solution:
        """Pooled, or each logger alone and averaged."""
        if problem.estimand.kind == "horizon":
            raise UsageError(
                f"{self.name!r} on vectors estimates the average and the discounted value; for a horizon use"
                " importance sampling ('wis-step') or tabular states"
            )
        weights = nearest_logger_weights(problem) if self.nearest else dict.fromkeys(problem.labels, 1.0)
        if self.pooled or len(problem.labels) == 1:
            return self._solve_part(problem, weights, "pooled")
        present = [label for label in problem.labels if weights[label] > 0]
        parts = [self._solve_part(problem, {label: 1.0}, label) for label in present]
        return _average(parts)

    def _solve_part(self, problem: VectorProblem, weights: dict[str, float], who: str) -> Solution:
        weight = _weight_of(weights)
        key = f"{self.source} {self.behaviour!r} {sorted(weights.items())}"
        fitted = self._behaviour(problem, weights, key)
        ratio = problem.ratio(key, fitted, weight)
        return score(problem, ratio, self.name, logged=self.source == "logged", doubly_robust=self.doubly_robust)

    def _behaviour(self, problem: VectorProblem, weights: dict[str, float], key: str) -> FittedBehaviour:
        sample = problem.scan.sample
        c = _weight_of(weights)(sample)
        if self.source == "logged":
            return problem.fitted(LoggedRows(problem.loggers), key, c)
        if self.source == "known":
            return problem.fitted(known_behaviour(problem), key, c)
        return problem.fitted(self.behaviour or default_behaviour(problem), key, c)


def _weight_of(weights: dict[str, float]) -> Callable[[Rows], FloatArray]:
    """c of every row by its logger's label."""

    def weight(rows: Rows) -> FloatArray:
        labels, inverse = np.unique(rows.logger, return_inverse=True)
        return np.array([weights.get(label, 0.0) for label in labels.tolist()])[inverse]

    return weight


_NOT_DRAWABLE = "the target gives densities only; an interval needs a target that can be drawn from (a sample method)"


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
    """By episode: Σ c, Σ w, Σ w r, Σ w (r + γV(s′) − base), Σ w², Σ V(s₀), starts, Σ w at ends; the largest weight."""

    count: FloatArray
    weight: FloatArray
    reward: FloatArray
    difference: FloatArray
    squared: FloatArray
    first_value: FloatArray
    starts: FloatArray
    ended: FloatArray
    largest: float


def score(
    problem: VectorProblem, ratio: RowRatio, name: str, *, logged: bool = False, doubly_robust: bool = False
) -> Solution:
    """The last pass, then value and scores by episode."""
    _, solved, condition = ratio.whole
    value_model = problem.value_if_drawable if not doubly_robust else problem.value
    crossed = doubly_robust and problem.cross_fit
    terms = _episode_terms(problem, ratio, value_model, name, logged=logged, crossed=crossed)
    total = float(terms.weight.sum())
    if total <= 0:
        raise UsageError("all weights are zero: the target cannot be followed on these logs")
    value, scores = (_average_value if problem.estimand.kind == "average" else _discounted_value)(
        problem, terms, doubly_robust
    )
    measures = {
        "effective_sample_size": total**2 / float(terms.squared.sum()),
        "largest_share": terms.largest / total,
        "mean_weight": total / float(terms.count.sum()),
        "condition": condition,
        "stationarity_residual": solved.residual,
    }
    if ratio.misfit is not None:
        measures["behaviour_misfit"] = ratio.misfit
    if value_model is None:
        return Solution(value, solved=solved, measures=measures, no_interval_because=_NOT_DRAWABLE)
    measures["plug_in"] = value_model.value
    return Solution(value=value, episode_scores=scores, solved=solved, measures=measures)


def _episode_terms(
    problem: VectorProblem, ratio: RowRatio, value: ValueFit | None, name: str, *, logged: bool, crossed: bool
) -> EpisodeTerms:
    largest = 0.0

    def batch(rows: Rows) -> FloatArray:
        nonlocal largest
        w = ratio.weights(rows, crossed)
        largest = max(largest, float(w.max(initial=0.0)))
        first, ended = rows.start.astype(np.float64), w * rows.terminated
        later, q, v = value.terms(rows, crossed) if value else (first * 0.0, first * 0.0, first * 0.0)
        difference = w * (rows.reward + later - (v if logged else q))
        return np.stack([ratio.weight(rows), w, w * rows.reward, difference, w**2, first * v, first, ended], axis=1)

    sums = problem.scan.by_episode(f"scores of {name}", batch, 8)
    count, weight, reward, difference, squared, first_value, starts, ended = sums.T
    return EpisodeTerms(count, weight, reward, difference, squared, first_value, starts, ended, largest)


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


def _average(parts: list[Solution]) -> Solution:
    """Plain average of solutions on disjoint loggers."""
    k = len(parts)
    scores = [p.episode_scores for p in parts if p.episode_scores is not None]
    worst = max((p.solved for p in parts), key=lambda s: s.residual)
    return Solution(
        value=sum(p.value for p in parts) / k,
        episode_scores=np.sum(scores, axis=0) / k,
        solved=worst,
        measures={
            **{key: max(p.measures[key] for p in parts) for key in parts[0].measures},
            "effective_sample_size": k**2 / sum(1.0 / max(p.measures["effective_sample_size"], 1e-300) for p in parts),
            "largest_share": max(p.measures["largest_share"] for p in parts) / k,
        },
    )


@dataclass(frozen=True)
class VectorLstdQ:
    """The plug-in value of LSTD-Q."""

    name: str = "lstdq"

    def solve(self, problem: VectorProblem) -> Solution:
        """No ratio, hence no score: the interval of ``dr`` is the one to use."""
        if problem.estimand.kind == "horizon":
            raise UsageError("'lstdq' on vectors estimates the average and the discounted value")
        return Solution(
            value=problem.value.value,
            no_interval_because=NO_SCORE,
            known_bias=PLUG_IN_BIAS,
        )


@dataclass(frozen=True)
class VectorLoggedMean:
    """Mean reward over all logged rows."""

    name: str = "logged-mean"

    def solve(self, problem: VectorProblem) -> Solution:
        """Every row counts one."""
        if problem.estimand.kind != "average":
            raise UsageError("'logged-mean' is the mean over the logged steps; it has no discount and no horizon")
        sums = problem.scan.by_episode(
            "logged mean", lambda rows: np.stack([np.ones(len(rows)), rows.reward], axis=1), 2
        )
        n, r = sums.T
        value = float(r.sum() / n.sum())
        return Solution(
            value=value, episode_scores=(r - value * n) / n.sum(), measures={"effective_sample_size": float(n.sum())}
        )
