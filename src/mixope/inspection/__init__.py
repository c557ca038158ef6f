"""What is in these logs, before any estimate."""

from mixope.inspection.coverage import cover
from mixope.inspection.inspection import Inspection, component_words, words
from mixope.inspection.passes import coverage_of, inspect
from mixope.inspection.records import Columns, Component, Contents, Coverage, Gap, Vectors

__all__ = [
    "Columns",
    "Component",
    "Contents",
    "Coverage",
    "Gap",
    "Inspection",
    "Vectors",
    "component_words",
    "cover",
    "coverage_of",
    "inspect",
    "words",
]
