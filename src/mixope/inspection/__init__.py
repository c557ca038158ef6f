"""What is in these logs, before any estimate."""

from mixope.inspection.passes import cover, coverage_of, inspect
from mixope.inspection.records import Columns, Component, Contents, Coverage, Gap, Inspection, Vectors

__all__ = [
    "Columns",
    "Component",
    "Contents",
    "Coverage",
    "Gap",
    "Inspection",
    "Vectors",
    "cover",
    "coverage_of",
    "inspect",
]
