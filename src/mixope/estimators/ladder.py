"""How far a value moves with memory: by k, the value, its scores, and how many episodes its windows are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.requests.clusters import Clusters


@dataclass(frozen=True)
class ScoredStep:
    """The value with so many rows in view; ``scores`` are by episode."""

    memory: int
    value: float
    scores: FloatArray = field(repr=False, compare=False)
    effective: float = 0.0


@dataclass(frozen=True)
class MemoryStep:
    """The value with so many rows in view, and the difference from one row, each with its standard error.

    ``effective_episodes`` is how many episodes of equal weight the windows of so many rows are worth.
    """

    memory: int
    value: float
    standard_error: float
    difference: float
    difference_error: float
    effective_episodes: float


@dataclass(frozen=True)
class MemoryUsed:
    """How many rows are in view, whether that was chosen from the logs, and how far the value moves with it."""

    used: int
    automatic: bool
    steps: tuple[MemoryStep, ...]


@dataclass(frozen=True)
class Ladder:
    """All k that were looked at, the first of them 1, and the one that is used."""

    steps: Sequence[ScoredStep]
    used: int
    automatic: bool

    def moved(self, clusters: Clusters | None) -> tuple[float, FloatArray]:
        """By how much the memory that is used moves the value, and the scores of that by cluster."""
        plain, used = self.steps[0], next(step for step in self.steps if step.memory == self.used)
        scores = used.scores - plain.scores
        return used.value - plain.value, scores if clusters is None else clusters.scores(scores)

    def described(self, clusters: Clusters) -> MemoryUsed:
        """With standard errors by episode, or by unit."""
        plain = self.steps[0]

        def error(scores: FloatArray) -> float:
            return error_of(clusters.scores(scores))

        found = [
            MemoryStep(
                step.memory,
                step.value,
                error(step.scores),
                step.value - plain.value,
                error(step.scores - plain.scores),
                step.effective,
            )
            for step in self.steps
        ]
        return MemoryUsed(self.used, self.automatic, tuple(found))


def error_of(scores: FloatArray) -> float:
    """The standard error of a sum of scores by cluster."""
    m = len(scores)
    return float(np.sqrt(m / max(m - 1, 1) * np.sum(scores**2)))
