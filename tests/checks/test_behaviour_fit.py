"""A misfit of the behaviour is judged by how far it moves the value, and by what the value rests on."""

from functools import cache

import numpy as np
import pytest

import mixope

ACTIONS = np.arange(2)


def on_ids(n, seed=0, states=4):
    """A ring of states; the loggers go on with a chance that depends on the state, going on pays."""
    generator = np.random.default_rng(seed)
    state, chance = np.zeros((n // 20, 21), dtype=int), np.array([0.3, 0.5, 0.6, 0.8])
    action = np.zeros((n // 20, 20), dtype=int)
    for t in range(20):
        action[:, t] = generator.random(n // 20) < chance[state[:, t]]
        moved = np.where(generator.random(n // 20) < 0.2, 0, action[:, t])
        state[:, t + 1] = (state[:, t] + moved) % states
    here, done = state[:, :-1].ravel(), action.ravel()
    return {
        "episode_id": np.repeat(np.arange(n // 20), 20),
        "step": np.tile(np.arange(20), n // 20),
        "observation": here,
        "action": done,
        "reward": (here == 3) + 0.3 * done + generator.normal(size=len(here)),
        "next_observation": state[:, 1:].ravel(),
        "action_prob": np.where(done == 1, chance[here], 1 - chance[here]),
    }


TARGET = mixope.TabularPolicy(np.array([[0.4, 0.6]] * 4))


def fit_of(result):
    (found,) = [check for check in result.diagnostics if check.name == "behaviour fit"]
    return found


def rounded(columns):
    """Written down a little wrong: what a percent of a probability is."""
    p = columns["action_prob"]
    return {**columns, "action_prob": np.where(columns["action"] == 1, p * 1.012, 1 - (1 - p) * 1.012)}


@pytest.mark.parametrize("estimator", ["emp", "bch", "known-mixture"])
def test_a_small_misfit_does_not_grow_into_an_alarm_with_the_rows(estimator):
    small = fit_of(mixope.evaluate(rounded(on_ids(4_000)), TARGET, estimator))
    large = mixope.evaluate(rounded(on_ids(800_000)), TARGET, estimator)
    assert small.status == "pass"
    assert fit_of(large).status == "pass" or estimator != "emp"
    assert large.verdict != "not supported by these logs"


@pytest.mark.parametrize(("estimator", "status"), [("emp", "warn"), ("model", "warn"), ("bch", "fail"), ("is", "fail")])
def test_wrong_propensities_refuse_what_rests_on_them_alone(estimator, status):
    columns = on_ids(4_000)
    found = mixope.evaluate({**columns, "action_prob": 1 - columns["action_prob"]}, TARGET, estimator)
    assert fit_of(found).status == status
    assert (found.verdict == "not supported by these logs") == (status == "fail")


@pytest.mark.parametrize("estimator", ["emp", "wis-step"])
def test_propensities_of_one_do_not_fit_loggers_that_do_several_things(estimator):
    columns = on_ids(2_000)
    found = fit_of(mixope.evaluate({**columns, "action_prob": np.ones(2_000)}, TARGET, estimator))
    assert found.status != "pass"


@pytest.mark.parametrize("estimator", ["bch", "bch-pooled", "wis-step"])
def test_the_targets_own_probabilities_are_no_propensities(estimator):
    """All ratios are 1 then, and every sum of them is what it should be."""
    columns = on_ids(4_000)
    columns["action_prob"] = np.where(columns["action"] == 1, 0.6, 0.4)
    result = mixope.evaluate(columns, TARGET, estimator)
    assert fit_of(result).status == "fail"
    assert result.verdict == "not supported by these logs"


def test_loggers_that_always_do_the_same_have_propensities_of_one():
    columns = on_ids(2_000)
    columns["action"] = np.where(columns["observation"] < 2, 1, 0)
    result = mixope.evaluate({**columns, "action_prob": np.ones(2_000)}, TARGET, "emp")
    assert all(check.status == "pass" for check in result.diagnostics if check.name == "behaviour fit")


def law(weight, bias):
    """A logit on the first column."""

    def probs(observations):
        up = 1 / (1 + np.exp(-(weight * np.asarray(observations)[:, 0] + bias)))
        return np.stack([1 - up, up], axis=1)

    return probs


LOGGER, NEW = law(1.0, 0.0), law(-1.0, 0.3)
VECTOR_TARGET = mixope.CallablePolicy(NEW, actions=ACTIONS)


@cache
def on_vectors(episodes=150, steps=4, seed=0):
    """Two columns that wander; acting up pays where the first is high."""
    generator = np.random.default_rng(seed)
    x, rows = generator.normal(size=(episodes, 2)), []
    for t in range(steps):
        p = LOGGER(x)
        a = (generator.random(episodes) < p[:, 1]).astype(int)
        y = 0.7 * x + np.stack([0.5 * a - 0.25, np.zeros(episodes)], axis=1) + 0.4 * generator.normal(size=x.shape)
        r = a * x[:, 0] + 0.3 * generator.normal(size=episodes)
        rows.append((np.arange(episodes), np.full(episodes, t), x, a, r, y, p[np.arange(episodes), a]))
        x = y
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "action_prob")
    return dict(zip(names, (np.concatenate(column) for column in zip(*rows, strict=True)), strict=True))


def vectors_with(propensity):
    columns = on_vectors()
    return {**columns, "action_prob": propensity(columns)}


WRONG = {
    "the target's": lambda c: NEW(c["observation"])[np.arange(len(c["action"])), c["action"]],
    "all one": lambda c: np.ones(len(c["action"])),
    "of the other action": lambda c: 1 - c["action_prob"],
}


@pytest.mark.parametrize("estimator", ["wis-step", "bch"])
@pytest.mark.parametrize("name", WRONG)
def test_on_vectors_too_wrong_propensities_are_not_trusted(name, estimator):
    result = mixope.evaluate(vectors_with(WRONG[name]), VECTOR_TARGET, estimator)
    assert fit_of(result).status != "pass"
    assert result.verdict != "trustworthy"


@pytest.mark.parametrize("estimator", ["wis-step", "bch"])
def test_on_vectors_right_propensities_fit(estimator):
    found = fit_of(mixope.evaluate(on_vectors(), VECTOR_TARGET, estimator))
    assert found.status == "pass"


@pytest.mark.parametrize(("estimator", "said"), [("emp", True), ("bch", False), ("wis-step", False)])
def test_it_is_said_that_recorded_propensities_were_not_used(estimator, said):
    result = mixope.evaluate(on_vectors(), VECTOR_TARGET, estimator)
    assert any("recorded propensities were not used" in str(note) for note in result.notes) == said


def test_a_doubly_robust_value_is_not_refused_for_a_behaviour_that_its_value_model_makes_up_for():
    """Actions that hang on the state in waves, which a model of them cannot follow; the value itself is simple."""
    result = mixope.evaluate(waves(), WAVES_TARGET, "dr")
    assert result.measures.behaviour_misfit > 20
    assert result.verdict != "not supported by these logs"


def _waves(sharp):
    def probs(observations):
        up = 1 / (1 + np.exp(-sharp * np.sin(7 * np.asarray(observations)[:, 0])))
        return np.stack([1 - up, up], axis=1)

    return probs


WAVES_TARGET = mixope.CallablePolicy(_waves(-1.0), actions=ACTIONS)


def waves(episodes=200, steps=15, seed=2):
    generator, logger = np.random.default_rng(seed), _waves(4.0)
    x, rows = generator.normal(size=(episodes, 3)), []
    for t in range(steps):
        a = (generator.random(episodes) < logger(x)[:, 1]).astype(int)
        y = 0.5 * x + 0.8 * generator.normal(size=x.shape)
        rows.append((np.arange(episodes), np.full(episodes, t), x, a, x[:, 1] + 0.5 * a + 0.2 * x[:, 2], y))
        x = y
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
    return dict(zip(names, (np.concatenate(column) for column in zip(*rows, strict=True)), strict=True))
