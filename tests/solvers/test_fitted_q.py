"""Networks: gradients are right, the same seed gives the same bits, and a value learned is the value."""

import numpy as np
import pytest

from mixope.solvers.fitted_q import FittedQSettings, FittedRows, fit_networks, unseen
from mixope.solvers.networks import Networks, forward, gradients, new_networks, valued

QUICK = FittedQSettings(width=32, renewals=40, steps=20, batch=128)


def half_square(parameters, x, y):
    return 0.5 * ((valued(parameters, x) - y) ** 2).mean(axis=1).sum()


@pytest.mark.parametrize("which", range(6))
def test_gradients_are_those_of_finite_differences(which):
    draw = np.random.default_rng(0)
    parameters = [p + 0.1 * draw.standard_normal(p.shape) for p in new_networks(2, 3, 5, seed=1)]
    x, y = draw.standard_normal((2, 7, 3)), draw.standard_normal((2, 7))
    found = gradients(parameters, x, y)[which]
    for _ in range(5):
        at, step = tuple(draw.integers(size) for size in found.shape), 1e-5
        sides = []
        for sign in (1, -1):
            moved = [p.copy() for p in parameters]
            moved[which][at] += sign * step
            sides.append(half_square(moved, x, y))
        assert found[at] == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-6)


def test_the_hidden_layer_stays_bounded_however_far_the_input_goes():
    parameters = new_networks(1, 2, 16, seed=0)
    near, far = (np.abs(forward(parameters, np.full((1, 1, 2), size))[-1][0]).max() for size in (10.0, 1e6))
    assert far < 1.1 * near


def test_values_are_the_last_layer_of_the_hidden_one():
    parameters = new_networks(3, 4, 8, seed=2)
    x = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)
    hidden = forward(parameters, x[None])[-1][0]
    assert np.allclose(Networks(tuple(parameters)).values(x), (hidden @ parameters[4])[..., 0] + parameters[5][..., 0])


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
    networks = fit_networks(rows, np.ones((2, len(rows))), QUICK, seed=0)
    assert np.abs(networks.values(asked) - value).max() < 0.03


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    rows, asked, _ = three_states(n=500)
    short = FittedQSettings(width=16, renewals=5, steps=5, batch=32)
    one, again, other = (fit_networks(rows, np.ones((1, 500)), short, seed).values(asked) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_rewards_in_other_units_give_the_value_in_those_units():
    rows, asked, _ = three_states(n=1000)
    scaled = FittedRows(rows.inputs, rows.ahead, rows.shares, 8 * rows.reward, rows.going, -1.6, 8.0)
    short = FittedQSettings(width=16, renewals=10, steps=10, batch=64)
    plain, large = (fit_networks(each, np.ones((1, 1000)), short, seed=0).values(asked) for each in (rows, scaled))
    assert np.allclose(8 * plain, large, rtol=1e-4)


def test_a_network_does_not_depend_on_rows_that_it_does_not_see():
    rows, asked, _ = three_states(n=600)
    fold = np.arange(600) % 2
    short = FittedQSettings(width=16, renewals=5, steps=5, batch=32)
    spoilt = FittedRows(
        rows.inputs, rows.ahead, rows.shares, np.where(fold == 0, 0.1, rows.reward), rows.going, -0.2, 1.0
    )
    seen = unseen(fold, 2).astype(float)
    before, after = (fit_networks(each, seen, short, seed=0).values(asked) for each in (rows, spoilt))
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])
