"""What is in these logs, before any estimate."""

from mixope.inspection.coverage import cover
from mixope.inspection.grids import Cell, Grid
from mixope.inspection.passes import coverage_of, inspect
from mixope.inspection.records import Columns, Component, Contents, Coverage, Gap, Inspection, StateColumn, Vectors

__all__ = [
    "Cell",
    "Columns",
    "Component",
    "Contents",
    "Coverage",
    "Gap",
    "Grid",
    "Inspection",
    "StateColumn",
    "Vectors",
    "cover",
    "coverage_of",
    "inspect",
]
