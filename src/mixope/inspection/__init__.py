"""What is in these logs, before any estimate."""

from mixope.inspection.passes import cover, coverage_of, inspect
from mixope.inspection.records import Columns, Component, Contents, Coverage, Gap, Inspection, StateColumn, Vectors

__all__ = [
    "Columns",
    "Component",
    "Contents",
    "Coverage",
    "Gap",
    "Inspection",
    "StateColumn",
    "Vectors",
    "cover",
    "coverage_of",
    "inspect",
]
