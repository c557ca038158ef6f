"""Without JAX, whatever needs it says how to install it; nothing else changes."""

import sys

import numpy as np
import pytest

from mixope.base.errors import MissingExtra
from mixope.estimators.neural import NeuralRatio
from mixope.solvers.neural import NeuralRows, NeuralSettings, train


@pytest.fixture
def no_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)


def test_the_solver_names_the_extra(no_jax):
    rows = NeuralRows(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(3), np.ones(3), np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(MissingExtra, match=r"a neural ratio needs .* pip install 'mixope\[jax\]'"):
        train(rows, np.zeros((1, 3), dtype=bool), NeuralSettings())


def test_the_estimator_says_so_before_it_scans(no_jax):
    with pytest.raises(MissingExtra, match=r"mixope\[jax\]"):
        next(NeuralRatio().solve(None))  # the logs are not looked at
