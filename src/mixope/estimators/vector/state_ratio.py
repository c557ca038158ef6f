"""The state-ratio seven, LSTD-Q and doubly robust EMP on features: one mechanism with the tabular family's switches.

A last pass sums, by episode,  w = c ω ρ,  w r  and  w (r + γV(s′) − q(s,a))  or  w (r + γV(s′) − V(s)), from which

    emp and its kin    η = Σ w r / Σ w                    score  w (r − η + V(s′) − q(s,a)) / Σ w   (logged: V(s) for q)
    dr (average)       η = Σ w (r + V(s′) − q) / Σ w      score  w (r + V(s′) − q − η) / Σ w
    dr (discounted)    η = (1−γ) E_μ₀ V + Σ w (r + γV(s′) − q) / N,   N the rows, with the start term (1−γ)(V(s₀) − E V)

V and q come from :mod:`mixope.estimators.vector.value`. For ``dr`` ratio and value are cross-fitted by episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.per_logger_rows import PerLoggerRows
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.solution import Solution
from mixope.estimators.vector.defaults import default_behaviour, known_behaviour, nearest_logger_weights
from mixope.estimators.vector.problem import VectorProblem
from mixope.solvers.outcome import Solved
from mixope.statistics.rows import Rows

Source = Literal["mixture", "per logger", "logged", "known"]


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
        key = f"{self.source} {type(self.behaviour).__name__} {sorted(weights.items())}"
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
        behaviour = self.behaviour or default_behaviour(problem)
        if self.source == "per logger":
            behaviour = PerLoggerRows(behaviour)
        return problem.fitted(behaviour, key, c)


def _weight_of(weights: dict[str, float]) -> Callable[[Rows], FloatArray]:
    """c of every row by its logger's label."""

    def weight(rows: Rows) -> FloatArray:
        labels, inverse = np.unique(rows.logger, return_inverse=True)
        return np.array([weights.get(label, 0.0) for label in labels.tolist()])[inverse]

    return weight


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
    """By episode: Σ c, Σ w, Σ w r, Σ w (r + γV(s′) − base), Σ w², Σ V(s₀), starts; and the largest single weight."""

    count: FloatArray
    weight: FloatArray
    reward: FloatArray
    difference: FloatArray
    squared: FloatArray
    first_value: FloatArray
    starts: FloatArray
    largest: float


def score(
    problem: VectorProblem, ratio: RowRatio, name: str, *, logged: bool = False, doubly_robust: bool = False
) -> Solution:
    """The last pass, then value and scores by episode."""
    _, solved, condition = ratio.whole
    plug_in = problem.value.value
    terms = _episode_terms(problem, ratio, name, logged=logged, crossed=doubly_robust)
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
        "plug_in": plug_in,
    }
    if ratio.misfit is not None:
        measures["behaviour_misfit"] = ratio.misfit
    return Solution(value=value, episode_scores=scores, solved=solved, measures=measures)


def _episode_terms(problem: VectorProblem, ratio: RowRatio, name: str, *, logged: bool, crossed: bool) -> EpisodeTerms:
    largest = 0.0

    def batch(rows: Rows) -> FloatArray:
        nonlocal largest
        w = ratio.weights(rows, crossed)
        largest = max(largest, float(w.max(initial=0.0)))
        later, q, v = problem.value.terms(rows, crossed)
        difference = w * (rows.reward + later - (v if logged else q))
        first = rows.start.astype(np.float64)
        return np.stack([ratio.weight(rows), w, w * rows.reward, difference, w**2, first * v, first], axis=1)

    sums = problem.scan.by_episode(f"scores of {name}", batch, 7)
    count, weight, reward, difference, squared, first_value, starts = sums.T
    return EpisodeTerms(count, weight, reward, difference, squared, first_value, starts, largest)


def _average_value(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    total = float(terms.weight.sum())
    corrected = float(terms.difference.sum()) / total
    value = corrected if doubly_robust else float(terms.reward.sum()) / total
    return value, (terms.difference - terms.weight * corrected) / total


def _discounted_value(problem: VectorProblem, terms: EpisodeTerms, doubly_robust: bool) -> tuple[float, FloatArray]:
    """Self-normalised by Σw where nothing ends (the ratio then has mass one), by Σc where something does."""
    gamma = problem.value.design.gamma
    base = terms.count if problem.value.moments["ends"].any() else terms.weight
    size, n_starts = float(base.sum()), max(float(terms.starts.sum()), 1.0)
    first = float(terms.first_value.sum()) / n_starts
    correction = float(terms.difference.sum()) / size
    scores = (terms.difference - correction * base) / size
    scores = scores + (1 - gamma) * (terms.first_value - first * terms.starts) / n_starts
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
            "effective_sample_size": sum(p.measures["effective_sample_size"] for p in parts),
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
            no_interval_because="a plug-in value has no score of its own; 'dr' corrects it and has an interval",
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
