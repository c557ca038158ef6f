"""The state-ratio seven, LSTD-Q and doubly robust EMP on features: one mechanism with the tabular family's switches.

The last pass is in :mod:`mixope.estimators.vector.scores`. ``cross_fit=True`` takes ratio and value of ``dr`` from the
other folds of the episodes: honest with few features, unstable with many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mixope.arrays import FloatArray
from mixope.behaviours.logged_rows import LoggedRows
from mixope.behaviours.rows_protocol import FittedBehaviour, RowBehaviour
from mixope.errors import UsageError
from mixope.estimators.doubly_robust import NO_SCORE, PLUG_IN_BIAS
from mixope.estimators.solution import Solution
from mixope.estimators.vector.defaults import default_behaviour, known_behaviour, nearest_logger_weights
from mixope.estimators.vector.held_out import held_out_residual
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.scores import score
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
        found = score(
            problem,
            ratio,
            self.name,
            logged=self.source == "logged",
            doubly_robust=self.doubly_robust,
            coarse=problem.coarse_ratio(key, fitted, weight),
        )
        held_out = held_out_residual(ratio)
        return found if held_out is None else replace(found, measures={**found.measures, "held_out": held_out})

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


_AVERAGED = ("approximation", "half_the_bumps", "plug_in")


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
            **{key: max(p.measures.get(key, 0.0) for p in parts) for key in parts[0].measures},
            "effective_sample_size": k**2 / sum(1.0 / max(p.measures["effective_sample_size"], 1e-300) for p in parts),
            "largest_share": max(p.measures["largest_share"] for p in parts) / k,
            **{key: sum(p.measures[key] for p in parts) / k for key in _AVERAGED if key in parts[0].measures},
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
