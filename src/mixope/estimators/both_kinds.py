"""An estimator for logs of both kinds: one method on counts of transitions, one on features of states.

Whoever derives from :class:`BothKinds` writes ``on_counts`` and ``on_features``; the problem knows which of them
applies. An estimator for one kind only writes ``solve`` itself, and its entry in the registry says what it takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mixope.estimators.asking import Asking
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Solution
from mixope.requests.problem import Problem


class BothKinds(ABC):
    """Solves problems of both kinds, each in its own way."""

    def solve(self, problem: Problem | FeatureProblem) -> Asking[Solution]:
        """In the way of the logs."""
        return problem.either(self.on_counts, self.on_features)

    @abstractmethod
    def on_counts(self, problem: Problem) -> Asking[Solution]:
        """Where states and actions are counted."""

    @abstractmethod
    def on_features(self, problem: FeatureProblem) -> Asking[Solution]:
        """Where they are numbers, described by features."""
