"""Scores of several targets side by side, and the joint law of their values.

Scores s_{ek} of m episodes e for target k have the covariance m/(m−1) Σ_e s_{ek} s_{el}, and the values deviate from
the truth by a multivariate t law with that covariance and m − 1 degrees of freedom. What cannot be had in closed form
is drawn from it, always with the same seed, and for the targets in an order that their numbers alone decide: neither
their names nor the order in which they were given change anything.

Differences are in :mod:`mixope.differences.pairs`, places and regret in :mod:`mixope.differences.selection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.uncertainty import few_clusters

DRAWS, MOST_DRAWN = 50_000, 4_000_000
"""Draws of all targets, fewer where there would be more numbers than this in all."""

SAME = 1e-12
"""Of the size of the values: JSON shows as many digits."""


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
        return float(min(len(self.scores) - 1, self.at_most))

    @property
    def covariance(self) -> FloatArray:
        """m/(m−1) Σ_e s_e s_eᵀ."""
        return np.asarray(few_clusters(len(self.scores)) * (self.scores.T @ self.scores))

    @property
    def rounding(self) -> float:
        """What differs by no more than this is the same."""
        return float(SAME * (np.abs(self.values).max() + np.sqrt(np.diag(self.covariance).max())))

    @property
    def order(self) -> list[int]:
        """The targets from the best value to the worst; equal values by their scores, the same target by its name."""
        columns = np.ascontiguousarray(self.scores.T)
        return sorted(range(len(self.names)), key=lambda k: (-self.values[k], columns[k].tobytes(), self.names[k]))

    def take(self, places: Sequence[int]) -> JointScores:
        """Some of them, in this order."""
        chosen = list(places)
        names = tuple(self.names[k] for k in chosen)
        return JointScores(names, self.values[chosen], self.scores[:, chosen], self.at_most)

    def draws(self, seed: int) -> FloatArray:
        """Deviations of the values from the truth by the multivariate t law, shape (draws, targets).

        Every draw comes with its mirror image. The symmetric root of the covariance changes little where the
        covariance does, so that rounding leaves the draws what they are.
        """
        half = min(DRAWS, MOST_DRAWN // len(self.values)) // 2
        generator = np.random.default_rng([seed, 17])
        order = self.order
        spread, directions = np.linalg.eigh(self.take(order).covariance)
        spread = np.where(spread > len(order) * np.finfo(float).eps * spread.max(), spread, 0.0)
        normal = generator.standard_normal((half, len(order))) @ ((directions * np.sqrt(spread)) @ directions.T)
        normal *= np.sqrt(self.degrees / generator.chisquare(self.degrees, size=(half, 1)))
        found = np.empty((2 * half, len(order)))
        found[:half, order], found[half:, order] = normal, -normal
        return found

    def beside(self, other: JointScores) -> JointScores:
        """Both, on the same clusters."""
        return JointScores(
            (*self.names, *other.names),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.scores, other.scores], axis=1),
            min(self.at_most, other.at_most),
        )
