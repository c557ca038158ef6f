"""The quadratic program on the simplex: conditions of optimality, and a slow projected gradient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixope.solvers.outcome import Outcome
from mixope.solvers.quadratic import minimise_on_simplex


def hessian(seed, n, rank, ridge):
    factor = np.random.default_rng(seed).normal(size=(n, rank))
    return factor @ factor.T + ridge * np.eye(n)


def project(y):
    """The nearest point of the simplex, by sorting."""
    sorted_ = np.sort(y)[::-1]
    tails = (np.cumsum(sorted_) - 1) / np.arange(1, len(y) + 1)
    level = tails[np.flatnonzero(sorted_ > tails)[-1]]
    return np.maximum(y - level, 0.0)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), rank=st.integers(1, 12), scale=st.sampled_from([1e-3, 1, 1e4]))
def test_the_conditions_of_optimality_hold(seed, n, rank, scale):
    """Hx = y + z with z ≥ 0, x ≥ 0, x·z = 0: the gradient is least, and equal, wherever there is mass."""
    h = scale * hessian(seed, n, rank, 1e-2)
    x, solved = minimise_on_simplex(h)
    gradient, size = h @ x, np.abs(h).max()
    assert solved.ok
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1.0, abs=1e-9)
    level = x @ gradient
    assert (gradient - level).min() > -1e-7 * size
    assert np.abs(x * (gradient - level)).max() < 1e-7 * size


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_projected_gradient_comes_to_the_same_point(seed):
    h = hessian(seed, 8, 5, 0.1)
    x, step = np.full(8, 1 / 8), 1 / np.linalg.eigvalsh(h)[-1]
    for _ in range(20_000):
        x = project(x - step * h @ x)
    found, _ = minimise_on_simplex(h)
    np.testing.assert_allclose(found, x, atol=1e-6)


def test_the_identity_is_minimised_in_the_middle_and_a_cheap_corner_takes_all():
    np.testing.assert_allclose(minimise_on_simplex(np.eye(4))[0], np.full(4, 0.25), atol=1e-9)
    corner = np.array([[1.0, 2.0], [2.0, 9.0]])
    np.testing.assert_allclose(minimise_on_simplex(corner)[0], [1.0, 0.0], atol=1e-8)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), rank=st.integers(1, 12))
def test_guesses_of_what_binds_and_the_interior_point_come_to_the_same_point(seed, n, rank):
    h = hessian(seed, n, rank, 1e-2)
    guessed, _ = minimise_on_simplex(h)
    inside, solved = minimise_on_simplex(h, guesses=0)
    assert solved.ok
    np.testing.assert_allclose(guessed, inside, atol=1e-6)


def test_a_sparse_program_is_the_dense_one():
    h = np.where(np.abs(np.subtract.outer(np.arange(30), np.arange(30))) < 2, -0.4, 0.0) + 1.3 * np.eye(30)
    sparsely, dense = minimise_on_simplex(sparse.csc_array(h)), minimise_on_simplex(h)
    np.testing.assert_array_equal(sparsely[0], dense[0])
    assert sparsely[1].iterations == 1, "nothing binds, which is the first guess"


def test_guesses_that_run_in_a_circle_are_left_to_the_interior_point():
    h = hessian(100, 12, 12, 1e-2)
    x, solved = minimise_on_simplex(h)
    assert solved.iterations == minimise_on_simplex(h, guesses=0)[1].iterations
    gradient = h @ x
    assert solved.ok
    assert (gradient - x @ gradient).min() > -1e-7 * np.abs(h).max()


def test_too_few_steps_are_reported_as_inaccurate():
    x, solved = minimise_on_simplex(hessian(0, 6, 6, 0.1), steps=1, guesses=0)
    assert solved.outcome is Outcome.INACCURATE
    assert not solved.ok
    assert x.sum() == pytest.approx(1.0)
