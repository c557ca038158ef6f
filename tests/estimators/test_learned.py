"""``fqe``: near the exact value where it is known, no interval, and words where it does not apply."""

import numpy as np
import pytest

import mixope
from mixope.errors import UsageError
from mixope.estimators.learned import LearnedValue
from mixope.features.actions import DiscreteActions, QuadraticActions
from mixope.features.pairs import DRAWS, chosen_by
from mixope.policies import CallablePolicy, LinearGaussianPolicy
from mixope.solvers.fitted_q import FittedQSettings

QUICK = LearnedValue(FittedQSettings(width=32, renewals=30, steps=20, batch=128))
GAMMA = 0.9


def moved(target_gain=-0.5, episodes=40, steps=40, seed=0):
    """x′ = .8 x + .4 a + noise in three dimensions, r = −|x|²/3: a log of another gain, and the target's value by hand.

    Under a = g x + σ ε, x is an autoregression of variance v: v′ = (.8 + .4 g)² v + .16 σ² + .09.
    """
    draw, logged, sigma = np.random.default_rng(seed), 0.3, 0.5
    x = draw.standard_normal((episodes, 3))
    columns = {name: [] for name in ("episode_id", "step", "observation", "action", "reward", "next_observation")}
    for t in range(steps):
        a = logged * x + sigma * draw.standard_normal(x.shape)
        after = 0.8 * x + 0.4 * a + 0.3 * draw.standard_normal(x.shape)
        parts = (np.arange(episodes), np.full(episodes, t), x, a, -(x**2).mean(axis=1), after)
        for name, part in zip(columns, parts, strict=True):
            columns[name].append(part)
        x = after
    log = {name: np.concatenate(parts) for name, parts in columns.items()}
    log["truncated"] = log["step"] == steps - 1
    variance, value = 1.0, 0.0
    for t in range(400):
        value -= (1 - GAMMA) * GAMMA**t * variance
        variance = (0.8 + 0.4 * target_gain) ** 2 * variance + 0.16 * sigma**2 + 0.09
    return log, LinearGaussianPolicy(target_gain * np.eye(3), np.zeros(3), np.full(3, sigma)), value


def test_the_value_is_near_the_one_by_hand_and_far_from_what_was_logged():
    log, target, truth = moved()
    found = mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA)
    logged = mixope.evaluate(log, moved(0.3)[1], estimator=QUICK, gamma=GAMMA)
    assert found.value == pytest.approx(truth, abs=0.1)
    assert logged.value == pytest.approx(moved(0.3)[2], abs=0.15)
    assert logged.value < truth - 0.2


def test_a_plug_in_has_no_interval_and_is_never_trusted():
    log, target, _ = moved(episodes=8, steps=10)
    found = mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA)
    assert found.interval is None
    assert found.verdict != "trustworthy"
    assert found.measures.seed_spread > 0


def test_a_constant_reward_is_the_value():
    log, target, _ = moved(episodes=8, steps=10)
    log["reward"] = np.full(len(log["reward"]), 2.5)
    assert mixope.evaluate(log, target, estimator=QUICK, gamma=GAMMA).value == pytest.approx(2.5, rel=1e-5)


@pytest.mark.parametrize("asked", [{}, {"estimand": "horizon", "horizon": 5}])
def test_without_a_discount_it_says_what_to_use(asked):
    log, target, _ = moved(episodes=8, steps=10)
    with pytest.raises(UsageError, match="discounted"):
        mixope.evaluate(log, target, estimator="fqe", **asked)


def test_pairs_under_a_policy_depend_on_the_state_alone():
    states, target = np.random.default_rng(0).standard_normal((6, 3)), moved()[1]
    actions = QuadraticActions(np.zeros(3), np.ones(3))
    together, _ = chosen_by(actions, target, states)
    apart = np.concatenate([chosen_by(actions, target, states[k : k + 1])[0] for k in range(6)])
    assert np.array_equal(together, apart)
    assert together.mean(axis=1) == pytest.approx(target.mean(states), abs=1e-12)


def test_of_many_actions_quantiles_of_the_law_are_looked_at():
    law = np.random.default_rng(0).dirichlet(np.ones(40) * 0.1, size=5)
    policy = CallablePolicy(lambda states: law[: len(states)], actions=np.arange(40))
    chosen, shares = chosen_by(DiscreteActions(np.arange(40)), policy, np.zeros((5, 1)))
    assert chosen.shape == (5, DRAWS, 40)
    mean = (chosen * shares[..., None]).sum(axis=1)
    assert np.abs(np.cumsum(mean, axis=1) - np.cumsum(law, axis=1)).max() <= 1 / DRAWS + 1e-12
