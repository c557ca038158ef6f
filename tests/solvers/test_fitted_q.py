"""Networks: gradients are right, the same seed gives the same bits, and a value learned is the value."""

import numpy as np
import pytest

from mixope.solvers.fitted_q import FittedQSettings, FittedRows, fit_networks, with_clock
from mixope.solvers.networks import Networks, forward, gradients, new_network, valued

QUICK = FittedQSettings(width=32, renewals=40, steps=20, batch=128)


def new(inputs, width, seed=0):
    return new_network(inputs, width, np.random.default_rng(seed))


def half_square(parameters, x, y):
    return 0.5 * ((valued(parameters, x) - y) ** 2).mean()


@pytest.mark.parametrize("which", range(6))
def test_gradients_are_those_of_finite_differences(which):
    draw = np.random.default_rng(0)
    parameters = [p + 0.1 * draw.standard_normal(p.shape) for p in new(3, 5, seed=1)]
    x, y = draw.standard_normal((7, 3)), draw.standard_normal(7)
    found = gradients(parameters, x, y)[which]
    for _ in range(5):
        at, step = tuple(draw.integers(size) for size in found.shape), 1e-6
        sides = []
        for sign in (1, -1):
            moved = [p.copy() for p in parameters]
            moved[which][at] += sign * step
            sides.append(half_square(moved, x, y))
        assert found[at] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-6)


def test_the_hidden_layer_stays_bounded_however_far_the_input_goes():
    parameters = new(2, 16)
    near, far = (np.abs(forward(parameters, np.full((1, 2), size))[1]).max() for size in (10.0, 1e6))
    assert far < 1.1 * near


def test_a_new_network_tells_a_small_state_from_a_large_one():
    small, large = (forward(new(2, 16), np.full((1, 2), size))[1] for size in (0.1, 1.0))
    assert np.abs(small - large).max() > 0.1


def test_values_are_the_last_layer_of_the_hidden_one():
    members = tuple(new(4, 8, seed) for seed in range(3))
    for parameters in members:
        parameters[4] += 1.0
    x = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)
    by_hand = [forward(parameters, x)[1].sum(axis=1) for parameters in members]
    assert np.allclose(Networks(members).values(x), by_hand)


def three_states(n=3000, gamma=0.9, seed=0):
    """A chain of three states and two actions; the target always takes action 1. One-hot pairs, and the exact V."""
    draw = np.random.default_rng(seed)
    law = np.array(
        [[[0.8, 0.2, 0.0], [0.1, 0.8, 0.1]], [[0.5, 0.5, 0.0], [0.0, 0.3, 0.7]], [[0.2, 0.6, 0.2], [0.3, 0.0, 0.7]]]
    )
    reward = np.array([[0.0, -0.2], [0.5, 0.1], [1.0, 0.8]])
    state, action = draw.integers(3, size=n), draw.integers(2, size=n)
    following = np.array([draw.choice(3, p=law[s, a]) for s, a in zip(state, action, strict=True)])
    value = np.linalg.solve(np.eye(3) - gamma * law[:, 1], reward[:, 1]) * (1 - gamma)

    def pair(s, a):
        return np.concatenate([np.eye(3)[s], np.eye(2)[a]], axis=-1).astype(np.float32)

    ahead = pair(following, np.ones(n, dtype=int))[:, None, :]
    earned = (1 - gamma) * reward[state, action]
    rows = FittedRows(
        pair(state, action), ahead, np.ones((n, 1), dtype=np.float32), earned, np.full(n, gamma), -0.2, 1.0
    )
    return rows, pair(np.arange(3), np.ones(3, dtype=int)), value


def test_the_value_of_a_small_chain_is_the_exact_one():
    rows, asked, value = three_states()
    networks = fit_networks(rows, np.ones((2, len(rows))), QUICK, seed=0).networks
    assert np.abs(networks.values(asked) - value).max() < 0.03


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    rows, asked, _ = three_states(n=500)
    short = FittedQSettings(width=16, renewals=5, steps=5, batch=32)
    one, again, other = (
        fit_networks(rows, np.ones((1, 500)), short, seed).networks.values(asked) for seed in (0, 0, 1)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_rewards_in_other_units_give_the_value_in_those_units():
    rows, asked, _ = three_states(n=1000)
    scaled = FittedRows(rows.inputs, rows.ahead, rows.shares, 8 * rows.reward, rows.going, -1.6, 8.0)
    short = FittedQSettings(width=16, renewals=10, steps=10, batch=64)
    plain, large = (
        fit_networks(each, np.ones((1, 1000)), short, seed=0).networks.values(asked) for each in (rows, scaled)
    )
    assert np.allclose(8 * plain, large, rtol=1e-4)


def test_a_network_does_not_depend_on_rows_that_it_does_not_see():
    rows, asked, _ = three_states(n=600)
    fold = np.arange(600) % 2
    short = FittedQSettings(width=16, renewals=5, steps=5, batch=32)
    spoilt = FittedRows(
        rows.inputs, rows.ahead, rows.shares, np.where(fold == 0, 0.1, rows.reward), rows.going, -0.2, 1.0
    )
    seen = (fold[None, :] != np.arange(2)[:, None]).astype(float)
    before, after = (fit_networks(each, seen, short, seed=0).networks.values(asked) for each in (rows, spoilt))
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])


def test_a_network_is_the_same_whoever_is_trained_beside_it():
    rows, asked, _ = three_states(n=600)
    short = FittedQSettings(width=16, renewals=5, steps=5, batch=32)
    one, three = (fit_networks(rows, np.ones((k, 600)), short, seed=0).networks.values(asked) for k in (1, 3))
    assert np.array_equal(one[0], three[0])
    assert not np.array_equal(three[0], three[1])


def chain(gamma=0.9):
    """The chain's law and rewards under the target."""
    law = np.array([[0.1, 0.8, 0.1], [0.0, 0.3, 0.7], [0.3, 0.0, 0.7]])
    return law, np.array([-0.2, 0.1, 0.8])


def test_the_average_of_a_small_chain_is_the_exact_one():
    rows, asked, _ = three_states()
    law, reward = chain()
    stationary = np.linalg.lstsq(np.vstack([law.T - np.eye(3), np.ones(3)]), np.array([0, 0, 0, 1.0]), rcond=None)[0]
    undiscounted = FittedRows(
        rows.inputs,
        rows.ahead,
        rows.shares,
        rows.reward / 0.1,
        np.ones(len(rows)),
        -np.inf,
        np.inf,
        starts=asked[:, None, :],
        start_shares=np.ones((3, 1), dtype=np.float32),
    )
    found = fit_networks(undiscounted, np.ones((2, len(rows))), QUICK, seed=0)
    assert np.abs(found.averages - stationary @ reward).max() < 0.03


def test_the_value_over_a_horizon_is_the_exact_one_for_every_number_of_steps():
    rows, asked, _ = three_states()
    law, reward = chain()
    timed = FittedRows(
        rows.inputs, rows.ahead, rows.shares, rows.reward / 0.1, np.ones(len(rows)), -0.2, 1.0, horizon=6
    )
    networks = fit_networks(timed, np.ones((1, len(rows))), QUICK, seed=0).networks
    value = np.zeros(3)
    for left in range(1, 7):
        value = reward + law @ value
        assert np.abs(networks.values(with_clock(asked, left, 6)) - value / left).max() < 0.06


def test_small_logs_take_few_steps():
    settings = FittedQSettings()
    assert settings.for_rows(10_000).steps == settings.steps
    assert settings.for_rows(100).steps < settings.steps / 10
