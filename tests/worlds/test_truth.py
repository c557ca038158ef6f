"""Exact solves against slow loops and long simulations."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import from_outcomes, make, simulate, truth

from .worlds import random_model, random_policy


def dense_chain(model, policy, restart):
    """P_π and r_π by four nested loops over a dense copy."""
    size, actions = model.n_states, model.n_actions
    matrix, reward = np.zeros((size, size)), np.zeros(size)
    for s in range(size):
        for a in range(actions):
            row = s * actions + a
            for k in range(model.transition.indptr[row], model.transition.indptr[row + 1]):
                mass = policy[s, a] * model.transition.data[k]
                reward[s] += mass * model.reward[k]
                if not model.terminated[k]:
                    matrix[s, model.transition.indices[k]] += mass
                elif restart:
                    matrix[s] += mass * model.start
    return matrix, reward


@pytest.mark.parametrize("seed", range(4))
def test_long_run_equals_powers_of_the_dense_chain(seed):
    model, policy = random_model(seed), random_policy(random_model(seed), seed)
    matrix, reward = dense_chain(model, policy, restart=True)
    law = np.linalg.matrix_power(matrix, 4096)[0]
    solved = truth.long_run(model, policy)
    assert np.allclose(solved.stationary, law, atol=1e-10)
    assert solved.average == pytest.approx(law @ reward, abs=1e-10)
    sums, power = np.zeros(model.n_states), np.eye(model.n_states)
    for _ in range(400):
        sums += power @ (reward - solved.average)
        power = power @ matrix
    assert np.allclose(solved.differential_value, sums - law @ sums, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_discounted_and_horizon_equal_a_slow_sum(seed):
    model, policy = random_model(seed), random_policy(random_model(seed), seed)
    matrix, reward = dense_chain(model, policy, restart=False)
    law, earned = model.start, []
    for _ in range(600):
        earned.append(law @ reward)
        law = law @ matrix
    discounted = 0.1 * sum(0.9**t * r for t, r in enumerate(earned))
    assert truth.discounted(model, policy, 0.9) == pytest.approx(discounted, abs=1e-12)
    assert truth.horizon(model, policy, 13) == pytest.approx(np.mean(earned[:13]), abs=1e-12)


def test_taxi_average_agrees_with_a_long_simulation(taxi, taxi_target):
    logs = simulate(taxi, [taxi_target], episodes=400, horizon=600, seed=5)
    late = logs["reward"].reshape(400, 600)[:, 200:].mean(axis=1)
    error = late.std(ddof=1) / np.sqrt(len(late))
    assert abs(late.mean() - truth.average(taxi, taxi_target)) < 4 * error
    early = logs["reward"].reshape(400, 600)[:, :50].mean(axis=1)
    assert abs(early.mean() - truth.horizon(taxi, taxi_target, 50)) < 4 * early.std(ddof=1) / np.sqrt(len(early))


def test_taxi_solution_satisfies_its_equations(taxi, taxi_target):
    solved = truth.long_run(taxi, taxi_target)
    following = (taxi.transition @ solved.differential_value).reshape(2000, 6)
    backed_up = (taxi_target * (taxi.expected_reward() - solved.average + following)).sum(axis=1)
    assert np.abs(backed_up - solved.differential_value).max() < 1e-9
    flow = (solved.stationary[:, None] * taxi_target).ravel() @ taxi.transition
    assert np.abs(flow - solved.stationary).max() < 1e-14
    assert solved.stationary.sum() == pytest.approx(1)
    assert solved.stationary @ solved.differential_value == pytest.approx(0, abs=1e-10)


def test_discounted_tends_to_the_average():
    model = make("gridworld-slip")
    policy = random_policy(model, 3)
    assert truth.discounted(model, policy, 1 - 1e-7) == pytest.approx(truth.average(model, policy), abs=1e-4)


def test_a_deterministic_periodic_policy_has_an_average():
    model = make("gridworld")
    down_then_right = np.zeros((16, 4))
    down_then_right[:, 3] = 1
    down_then_right[[0, 4, 8]] = [0, 1, 0, 0]
    assert truth.average(model, down_then_right) == pytest.approx((6 * -1 + 100) / 7)


def test_the_policy_given_is_left_as_it_was():
    model, policy = make("singlepath"), np.tile([1.0, 0.0], (5, 1))
    truth.average(model, policy)
    assert (policy == np.tile([1.0, 0.0], (5, 1))).all()


def split_model(start):
    """Two states that never leave themselves, and a third that goes to either."""
    return from_outcomes(
        "split",
        shape=(3, 1),
        state=np.array([0, 1, 2, 2]),
        action=np.zeros(4, dtype=int),
        next_state=np.array([0, 1, 0, 1]),
        probability=np.array([1, 1, 0.5, 0.5]),
        reward=np.array([1.0, 2.0, 0.0, 0.0]),
        start=np.array(start),
    )


def test_only_what_is_reached_from_the_start_counts():
    solved = truth.long_run(split_model([0, 1.0, 0]), np.ones((3, 1)))
    assert solved.average == 2
    assert solved.differential_value[1] == 0
    assert np.isnan(solved.differential_value[[0, 2]]).all()


def test_a_long_run_left_to_chance_is_an_error():
    with pytest.raises(UsageError, match="2 separate closed classes"):
        truth.average(split_model([0, 0, 1.0]), np.ones((3, 1)))


@pytest.mark.parametrize("bad", [np.full((5, 3), 1 / 3), np.full((5, 2), 0.4), np.tile([1.5, -0.5], (5, 1))])
def test_a_policy_that_is_none_is_an_error(bad):
    with pytest.raises(UsageError):
        truth.average(make("singlepath"), bad)


def test_impossible_questions_are_errors():
    model = make("singlepath")
    with pytest.raises(UsageError, match="ask for the average"):
        truth.discounted(model, random_policy(model, 0), 1.0)
    with pytest.raises(UsageError, match="at least 1 step"):
        truth.horizon(model, random_policy(model, 0), 0)
