"""Kriging against the equations it solves, written out."""

import itertools

import numpy as np
import pytest

from mixope.estimators.counts.kriging import (
    LEAST,
    MOST,
    Kriging,
    Likeness,
    Places,
    first_guess,
    measure_likeness,
    number_factors,
)

GRID = np.array(list(itertools.product(range(4), range(3), range(2))))


def made(seed=0, n_seen=14, nugget=0.3, **options):
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(GRID))
    seen, unseen = np.sort(order[:n_seen]), np.sort(order[n_seen:])
    places = Places(GRID, Likeness((0.5, 0.8, 0.9), 1.0, nugget))
    rows = generator.integers(1, 6, n_seen).astype(float)
    chance = generator.random(len(GRID))
    return Kriging(places, seen, rows, unseen, chance, **options)


def covariance(kriging):
    """C of all states, factor by factor."""
    decays = kriging.places.likeness.decays
    alike = [np.where(c[:, None] == c[None, :], 1.0, rho) for rho, c in zip(decays, GRID.T, strict=True)]
    return np.prod(alike, axis=0) + np.outer(kriging.chance, kriging.chance)


def by_lagrange(kriging, mass):
    """The weights of least variance among those that sum to the mass, and that variance."""
    full = covariance(kriging)
    noisy = full[np.ix_(kriging.states, kriging.states)] + np.diag(kriging.places.likeness.nugget / kriging.rows)
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
    assert kriging.variance(mass, mass @ kriging.weights) == pytest.approx(by_lagrange(kriging, mass)[1], rel=1e-9)


def test_variance_of_neighbours_alone_is_that_of_their_weights():
    """An error is Σ mass (y(u) − g·y): its variance by the whole covariance, whatever the weights are."""
    kriging = made(3, neighbours=4)
    mass = np.random.default_rng(4).random(len(kriging.unseen))
    g, full = kriging.weights, covariance(kriging)
    assert np.all(np.diff(kriging.local.indptr) == 4)
    towards, own = full[np.ix_(kriging.unseen, kriging.states)], full[np.ix_(kriging.unseen, kriging.unseen)]
    noisy = full[np.ix_(kriging.states, kriging.states)] + np.diag(kriging.places.likeness.nugget / kriging.rows)
    by_hand = mass @ (own - g @ towards.T - towards @ g.T + g @ noisy @ g.T) @ mass
    assert kriging.variance(mass, mass @ kriging.weights) == pytest.approx(by_hand, rel=1e-9)
    exact = made(3)
    assert by_hand >= exact.variance(mass, mass @ exact.weights)
    np.testing.assert_allclose(g.sum(axis=1), 1.0)


def test_neighbours_are_the_pairs_that_explain_most_by_themselves():
    kriging = made(5, neighbours=3)
    full, noise = covariance(kriging), kriging.places.likeness.nugget / kriging.rows
    explained = full[np.ix_(kriging.unseen, kriging.states)] ** 2 / (np.diag(full)[kriging.states] + noise)
    for row, best in zip(kriging.local.toarray(), np.argsort(-explained, axis=1)[:, :3], strict=True):
        assert set(np.flatnonzero(row)) == set(best)


def test_a_lone_pair_predicts_all_others():
    places = Places(GRID, Likeness((0.5, 0.8, 0.9), 1.0, 0.1))
    lone = Kriging(places, np.array([3]), np.array([2.0]), np.array([5]), np.zeros(24))
    assert lone.weights.tolist() == [[1.0]]


def test_factors_with_many_values_are_compared_as_those_with_few(monkeypatch):
    few, mass = made(6), np.random.default_rng(7).random(10)
    weights, variance = few.weights, few.variance(mass, mass @ few.weights)
    monkeypatch.setattr("mixope.estimators.counts.kriging._NARROW", 2)
    np.testing.assert_allclose(made(6).weights, weights, rtol=1e-12)
    many = made(6)
    monkeypatch.setattr(Places, "_sizes", np.array([400, 300, 200]))
    assert many.variance(mass, mass @ many.weights) == pytest.approx(variance, rel=1e-9)


def test_likeness_is_found_in_functions_drawn_with_it():
    generator = np.random.default_rng(5)
    truth, draws = Likeness((0.5, 0.8, 0.95), 4.0, 1.0), 300
    everywhere = np.arange(len(GRID))
    root = np.linalg.cholesky(4.0 * Places(GRID, truth).alike(everywhere, everywhere) + 1e-9 * np.eye(len(GRID)))
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


def test_names_of_values_do_not_matter():
    named = np.array([["b", "x"], ["a", "x"], ["b", "y"]], dtype=object)
    assert number_factors(named).tolist() == [[1, 0], [0, 0], [1, 1]]


def test_likeness_is_that_of_all_pairs_of_states_that_differ_in_one_factor():
    generator = np.random.default_rng(8)
    state, action = np.tile(np.arange(24), 2), np.repeat([0, 1], 24)
    kept = np.sort(generator.permutation(48)[:35])
    state, action = state[kept], action[kept]
    rows, worth = generator.integers(1, 9, 35).astype(float), generator.normal(size=35) + 3 * action
    gap, known = np.zeros(3), np.zeros(3)
    for i in range(35):
        for j in range(i):
            differs = np.flatnonzero(GRID[state[i]] != GRID[state[j]])
            if action[i] == action[j] and len(differs) == 1:
                sure = rows[i] * rows[j] / (rows[i] + rows[j])
                gap[differs[0]] += 0.5 * (sure * (worth[i] - worth[j]) ** 2 - 0.1)
                known[differs[0]] += sure
    found = measure_likeness(GRID, state, action, rows, worth, 0.1)
    np.testing.assert_allclose(found.decays, np.clip(1 - gap / known / found.sill, LEAST, MOST))
