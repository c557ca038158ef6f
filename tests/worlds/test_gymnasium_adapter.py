"""Every model passes Gymnasium's own checker and steps by its own law."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import BUILDERS, make

gymnasium = pytest.importorskip("gymnasium")
adapter = pytest.importorskip("mixope.worlds.gymnasium_adapter")
PREFIX = "mixope.worlds.gymnasium_adapter:"


@pytest.mark.parametrize("name", BUILDERS)
def test_gymnasium_checker_is_content(name):
    from gymnasium.utils.env_checker import check_env

    check_env(gymnasium.make(PREFIX + adapter.environment_id(name)).unwrapped)


def test_ids_and_options():
    assert adapter.environment_id("gridworld-slip") == "mixope/GridworldSlip-v0"
    env = gymnasium.make(PREFIX + "mixope/Taxi-v0", pickup_bonus=True)
    assert 20.0 in env.unwrapped.model.reward[env.unwrapped.model.entry_rows() % 6 == 4]


def test_steps_follow_the_model():
    model, env = make("singlepath"), adapter.build("singlepath")
    env.reset(seed=0)
    env._state, forward = 0, 0
    for _ in range(2000):
        env._state = 0
        following, reward, terminated, truncated, _ = env.step(0)
        assert (reward, terminated, truncated) == (1.0 if following == 1 else -1.0, False, False)
        forward += following
    assert abs(forward / 2000 - 0.9) < 4 * np.sqrt(0.09 / 2000)
    assert model.n_states == env.observation_space.n


def test_walk_terminates():
    env = adapter.build("walk", stay=0.0)
    env.reset(seed=0)
    assert [env.step(1)[2] for _ in range(3)][-1]


def test_misuse_is_an_error():
    env = adapter.build("walk")
    with pytest.raises(UsageError, match="reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(UsageError, match="action"):
        env.step(7)
