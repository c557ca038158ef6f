"""Taking thin states out of a chain changes no answer, and leaves little of chains that were counted from few rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mixope.solvers.thinning import thin_out


def a_chain(n, seed, leaks):
    """Few ways on from every state, a ring through all of them, some self-loops."""
    generator = np.random.default_rng(seed)
    matrix = np.roll(np.eye(n), 1, axis=1) + generator.random((n, n)) * (generator.random((n, n)) < 0.2)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix * (1.0 - leaks * generator.random((n, 1))), generator


@pytest.mark.parametrize("side", ["N", "T"])
@given(n=st.integers(2, 25), seed=st.integers(0, 10**6))
def test_a_leaking_system_is_solved_by_what_is_left_of_it(side, n, seed):
    matrix, generator = a_chain(n, seed, leaks=0.5)
    right = generator.normal(size=n)
    thinned = thin_out(sparse.csr_matrix(matrix), 1.0 - matrix.sum(axis=1), 1)
    shorter, sides = thinned.shorten(right, side)
    left = np.diag(thinned.rate) @ (np.eye(len(thinned.rate)) - thinned.transition.toarray())
    found = thinned.lengthen(np.linalg.solve(left if side == "N" else left.T, shorter), sides, side)
    system = np.eye(n) - matrix
    np.testing.assert_allclose(found, np.linalg.solve(system if side == "N" else system.T, right), atol=1e-10)


@given(n=st.integers(2, 25), seed=st.integers(0, 10**6))
def test_what_is_left_of_a_chain_without_leaks_has_none(n, seed):
    matrix, _ = a_chain(n, seed, leaks=0.0)
    thinned = thin_out(sparse.csr_matrix(matrix), np.zeros(n), 1)
    np.testing.assert_allclose(thinned.transition.sum(axis=1), 1.0, atol=1e-14)
    assert len(thinned.rate) < n


def test_traps_go_however_seldom_they_are_left():
    """Two states that lead to each other all but once in 10¹²: no subtraction loses the way out."""
    small = 1e-12
    matrix = np.array([[0.0, 1.0 - small, small], [1.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    thinned = thin_out(sparse.csr_matrix(matrix), np.zeros(3), 1)
    visits = thinned.lengthen(np.ones(len(thinned.rate)) / thinned.rate, None, "T")
    np.testing.assert_allclose(visits / visits[0], [1.0, 1.0 - small, 2.0 * small], rtol=1e-12)


def test_states_with_many_neighbours_stay():
    matrix = sparse.csr_matrix(np.full((30, 30), 1 / 30))
    thinned = thin_out(matrix, np.zeros(30), 1)
    assert thinned.rounds == ()
    assert len(thinned.rate) == 30
