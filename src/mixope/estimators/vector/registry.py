"""The estimators for vectors by name: the names of the tabular registry, where they make sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mixope.errors import UnknownName, UsageError
from mixope.estimators import trajectory
from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.model import Model
from mixope.estimators.registry import REGISTRY
from mixope.estimators.solution import Solution
from mixope.estimators.state_action import StateAction
from mixope.estimators.state_ratio import StateRatio
from mixope.estimators.trajectory import Trajectory
from mixope.estimators.vector import state_action
from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.state_ratio import VectorLoggedMean, VectorLstdQ, VectorRatio
from mixope.estimators.vector.trajectory import VectorTrajectory


@runtime_checkable
class VectorEstimator(Protocol):
    """Solves by passes over rows."""

    @property
    def name(self) -> str:
        """The name under which results show it."""
        ...

    def solve(self, problem: VectorProblem) -> Solution:
        """From a problem to a solution."""
        ...


@dataclass(frozen=True)
class NeedsCounts:
    """An estimator that exists for countable states only: refuses when it is asked."""

    name: str

    def solve(self, problem: VectorProblem) -> Solution:
        """There is nothing to count."""
        raise UsageError(f"{self.name!r} needs states that can be counted; these logs have vectors. Use 'dr' or 'emp'")


VECTOR_REGISTRY: dict[str, Callable[[], VectorEstimator]] = {
    "emp": lambda: VectorRatio("emp"),
    "emp-single": lambda: VectorRatio("emp-single", pooled=False),
    "kl-emp": lambda: VectorRatio("kl-emp", nearest=True),
    "bch": lambda: VectorRatio("bch", "logged", pooled=False),
    "bch-pooled": lambda: VectorRatio("bch-pooled", "logged"),
    "bch-kl-pooled": lambda: VectorRatio("bch-kl-pooled", "logged", nearest=True),
    "known-mixture": lambda: VectorRatio("known-mixture", "known"),
    "sadl": state_action.sadl,
    "mwl": state_action.mwl,
    "dualdice": state_action.dualdice,
    "is": lambda: VectorTrajectory(trajectory.importance_sampling()),
    "wis": lambda: VectorTrajectory(trajectory.weighted()),
    "is-step": lambda: VectorTrajectory(trajectory.stepwise()),
    "wis-step": lambda: VectorTrajectory(trajectory.weighted_stepwise()),
    "mis": lambda: VectorTrajectory(trajectory.multiple()),
    "mis-step": lambda: VectorTrajectory(trajectory.multiple_stepwise()),
    "lstdq": VectorLstdQ,
    "dr": lambda: VectorRatio("dr", doubly_robust=True),
    "logged-mean": VectorLoggedMean,
}


def make_vector(estimator: str | VectorEstimator) -> VectorEstimator:
    """By name, or an object as it is."""
    if not isinstance(estimator, str):
        if isinstance(estimator, (StateRatio, StateAction, Model, DoublyRobust, LstdQ, LoggedMean, Trajectory)):
            raise UsageError(
                f"this {estimator.name!r} is made for states that can be counted, and these logs have vectors; give it"
                " by name, or as an object of mixope.estimators.vector"
            )
        if not isinstance(estimator, VectorEstimator):
            raise UsageError(f"{estimator!r} is not an estimator")
        return estimator
    if estimator in VECTOR_REGISTRY:
        return VECTOR_REGISTRY[estimator]()
    if estimator in REGISTRY:
        return NeedsCounts(estimator)
    raise UnknownName("estimator", estimator, [*VECTOR_REGISTRY, "auto"])
