"""Episodes that go on after their end, in rows of nothing, are no world in which nothing happens."""

import numpy as np
import pytest

import mixope
from mixope.policies import LinearGaussianPolicy

LAST = 5
TARGET = mixope.TabularPolicy(np.tile([0.4, 0.6], (LAST + 1, 1)))
DRAWN = LinearGaussianPolicy(np.zeros((1, 2)), np.full(1, 0.2), np.ones(1))


def padded(nothing=0.0, episodes=60, steps=25, seed=0):
    """Rounds that end with a chance of one in six at every step; the rest of an episode is padding in state 5."""
    draw = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state = int(draw.integers(0, LAST))
        for step in range(steps):
            action, over = int(draw.integers(0, 2)), state == LAST
            after = LAST if over or draw.random() < 1 / 6 else int(draw.integers(0, LAST))
            reward = nothing if over else 1.0 + action + draw.normal()
            rows.append((episode, step, state, action, reward, after, step == steps - 1))
            state = after
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def mended(columns):
    """The same logs as they should be."""
    alive = columns["observation"] != LAST
    kept = {name: values[alive] for name, values in columns.items()}
    return {**kept, "terminated": kept["next_observation"] == LAST}


def check(columns, target=TARGET, **question):
    found = mixope.evaluate(columns, target, **question)
    return found, {d.name: d for d in found.diagnostics}.get("absorbing states")


@pytest.mark.parametrize("nothing", [0.0, -1.0])
def test_the_average_of_padded_episodes_is_doubted(nothing):
    found, doubt = check(padded(nothing))
    assert found.value == nothing
    assert doubt.status == "warn"
    assert doubt.value == pytest.approx(1.0)
    assert found.verdict == "caution"


def test_a_discounted_value_is_what_it_would_be_if_padding_earns_nothing():
    question = {"estimand": "discounted", "gamma": 0.9}
    found, doubt = check(padded(), **question)
    assert doubt is None
    assert found.value == pytest.approx(mixope.evaluate(mended(padded()), TARGET, **question).value)
    assert check(padded(-1.0), **question)[1].status == "warn"


def test_ends_that_are_marked_are_not_doubted():
    assert check(mended(padded()))[1] is None


def test_a_state_that_earns_now_this_now_that_is_a_world():
    columns = padded()
    over = columns["observation"] == LAST
    columns["reward"][over] = np.random.default_rng(1).normal(size=over.sum())
    assert check(columns)[1] is None


def test_a_world_of_one_state_is_one():
    columns = padded()
    columns |= {"observation": 0 * columns["observation"], "next_observation": 0 * columns["observation"]}
    columns["reward"] = 0.0 * columns["reward"] + 1.0
    assert check(columns)[1] is None


def as_factors(columns):
    two = {
        name: np.stack([columns[name] // 3, columns[name] % 3], axis=1) for name in ("observation", "next_observation")
    }
    return {**columns, **two}


def test_factors_are_judged_as_ids_are():
    target = mixope.CallablePolicy(lambda states: np.tile([0.4, 0.6], (len(states), 1)), actions=[0, 1])
    found, doubt = check(as_factors(padded()), target, estimator="emp")
    assert found.value == 0.0
    assert doubt.status == "warn"


def vectors(zeros, seed=0, episodes=50, steps=20, stops=True):
    draw = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state, over = draw.normal(size=2), False
        for step in range(steps):
            action = draw.normal(size=1)
            after = state if over else 0.8 * state + 0.3 * draw.normal(size=2)
            reward = 0.0 if over else 1.0 + action[0]
            if not over and stops and draw.random() < 0.15:
                over, after = True, np.zeros(2) if zeros else after
            rows.append((episode, step, state, action, reward, after, step == steps - 1))
            state = after
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "truncated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("zeros", [True, False])
def test_vectors_that_are_written_again_and_again_are_doubted(zeros):
    """Whether padding is zeros, or the last state of every episode."""
    found, doubt = check(vectors(zeros), DRAWN, estimator="emp")
    assert doubt.status == "warn"
    assert found.measures.parked_share > 0.3
    assert check(vectors(zeros, stops=False), DRAWN, estimator="emp")[1] is None
