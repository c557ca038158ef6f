"""Estimators on features of vector states: the same names as the tabular ones."""

from mixope.estimators.vector.problem import VectorProblem
from mixope.estimators.vector.registry import VECTOR_REGISTRY, VectorEstimator, make_vector
from mixope.estimators.vector.scan import Scan
from mixope.estimators.vector.state_action import VectorPairs
from mixope.estimators.vector.state_ratio import VectorLstdQ, VectorRatio
from mixope.estimators.vector.trajectory import VectorTrajectory

__all__ = [
    "VECTOR_REGISTRY",
    "Scan",
    "VectorEstimator",
    "VectorLstdQ",
    "VectorPairs",
    "VectorProblem",
    "VectorRatio",
    "VectorTrajectory",
    "make_vector",
]
