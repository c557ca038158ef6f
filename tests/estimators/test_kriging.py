"""Kriging against the equations it solves, written out."""

import itertools

import numpy as np
import pytest

from mixope.estimators.kriging import LEAST, MOST, Kriging, Likeness, first_guess, measure_likeness

GRID = np.array(list(itertools.product(range(4), range(3), range(2))))


def made(seed=0, n_seen=14, nugget=0.3):
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(GRID))
    seen, unseen = np.sort(order[:n_seen]), np.sort(order[n_seen:])
    alike = Likeness((0.5, 0.8, 0.9), 1.0, nugget).between(GRID)
    rows = generator.integers(1, 6, n_seen).astype(float)
    chance = generator.random(len(GRID))
    return Kriging(0, np.arange(n_seen), seen, unseen, rows, alike, chance, nugget)


def by_lagrange(kriging, mass):
    """The weights of least variance among those that sum to the mass, and that variance."""
    full = kriging.alike + np.outer(kriging.chance, kriging.chance)
    noisy = full[np.ix_(kriging.states, kriging.states)] + np.diag(kriging.nugget / kriging.rows)
    towards = full[np.ix_(kriging.states, kriging.unseen)] @ mass
    n = len(noisy)
    system = np.block([[noisy, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    weights = np.linalg.solve(system, np.append(towards, mass.sum()))[:n]
    own = mass @ full[np.ix_(kriging.unseen, kriging.unseen)] @ mass
    return weights, own - 2 * weights @ towards + weights @ noisy @ weights


def test_weights_are_those_of_least_variance_that_sum_to_one():
    kriging = made()
    for k, row in enumerate(kriging.weights):
        expected, _ = by_lagrange(kriging, np.eye(len(kriging.unseen))[k])
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)
        assert row.sum() == pytest.approx(1.0)


def test_variance_is_that_of_the_whole_sum_and_not_of_its_parts():
    kriging = made(1)
    mass = np.random.default_rng(2).random(len(kriging.unseen))
    assert kriging.variance(mass) == pytest.approx(by_lagrange(kriging, mass)[1], rel=1e-9)


def test_a_lone_pair_predicts_all_others():
    lone = Kriging(
        0, np.array([0]), np.array([3]), np.array([5]), np.array([2.0]), np.ones((24, 24)), np.zeros(24), 0.1
    )
    assert lone.weights.tolist() == [[1.0]]


def test_likeness_is_found_in_functions_drawn_with_it():
    generator = np.random.default_rng(5)
    truth, draws = Likeness((0.5, 0.8, 0.95), 4.0, 1.0), 300
    root = np.linalg.cholesky(4.0 * truth.between(GRID) + 1e-9 * np.eye(len(GRID)))
    rows = np.full(len(GRID) * draws, 3.0)
    worth = (root @ generator.normal(size=(len(GRID), draws))).T + generator.normal(size=(draws, len(GRID))) / np.sqrt(
        3
    )
    state, action = np.tile(np.arange(len(GRID)), draws), np.repeat(np.arange(draws), len(GRID))
    found = measure_likeness(GRID, state, action, rows, worth.ravel(), 1.0)
    # within one draw the mean is taken off, so only v(1 − ρ) is seen without bias
    gaps = found.sill * (1 - np.array(found.decays))
    np.testing.assert_allclose(gaps, 4.0 * (1 - np.array(truth.decays)), rtol=0.2)


def test_bounds_hold_where_nothing_varies_and_where_no_states_differ_in_one_factor():
    corner = np.array([[0, 0], [1, 1]])
    found = measure_likeness(corner, np.array([0, 1]), np.zeros(2, dtype=int), np.ones(2), np.array([1.0, 1.0]), 0.0)
    assert all(LEAST <= rho <= MOST for rho in found.decays)
    assert found.sill > 0
    assert found.noise > 0
    assert first_guess(3).nugget > 0
