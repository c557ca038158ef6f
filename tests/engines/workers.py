"""Engines of several workers, each started once for all tests that use it; and what must be there for it."""

import importlib.util
import shutil
from functools import cache

import pytest

from mixope.engines import make

NEEDS = {"processes": (), "dask": ("distributed",), "ray": ("ray",), "spark": ("pyspark", "pandas")}
OPTIONS = {"workers": 2}


def missing(name):
    """What to install before this engine can be tested; None if it is all there."""
    absent = [module for module in NEEDS[name] if importlib.util.find_spec(module) is None]
    if absent:
        return f"{', '.join(absent)} not installed: pip install 'mixope[{name}]'"
    if name == "spark" and shutil.which("java") is None:
        return "Spark needs Java: apt-get install default-jre-headless"
    return None


def parameter(name):
    """An engine as a parameter of a test: those that take long to start are left to the long tests."""
    marks = [] if name == "processes" else [pytest.mark.long]
    reason = missing(name)
    return pytest.param(name, marks=[*marks, pytest.mark.skipif(reason is not None, reason=reason or "")])


@cache
def started(name):
    """The engine, whose workers start when they are first needed and end with the tests."""
    return make(name, **OPTIONS)


def engine(name, fragment_rows=None, ordered=None):
    """The same workers, with logs cut otherwise."""
    made = started(name)
    made.fragment_rows, made.ordered = fragment_rows, ordered
    return made
