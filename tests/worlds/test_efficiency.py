"""The bound against brute force, and against what an efficient estimator really achieves."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import efficiency_bound, logged_law, make, paper_form_bias, simulate, truth

from .worlds import random_model, random_policy


def brute_force_bound(model, target, loggers, shares, horizon):
    """V_eff by loops over a dense copy, with d₀ by walking all laws step by step."""
    size, actions = model.n_states, model.n_actions
    P, solved = model.transition.toarray(), truth.long_run(model, target)
    ended, reward = np.zeros(P.shape, bool), np.zeros(P.shape)
    ended[model.entry_rows(), model.transition.indices] = model.terminated
    reward[model.entry_rows(), model.transition.indices] = model.reward
    d0 = np.zeros((size, actions))
    for policy, share in zip(loggers, shares, strict=True):
        law = model.start.copy()
        for _ in range(horizon):
            d0 += share * law[:, None] * policy
            law = sum(
                law[s] * policy[s, a] * (P * ~ended)[s * actions + a] for s in range(size) for a in range(actions)
            )
    d0 /= d0.sum()
    total, V = 0.0, solved.differential_value
    for s in range(size):
        for a in range(actions):
            row = s * actions + a
            x = reward[row] + np.where(ended[row], model.start @ V, V)
            variance = P[row] @ x**2 - (P[row] @ x) ** 2
            total += (solved.stationary[s] * target[s, a]) ** 2 / d0[s, a] * variance
    return total


@pytest.mark.parametrize("ends", [False, True])
def test_bound_equals_brute_force(ends):
    model = random_model(2, ends=ends)
    target, *loggers = (random_policy(model, seed) for seed in range(3))
    got = efficiency_bound(model, target, loggers, [0.3, 0.7], horizon=6)
    assert got == pytest.approx(brute_force_bound(model, target, loggers, [0.3, 0.7], 6), rel=1e-10)


def test_counting_reaches_the_bound_on_singlepath():
    model = make("singlepath")
    target, logger = np.tile([0.7, 0.3], (5, 1)), np.full((5, 2), 0.5)
    episodes, horizon, repetitions = 40, 50, 400
    logs = simulate(model, [logger], episodes * repetitions, horizon, seed=1)
    rows = episodes * horizon
    state, action, following = (
        logs[column].reshape(repetitions, rows) for column in ("observation", "action", "next_observation")
    )
    errors = []
    for s, a, n in zip(state, action, following, strict=True):
        visits = np.bincount(s * 2 + a, minlength=10).reshape(5, 2)
        forward = np.bincount(s * 2 + a, weights=n != s, minlength=10).reshape(5, 2) / visits
        leave = (target * forward).sum(axis=1)
        stay = 1 / leave / (1 / leave).sum()
        errors.append(stay @ (2 * leave - 1) - truth.average(model, target))
    mse, bound = np.mean(np.square(errors)), efficiency_bound(model, target, [logger], horizon=horizon) / rows
    assert mse / bound == pytest.approx(1, abs=4 * np.sqrt(2 / repetitions))


def test_no_noise_no_bound():
    model = make("gridworld")
    assert efficiency_bound(model, random_policy(model, 0), [random_policy(model, 1)], horizon=50) < 1e-20


def test_bound_is_infinite_where_no_logger_goes():
    model = make("singlepath")
    only_first = np.tile([1.0, 0.0], (5, 1))
    assert efficiency_bound(model, np.full((5, 2), 0.5), [only_first], horizon=50) == np.inf


def test_paper_form_has_no_bias_for_logs_that_start_stationary():
    model = random_model(0, ends=False)
    logger = random_policy(model, 1)
    at_rest = type(model)(
        model.name,
        model.n_actions,
        model.transition,
        model.reward,
        model.terminated,
        truth.stationary(model, logger),
    )
    assert paper_form_bias(at_rest, random_policy(model, 2), [logger], horizon=5) == pytest.approx(0, abs=1e-12)


def test_paper_form_bias_wants_a_continuing_model():
    model = make("walk")
    with pytest.raises(UsageError, match="continuing"):
        paper_form_bias(model, random_policy(model, 0), [random_policy(model, 1)], horizon=5)


def test_logged_law_is_the_frequency_of_simulated_rows():
    model = make("walk")
    policies = [random_policy(model, 4), random_policy(model, 5)]
    logs = simulate(model, policies, 20_000, 9, seed=3)
    law = logged_law(model, policies, horizon=9)
    counts = np.bincount(logs["observation"] * 2 + logs["action"], minlength=12) / len(logs["action"])
    assert np.abs(counts - law.ravel()).max() < 0.01
    assert law.sum() == pytest.approx(1)


def test_shares_must_fit_the_loggers():
    model = make("singlepath")
    with pytest.raises(UsageError, match="share"):
        logged_law(model, [random_policy(model, 0)], 5, shares=[0.5, 0.5])
    with pytest.raises(UsageError, match="at least one logger"):
        logged_law(model, [], 5)
