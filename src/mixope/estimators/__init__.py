"""Estimators: one file per family, and a registry."""

from mixope.base.moved import renamed
from mixope.estimators.doubly_robust import DoublyRobust, LstdQ
from mixope.estimators.latent_classes import LatentClasses
from mixope.estimators.logged_mean import LoggedMean
from mixope.estimators.memory import Memory, Remembering, check_memory
from mixope.estimators.model import CertaintyEquivalence
from mixope.estimators.registry import (
    REGISTRY,
    Entry,
    Estimator,
    canonical,
    check_takes,
    entries,
    entry_of,
    ignores_loggers,
    make,
)
from mixope.estimators.solution import Measures, Solution, Weights
from mixope.estimators.state_action import StateAction
from mixope.estimators.state_ratio import StateRatio
from mixope.estimators.trajectory import Trajectory

__getattr__ = renamed(__name__, {"Model": "mixope.estimators.CertaintyEquivalence"})
__all__ = [
    "REGISTRY",
    "CertaintyEquivalence",
    "DoublyRobust",
    "Entry",
    "Estimator",
    "LatentClasses",
    "LoggedMean",
    "LstdQ",
    "Measures",
    "Memory",
    "Remembering",
    "Solution",
    "StateAction",
    "StateRatio",
    "Trajectory",
    "Weights",
    "canonical",
    "check_memory",
    "check_takes",
    "entries",
    "entry_of",
    "ignores_loggers",
    "make",
]
