"""An interval that holds nearly all that rewards and lengths allow is a warning."""

import numpy as np
import pytest

import mixope


def sessions(n, seed=0, *, ends=0.1):
    """Two actions, one state, a reward of one for every step until a chance end."""
    generator = np.random.default_rng(seed)
    length = generator.geometric(ends, n)
    step = np.concatenate([np.arange(k) for k in length])
    return {
        "episode_id": np.repeat(np.arange(n), length),
        "step": step,
        "observation": np.zeros(len(step), dtype=int),
        "action": generator.integers(0, 2, len(step)),
        "reward": np.ones(len(step)),
        "next_observation": np.zeros(len(step), dtype=int),
        "terminated": step == np.repeat(length, length) - 1,
    }


def width(result):
    return {check.name: check for check in result.diagnostics}.get("interval width")


TARGET = mixope.TabularPolicy(np.array([[0.5, 0.5]]))


def test_an_interval_of_a_number_of_steps_is_held_against_the_longest_episode():
    columns = sessions(200)
    found = width(mixope.evaluate(columns, TARGET, "emp", estimand="episode"))
    longest = np.bincount(columns["episode_id"]).max()
    assert found.status == "pass"
    assert f"1 to {longest}" in found.sentence


def test_an_interval_that_holds_all_that_is_possible_is_not_trustworthy():
    """Two kinds of rewards, and five episodes that all earned one kind throughout."""
    columns = sessions(6, seed=3)
    columns["reward"] = (columns["episode_id"] % 2).astype(float)
    result = mixope.evaluate(columns, TARGET, "emp")
    found = width(result)
    assert found.status == "warn"
    assert found.value == pytest.approx(1.0, abs=0.25)
    assert result.verdict != "trustworthy"


def test_where_all_rewards_are_alike_nothing_is_said():
    assert width(mixope.evaluate(sessions(50), TARGET, "emp")) is None
