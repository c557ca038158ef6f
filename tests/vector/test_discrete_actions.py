"""Vector states and two actions: a walk on the line and its speed, pushed left or right. Truth by long simulation."""

from functools import cache

import numpy as np
import pytest

import mixope
from mixope.features import NormalisedBumps

pytestmark = pytest.mark.long

SEEDS = (1, 2)


def law(sharpness):
    """Pushes back to the middle, the sharper the surer."""

    def policy(observations):
        right = 1 / (1 + np.exp(sharpness * (observations[:, 0] + observations[:, 1])))
        return np.stack([1 - right, right], axis=1)

    return policy


TARGET, LOGGERS = law(1.5), (law(0.4), law(0.9))


def step(states, actions, generator):
    noise = 0.2 * generator.standard_normal(len(states))
    speed = 0.7 * states[:, 1] + 0.3 * (2 * actions - 1) + noise
    place = 0.95 * states[:, 0] + 0.5 * speed
    return np.stack([place, speed], axis=1)


def reward(states, actions):
    return -(states[:, 0] ** 2) - 0.1 * actions


def draw(policy, states, generator):
    return (generator.random(len(states)) < policy(states)[:, 1]).astype(int)


@cache
def truth():
    generator = np.random.default_rng(0)
    states, total = generator.normal(size=(4000, 2)), np.zeros(4000)
    for t in range(500):
        actions = draw(TARGET, states, generator)
        total += reward(states, actions) * (t >= 100)
        states = step(states, actions, generator)
    return float(total.mean() / 400), float(total.std() / 400 / np.sqrt(4000))


@cache
def columns(seed, episodes=60, horizon=60):
    generator = np.random.default_rng(seed)
    half = episodes // 2
    states, parts = generator.normal(size=(episodes, 2)), []
    for t in range(horizon):
        actions = np.concatenate([draw(p, states[i * half : (i + 1) * half], generator) for i, p in enumerate(LOGGERS)])
        chance = np.concatenate([p(states[i * half : (i + 1) * half]) for i, p in enumerate(LOGGERS)])
        after = step(states, actions, generator)
        parts.append(
            {
                "policy_id": np.repeat(["timid", "bold"], half),
                "episode_id": np.arange(episodes),
                "step": np.full(episodes, t),
                "observation": states,
                "action": actions,
                "reward": reward(states, actions),
                "next_observation": after,
                "truncated": np.full(episodes, t == horizon - 1),
                "action_prob": chance[np.arange(episodes), actions],
            }
        )
        states = after
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@cache
def found(name, seed=1):
    return mixope.evaluate(mixope.read(columns(seed)), TARGET, name, features=NormalisedBumps(30))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["emp", "bch", "bch-pooled", "dr", "mwl"])
def test_the_answer_is_near_the_truth(name, seed):
    value, error = truth()
    result = found(name, seed)
    assert abs(result.value - value) < 4 * np.hypot(result.standard_error, error)
    assert result.standard_error < 0.15 * abs(value)


@pytest.mark.parametrize("seed", SEEDS)
def test_lstdq_is_near_the_truth(seed):
    assert abs(found("lstdq", seed).value - truth()[0]) < 4 * found("dr", seed).standard_error


def test_the_logs_alone_say_something_else():
    assert abs(found("logged-mean").value - truth()[0]) > 10 * found("dr").standard_error


def test_every_form_of_the_target_gives_the_same():
    """A law, a law with named actions, and the probability of the action taken."""
    logs, plain = mixope.read(columns(1)), found("bch-pooled").value

    def taken(observations, actions):
        return TARGET(observations)[np.arange(len(actions)), actions]

    for target in (mixope.CallablePolicy(TARGET, actions=[0, 1]), taken, mixope.CallablePolicy(taken, actions=[0, 1])):
        result = mixope.evaluate(logs, target, "bch-pooled", features=NormalisedBumps(30))
        assert result.value == pytest.approx(plain, abs=1e-9)


def test_actions_may_have_names():
    named = dict(columns(1))
    named["action"] = np.array(["left", "right"])[named["action"]]
    target = mixope.CallablePolicy(TARGET, actions=["left", "right"])
    for name in ("bch-pooled", "dr"):
        result = mixope.evaluate(mixope.read(named), target, name, features=NormalisedBumps(30))
        assert result.value == pytest.approx(found(name).value, abs=1e-6)
