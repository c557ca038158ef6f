"""Sums that overflow, shares of nobody and features without a mean: said in words, with no warning of NumPy's."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.features import Standardise
from mixope.solvers.linear import Whitening, solve_ratio

N = 24
COLUMNS = {
    "episode_id": np.arange(N) // 4,
    "step": np.arange(N) % 4,
    "observation": np.arange(N) % 3,
    "next_observation": (np.arange(N) + 1) % 3,
    "action": np.arange(N) % 2,
    "reward": np.arange(N) % 5 / 4.0,
}


def test_an_inspection_shows_numbers_whose_squares_overflow():
    far = np.where(np.arange(N) % 2, 1e300, -1e300)[:, None]
    found = mixope.inspect({**COLUMNS, "observation": far, "next_observation": -far})
    assert "cannot be used" in found.full()
    assert found.vectors.observations[0].highest == 1e300


def test_a_logger_whose_starts_are_not_known_has_no_share_of_the_mixture():
    late = np.where(COLUMNS["episode_id"] % 2, 1, 0)
    columns = {**COLUMNS, "step": COLUMNS["step"] + late, "policy_id": np.array(["old", "late"])[late]}
    assert np.isfinite(mixope.evaluate(columns, [[0.5, 0.5]] * 3, "mis").value)


def test_features_without_a_mean_are_refused():
    with pytest.raises(UsageError, match="average to zero"):
        solve_ratio(np.eye(2), None, np.zeros(2), np.eye(2))
    with pytest.raises(UsageError, match="all features are zero"):
        Whitening.of(np.zeros((2, 2)))
    with pytest.raises(UsageError, match="average to zero"):
        mixope.evaluate(COLUMNS, mixope.TabularPolicy([[0.5, 0.5]] * 3), "emp", features=Standardise())
