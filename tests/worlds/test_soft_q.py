"""The trained policies are laws, get better by stage, and leave a little of the target uncovered on Taxi."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import BUILDERS, make, simulate, soft_q, truth

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", sorted(set(BUILDERS) - {"taxi"}))
def test_stages_have_full_support_and_rise(name):
    model = make(name)
    policies = soft_q.stages(model, 3, seed=1)
    earns = truth.episode if model.ends else truth.average
    values = [earns(model, policy) for policy in policies]
    # where one action decides over many steps, policies are sharp
    soft = name in ("gridworld", "gridworld-slip", "singlepath", "walk")
    assert all(policy.min() > (0.02 if soft else 0.0) for policy in policies)
    assert values[0] < values[1] < values[2]
    assert earns(model, soft_q.target(model, seed=1)) >= values[2] - 1e-3


def test_taxi_stages_rise_from_nearly_uniform_towards_the_target(taxi, taxi_target, taxi_stages):
    averages = [truth.average(taxi, policy) for policy in taxi_stages]
    assert averages == sorted(averages)
    assert averages[0] < -0.9
    assert truth.average(taxi, taxi_target) == pytest.approx(-0.121, abs=0.01)
    assert averages[-1] < truth.average(taxi, taxi_target) - 0.2


def test_every_taxi_policy_has_full_support(taxi_target, taxi_stages):
    assert all(policy.min() > 5e-5 for policy in (taxi_target, *taxi_stages))


def test_one_stage_is_the_last():
    model = make("singlepath")
    assert np.array_equal(soft_q.stages(model, 1, seed=2)[0], soft_q.stages(model, 3, seed=2)[-1])


def test_the_same_seed_trains_the_same_policy():
    model = make("gridworld-slip")
    assert np.array_equal(soft_q.target(model, seed=3), soft_q.target(model, seed=3))
    assert not np.array_equal(soft_q.target(model, seed=3), soft_q.target(model, seed=4))


def test_soft_q_learning_finds_the_soft_fixed_point():
    model, gamma, share = make("gridworld-slip"), 0.9, 0.02
    training = soft_q.Training(gamma=gamma, temperature=share, steps=4000, floor=0.5)
    (learned,) = soft_q.learn(model, [4000], seed=0, training=training)
    temperature, exact = share * np.ptp(model.reward), np.zeros((16, 4))
    for _ in range(500):
        value = temperature * np.log(np.exp(exact / temperature).sum(axis=1))
        exact = model.expected_reward() + gamma * (model.transition @ value).reshape(16, 4)
    assert np.abs(learned - exact).max() < 0.02 * np.ptp(exact)


def uncovered(model, target, logs):
    seen = np.bincount(logs["observation"] * 6 + logs["action"], minlength=target.size).reshape(target.shape)
    return (truth.stationary(model, target)[:, None] * target)[seen == 0].sum()


def test_taxi_logs_leave_little_of_the_target_uncovered(taxi, taxi_target, taxi_stages):
    one = uncovered(taxi, taxi_target, simulate(taxi, taxi_stages[-1:], 200, 200, seed=0))
    four = uncovered(taxi, taxi_target, simulate(taxi, taxi_stages, 200, 200, seed=0))
    assert 0.02 < one < 0.04
    assert 0.03 < four < 0.06


def test_no_stages_is_an_error():
    with pytest.raises(UsageError, match="at least one stage"):
        soft_q.stages(make("singlepath"), 0)
