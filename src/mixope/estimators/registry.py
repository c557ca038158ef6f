"""All estimators by name. To add one: a file, a line here; the generic tests find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mixope.arrays import FloatArray
from mixope.errors import UnknownName
from mixope.estimators import state_action, state_ratio, trajectory
from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.model import Model
from mixope.estimators.optimal_weights import opt_emp
from mixope.estimators.solution import Solution
from mixope.problem import Problem
from mixope.statistics.trajectories import RatioColumns, Trajectories


@runtime_checkable
class Estimator(Protocol):
    """Solves from transition counts alone."""

    @property
    def name(self) -> str:
        """The name under which results show it."""
        ...

    def solve(self, problem: Problem) -> Solution:
        """From a problem to a solution; leaves no trace."""
        ...


@runtime_checkable
class TrajectoryEstimator(Protocol):
    """Needs one pass over whole episodes besides."""

    @property
    def name(self) -> str:
        """The name under which results show it."""
        ...

    def columns(self, problem: Problem) -> tuple[dict[str, FloatArray], RatioColumns]:
        """What the pass must join to the rows."""
        ...

    def solve_trajectories(self, problem: Problem, data: Trajectories) -> Solution:
        """From cumulative ratios to a solution."""
        ...


AnyEstimator = Estimator | TrajectoryEstimator


#: What an estimator may need besides the logs; with the policies of all loggers either can be had.
PROPENSITIES = "propensities, or the loggers' policies"
POLICIES = "the loggers' policies"


@dataclass(frozen=True)
class Entry:
    """How to make an estimator, what it needs, and one line on when to use it."""

    make: Callable[..., AnyEstimator]
    family: str
    when: str
    needs: str | None = None


REGISTRY: dict[str, Entry] = {
    "emp": Entry(state_ratio.emp, "state ratio", "several loggers, behaviour unknown: the default for opaque states"),
    "emp-single": Entry(state_ratio.emp_single, "state ratio", "the paper's comparison: each logger alone, averaged"),
    "kl-emp": Entry(state_ratio.kl_emp, "state ratio", "the paper's re-weighting by nearness to the target"),
    "opt-emp": Entry(opt_emp, "state ratio", "loggers whose recorders differ in noise; else it is emp"),
    "bch": Entry(state_ratio.bch, "state ratio", "propensities recorded, one logger (several: averaged)", PROPENSITIES),
    "bch-pooled": Entry(state_ratio.bch_pooled, "state ratio", "propensities recorded, several loggers", PROPENSITIES),
    "bch-kl-pooled": Entry(
        state_ratio.bch_kl_pooled, "state ratio", "the paper's re-weighting, with propensities", PROPENSITIES
    ),
    "known-mixture": Entry(state_ratio.known_mixture, "state ratio", "the loggers' policies are known", POLICIES),
    "sadl": Entry(state_action.sadl, "state–action ratio", "the paper's policy-agnostic rival"),
    "mwl": Entry(state_action.mwl, "state–action ratio", "policy-agnostic, minimax weight learning"),
    "dualdice": Entry(state_action.dualdice, "state–action ratio", "policy-agnostic, DualDICE"),
    "is": Entry(trajectory.importance_sampling, "trajectory weights", "episodes of a few steps"),
    "wis": Entry(trajectory.weighted, "trajectory weights", "episodes of a few steps"),
    "is-step": Entry(trajectory.stepwise, "trajectory weights", "short episodes"),
    "wis-step": Entry(trajectory.weighted_stepwise, "trajectory weights", "short episodes"),
    "mis": Entry(trajectory.multiple, "trajectory weights", "episodes of a few steps, several known loggers"),
    "mis-step": Entry(trajectory.multiple_stepwise, "trajectory weights", "short episodes, several known loggers"),
    "model": Entry(Model, "model", "a check on emp: the counted model, evaluated"),
    "lstdq": Entry(LstdQ, "value", "states with factors; no ratio at all"),
    "dr": Entry(DoublyRobust, "doubly robust", "states with factors: the default there"),
    "logged-mean": Entry(LoggedMean, "reference", "what the loggers earned; not an estimate of the target"),
}


def make(estimator: str | AnyEstimator) -> AnyEstimator:
    """An estimator by name, or an object as it is."""
    if not isinstance(estimator, str):
        return estimator
    if estimator not in REGISTRY:
        raise UnknownName("estimator", estimator, [*REGISTRY, "auto"])
    return REGISTRY[estimator].make()
