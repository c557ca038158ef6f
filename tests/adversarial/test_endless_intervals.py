"""An interval without ends, or around something that is no number, is never green."""

from types import SimpleNamespace

import numpy as np
import pytest

from mixope.checks import Evidence, has_interval
from mixope.estimators.solution import Solution
from mixope.uncertainty import Interval
from mixope.uncertainty.choice import Uncertainty

ENDLESS = [(0.5, -np.inf, np.inf), (0.5, 0.4, np.inf), (np.nan, 0.4, 0.6), (0.5, np.nan, np.nan), (np.inf, 0.4, 0.6)]


@pytest.mark.parametrize("ends", ENDLESS)
def test_it_fails_its_check(ends):
    value, low, high = ends
    found = Evidence(Solution(value), Uncertainty(Interval(low, high, 0.95, "t")), SimpleNamespace())
    assert has_interval(found).status == "fail"


def test_an_interval_that_ends_passes():
    found = Evidence(Solution(0.5), Uncertainty(Interval(0.4, 0.6, 0.95, "t")), SimpleNamespace())
    assert has_interval(found) is None
