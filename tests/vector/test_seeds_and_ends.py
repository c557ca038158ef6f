"""Long seeds on vectors, and folds in which no episode ends."""

import numpy as np
import pytest

import mixope
from mixope.features import OneHot
from mixope.policies import uniform

N = 20
STATE = np.random.default_rng(1).normal(size=(N + 1, 2))
COLUMNS = {
    "episode_id": np.arange(N) // 4,
    "step": np.arange(N) % 4,
    "observation": STATE[:-1],
    "next_observation": STATE[1:],
    "action": np.random.default_rng(2).integers(0, 2, N),
    "reward": np.arange(N) % 3 / 2.0,
}


@pytest.mark.parametrize("seed", [2**32, 2**64 - 1])
@pytest.mark.long
def test_every_seed_of_64_bits_serves(seed):
    assert np.isfinite(mixope.evaluate(COLUMNS, uniform([0, 1]), seed=seed).value)


def test_one_episode_that_ends_leaves_folds_without_an_end():
    ids = {"observation": np.arange(N) % 4, "next_observation": (np.arange(N) + 1) % 4}
    columns = {**COLUMNS, **ids, "terminated": np.arange(N) == N - 1, "truncated": np.arange(N) % 4 == 3}
    columns["truncated"][-1] = False
    found = mixope.evaluate(columns, uniform([0, 1]), "lstdq", estimand="episode", features=OneHot())
    assert np.isfinite(found.value)
