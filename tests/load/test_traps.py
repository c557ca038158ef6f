"""Chains that counts of few rows make have many shallow traps: they are solved by iteration, without factors."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mixope.solvers import chain as chains
from mixope.solvers.chain import Chain


def trapping(n, rows=4, seed=0):
    """What is counted of a walk on a ring that jumps anywhere one time in ten, from few rows per state."""
    random = np.random.default_rng(seed)
    state = np.arange(n).repeat(rows)
    steps = np.where(random.random(rows * n) < 0.8, random.choice([-1, 1], rows * n), 0)
    moves = np.where(random.random(rows * n) < 0.1, random.integers(0, n, rows * n), steps)
    counts = sparse.csr_matrix((np.ones(rows * n), (state, (state + moves) % n)), shape=(n, n))
    _, part = connected_components(counts, connection="strong")
    kept = np.flatnonzero(part == np.bincount(part).argmax())
    counts = counts[kept][:, kept]
    return sparse.csr_matrix(sparse.diags_array(1 / np.asarray(counts.sum(axis=1)).ravel()) @ counts)


@pytest.mark.filterwarnings("error")
def test_a_chain_with_traps_is_solved_without_factors(monkeypatch):
    matrix = trapping(3000)
    exact, _ = Chain(matrix).stationary
    monkeypatch.setattr(chains, "_DIRECT_STATES", 100)
    monkeypatch.setattr(chains, "factorised", lambda matrix: pytest.fail("a large matrix is factorised"))
    found, solved = Chain(matrix).stationary
    assert solved.residual < 1e-10
    assert np.abs(found - exact).sum() < 1e-8
