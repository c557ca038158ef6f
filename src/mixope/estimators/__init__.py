"""Estimators: one file per family, and a registry."""

from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.model import Model
from mixope.estimators.registry import REGISTRY, Entry, Estimator, check_takes, entries, entry_of, ignores_loggers, make
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.estimators.state_action import StateAction
from mixope.estimators.state_ratio import StateRatio
from mixope.estimators.trajectory import Trajectory

__all__ = [
    "REGISTRY",
    "DoublyRobust",
    "Entry",
    "Estimator",
    "LoggedMean",
    "LstdQ",
    "Measures",
    "Model",
    "Solution",
    "StateAction",
    "StateRatio",
    "Trajectory",
    "Weights",
    "check_takes",
    "entries",
    "entry_of",
    "ignores_loggers",
    "make",
]
