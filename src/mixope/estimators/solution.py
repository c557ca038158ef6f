"""What an estimator hands on: a value, how it weighed the rows, and per-row scores that make an interval."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mixope.arrays import FloatArray
from mixope.estimators.weight_bins import WeightBin
from mixope.solvers.outcome import Outcome, Solved


@dataclass(frozen=True)
class Weights:
    """The importance weights of the rows by group: Σ w, Σ w², and the largest single one (or a bound on it)."""

    total: FloatArray
    squared: FloatArray
    largest: float

    def effective_sample_size(self, groups: FloatArray | None = None) -> float:
        """(Σ w)² / Σ w², of all rows or of some groups (a mask of zeros and ones)."""
        total, squared = (self.total, self.squared) if groups is None else (self.total * groups, self.squared * groups)
        denominator = float(squared.sum())
        return float(total.sum()) ** 2 / denominator if denominator > 0 else 0.0


@dataclass(frozen=True)
class Solution:
    """An estimate before it is dressed for a reader.

    ``scores`` has one row a group and one column a basis quantity (:data:`mixope.statistics.transitions.BASIS`): the
    influence of a logged row on the value is its basis times these. ``episode_scores`` are the same, already
    summed by episode, for estimators that look at whole trajectories. One of them, or neither, is present. The same
    holds for ``weights`` and ``episode_weights``.
    """

    value: float
    weights: Weights | None = None
    scores: FloatArray | None = None
    episode_scores: FloatArray | None = None
    uncovered_mass: float = 0.0
    outside_mass: float = 0.0
    solved: Solved = field(default_factory=lambda: Solved(Outcome.CERTAIN, 0.0))
    measures: dict[str, float] = field(default_factory=dict)
    no_interval_because: str | None = None
    known_bias: str | None = None
    weight_bins: tuple[WeightBin, ...] = ()
    episode_weights: Weights | None = None
    corrects_coverage: bool = False
    """Whether a value model stands in for what was never logged."""


def combine(parts: list[Solution], shares: list[float]) -> Solution:
    """The weighted average of several solutions, each on its own rows: values, scores and masses average alike."""
    weights = [p.weights for p in parts]
    scores = [p.scores for p in parts]
    merged = None
    if all(w is not None for w in weights):
        merged = Weights(
            np.sum([s * w.total / w.total.sum() for s, w in zip(shares, weights, strict=True) if w], axis=0),
            np.sum([(s / w.total.sum()) ** 2 * w.squared for s, w in zip(shares, weights, strict=True) if w], axis=0),
            max(s * w.largest / float(w.total.sum()) for s, w in zip(shares, weights, strict=True) if w),
        )
    worst = max((p.solved for p in parts), key=lambda s: (not s.ok, s.residual))
    return Solution(
        value=sum(s * p.value for s, p in zip(shares, parts, strict=True)),
        weights=merged,
        scores=None
        if any(x is None for x in scores)
        else np.sum([s * x for s, x in zip(shares, scores, strict=True) if x is not None], axis=0),
        uncovered_mass=sum(s * p.uncovered_mass for s, p in zip(shares, parts, strict=True)),
        outside_mass=sum(s * p.outside_mass for s, p in zip(shares, parts, strict=True)),
        solved=worst,
        measures={k: max(p.measures.get(k, 0.0) for p in parts) for k in parts[0].measures},
        no_interval_because=next((p.no_interval_because for p in parts if p.no_interval_because), None),
        known_bias=next((p.known_bias for p in parts if p.known_bias), None),
    )
