"""Estimators: one file a family, and a registry."""

from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.model import Model
from mixope.estimators.registry import REGISTRY, AnyEstimator, Entry, Estimator, TrajectoryEstimator, make
from mixope.estimators.solution import Solution, Weights
from mixope.estimators.state_action import StateAction
from mixope.estimators.state_ratio import StateRatio
from mixope.estimators.trajectory import Trajectory

__all__ = [
    "REGISTRY",
    "AnyEstimator",
    "DoublyRobust",
    "Entry",
    "Estimator",
    "LoggedMean",
    "LstdQ",
    "Model",
    "Solution",
    "StateAction",
    "StateRatio",
    "Trajectory",
    "TrajectoryEstimator",
    "Weights",
    "make",
]
