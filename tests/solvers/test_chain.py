"""Chains are solved as dense algebra solves them, on every path of the solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixope.solvers import chain as chains
from mixope.solvers.chain import Chain, Resolvent, factorised
from mixope.solvers.outcome import Outcome

PATHS = ("dense", "sparse", "iterated")


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    """Force small chains onto each of the ways that are meant for large ones."""
    return force(request.param, monkeypatch)


def force(name, monkeypatch):
    if name != "dense":
        monkeypatch.setattr(chains, "_DENSE_STATES", 0)
    if name == "iterated":
        monkeypatch.setattr(chains, "_DIRECT_STATES", 0)
    return name


def sparse_chain(matrix):
    return Chain(sparse.csr_matrix(matrix))


def dense_stationary(matrix):
    n = len(matrix)
    return np.linalg.lstsq(np.vstack([np.eye(n) - matrix.T, np.ones(n)]), np.append(np.zeros(n), 1), rcond=None)[0]


def dense_potential(matrix, gain, d):
    n = len(matrix)
    return np.linalg.lstsq(np.vstack([np.eye(n) - matrix, d]), np.append(gain, 0.0), rcond=None)[0]


@st.composite
def irreducible(draw):
    """A random stochastic matrix with a ring through all states; sparse, dense, or nearly a pure ring."""
    n, seed = draw(st.integers(2, 9)), draw(st.integers(0, 10**6))
    generator = np.random.default_rng(seed)
    matrix = generator.random((n, n)) * (generator.random((n, n)) < draw(st.sampled_from([0.2, 0.6, 1.0])))
    matrix += draw(st.sampled_from([0.05, 1.0])) * np.roll(np.eye(n), 1, axis=1)
    return matrix / matrix.sum(axis=1, keepdims=True), generator


SPECIAL = {
    "swap": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "ring of seven": np.roll(np.eye(7), 1, axis=1),
    "bipartite": np.block([[np.zeros((3, 3)), np.full((3, 3), 1 / 3)], [np.full((3, 3), 1 / 3), np.zeros((3, 3))]]),
    "unequal loops": np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
}


def check(matrix, generator, accuracy=1e-9):
    chain, n = sparse_chain(matrix), len(matrix)
    d, solved = chain.stationary
    wanted = dense_stationary(matrix)
    np.testing.assert_allclose(d, wanted, atol=accuracy)
    assert d.sum() == pytest.approx(1.0, abs=1e-12)
    assert solved.ok
    assert solved.residual <= 1e-8
    reward = generator.normal(size=n)
    gain = reward - d @ reward
    potential = chain.potential(gain)
    np.testing.assert_allclose(potential, dense_potential(matrix, gain, wanted), atol=accuracy * 1e2)
    assert d @ potential == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("way", PATHS)
@settings(max_examples=40)
@given(drawn=irreducible())
def test_stationary_law_and_potential_equal_dense_algebra(way, drawn):
    with pytest.MonkeyPatch.context() as patch:
        force(way, patch)
        check(*drawn)


@pytest.mark.parametrize("name", SPECIAL)
def test_periodic_chains_have_their_stationary_law(path, name):
    check(SPECIAL[name], np.random.default_rng(0))


@pytest.mark.parametrize("link", [1e-3, 1e-5])
def test_nearly_decomposable_chains_are_solved_however_slowly_they_mix(path, link):
    """Two cliques with a thin bridge each way, of unequal strength."""
    generator = np.random.default_rng(1)
    left, right = (generator.dirichlet(np.ones(4), size=4) for _ in range(2))
    matrix = np.block([[left, np.zeros((4, 4))], [np.zeros((4, 4)), right]])
    matrix[0] *= 1 - link
    matrix[0, 4] += link
    matrix[4] *= 1 - 3 * link
    matrix[4, 0] += 3 * link
    d, solved = sparse_chain(matrix).stationary
    assert solved.ok
    np.testing.assert_allclose(d, dense_stationary(matrix), atol=1e-7)


def test_a_chain_of_one_state():
    chain = sparse_chain(np.ones((1, 1)))
    d, solved = chain.stationary
    assert d.tolist() == [1.0]
    assert solved.ok
    assert chain.potential(np.zeros(1)).tolist() == [0.0]


@pytest.mark.parametrize("way", PATHS)
@settings(max_examples=40)
@given(drawn=irreducible(), gamma=st.sampled_from([0.1, 0.9, 0.99]), lost=st.sampled_from([0.0, 0.3]))
def test_discounted_occupancy_and_value_equal_dense_algebra(way, drawn, gamma, lost):
    """Also where rows sum to less than one because the process can end."""
    matrix, generator = drawn
    n = len(matrix)
    matrix = matrix * (1 - lost * generator.random((n, 1)))
    start, reward = generator.dirichlet(np.ones(n)), generator.normal(size=n)
    with pytest.MonkeyPatch.context() as patch:
        force(way, patch)
        chain = sparse_chain(matrix)
        d, solved = chain.discounted_occupancy((1 - gamma) * start, gamma)
        value = chain.discounted_value(reward, gamma)
    resolvent = np.linalg.inv(np.eye(n) - gamma * matrix)
    assert solved.ok
    np.testing.assert_allclose(d, (1 - gamma) * start @ resolvent, atol=1e-10)
    np.testing.assert_allclose(value, resolvent @ reward, atol=1e-8)
    assert (1 - gamma) * start @ value == pytest.approx(d @ reward, abs=1e-9)


@given(drawn=irreducible(), horizon=st.integers(1, 8))
def test_laws_are_powers(drawn, horizon):
    matrix, generator = drawn
    start = generator.dirichlet(np.ones(len(matrix)))
    laws = sparse_chain(matrix).laws(start, horizon)
    assert laws.shape == (horizon, len(matrix))
    for t in range(horizon):
        np.testing.assert_allclose(laws[t], start @ np.linalg.matrix_power(matrix, t), atol=1e-12)


@pytest.mark.parametrize("limit", [0, 400], ids=["sparse", "dense"])
def test_both_factorisations_solve_both_ways(limit, monkeypatch):
    monkeypatch.setattr(chains, "_DENSE_STATES", limit)
    generator = np.random.default_rng(3)
    matrix = np.eye(6) * 3 + generator.normal(size=(6, 6))
    right, solve = generator.normal(size=6), factorised(sparse.csc_matrix(matrix))
    np.testing.assert_allclose(matrix @ solve(right, "N"), right, atol=1e-10)
    np.testing.assert_allclose(matrix.T @ solve(right, "T"), right, atol=1e-10)


def local_chain(n, reach, seed=0):
    """A walk on a ring that jumps anywhere now and then: sparse, irreducible, mixes fast."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([np.arange(1, reach + 1), generator.integers(1, n, size=2)])
    weights = generator.dirichlet(np.ones(len(offsets)), size=n)
    source = np.repeat(np.arange(n), len(offsets))
    destination = (source + np.tile(offsets, n)) % n
    # jumps to one of a thousand random states make it forget where it was
    target = generator.integers(0, n, size=n)
    rows = np.concatenate([source, np.arange(n)])
    columns = np.concatenate([destination, target])
    return sparse.csr_matrix((np.concatenate([0.5 * weights.ravel(), np.full(n, 0.5)]), (rows, columns)), shape=(n, n))


def test_a_large_sparse_chain_is_solved_without_a_dense_matrix(monkeypatch):
    """1e5 states: a dense matrix would take 80 GB; nothing may even ask for one."""

    def refuse(*_, **__):
        raise AssertionError("a dense matrix was made of a large chain")

    monkeypatch.setattr(sparse.csr_matrix, "todense", refuse)
    monkeypatch.setattr(sparse.csr_matrix, "toarray", refuse)
    chain = Chain(local_chain(100_000, 3))
    d, solved = chain.stationary
    assert solved.outcome in (Outcome.ITERATED, Outcome.KRYLOV)
    assert solved.ok
    assert np.abs(chain.transition.T @ d - d).sum() < 1e-10
    assert d.min() >= 0
    assert d.sum() == pytest.approx(1.0, abs=1e-12)
    reward = np.sin(np.arange(100_000))
    gain = reward - d @ reward
    potential = chain.potential(gain)
    assert np.abs(gain + chain.transition @ potential - potential).max() < 1e-9
    occupancy, solved = chain.discounted_occupancy(0.1 * d, 0.9)
    np.testing.assert_allclose(occupancy, d, atol=1e-12)
    assert solved.ok


def test_the_direct_and_the_iterated_way_agree_on_a_chain_of_middle_size(monkeypatch):
    matrix = local_chain(1500, 4, seed=2)
    direct = Chain(matrix)
    gain = np.cos(np.arange(1500))
    d, solved = direct.stationary
    gain = gain - d @ gain
    wanted = direct.potential(gain)
    assert solved.outcome is Outcome.DIRECT
    monkeypatch.setattr(chains, "_DIRECT_STATES", 10)
    iterated = Chain(matrix)
    found, how = iterated.stationary
    assert how.outcome is Outcome.ITERATED
    np.testing.assert_allclose(found, d, atol=1e-12)
    np.testing.assert_allclose(iterated.potential(gain), wanted, atol=1e-8)


@pytest.mark.parametrize("factors", [True, False], ids=["elimination", "arpack"])
def test_elimination_or_arpack_take_over_where_iteration_does_not_converge(monkeypatch, factors):
    monkeypatch.setattr(chains, "_DIRECT_STATES", 10)
    monkeypatch.setattr(chains, "_SWEEPS", 3)
    monkeypatch.setattr(chains, "krylov", lambda *_: None)
    if not factors:
        monkeypatch.setattr(chains, "_FACTOR_STATES", 0)
    matrix = local_chain(300, 3, seed=5)
    chain = Chain(matrix)
    d, solved = chain.stationary
    assert solved.outcome is (Outcome.DIRECT if factors else Outcome.KRYLOV)
    assert solved.ok
    np.testing.assert_allclose(d, dense_stationary(matrix.toarray()), atol=1e-9)
    gain = np.arange(300.0)
    gain -= d @ gain
    potential = chain.potential(gain)
    np.testing.assert_allclose(potential, gain + matrix @ potential, atol=1e-7)


def test_what_is_called_solved_is_solved_also_for_a_discount_near_one(monkeypatch):
    monkeypatch.setattr(chains, "_DIRECT_STATES", 0)
    matrix = 0.5 * (np.roll(np.eye(30), 1, axis=1) + np.roll(np.eye(30), -1, axis=1))
    start = np.eye(30)[0]
    d, solved = sparse_chain(matrix).discounted_occupancy((1 - 0.9999) * start, 0.9999)
    wanted = (1 - 0.9999) * start @ np.linalg.inv(np.eye(30) - 0.9999 * matrix)
    assert not solved.ok or np.abs(d - wanted).sum() < 1e-8


def test_a_krylov_method_takes_over_where_sweeps_do_not_converge(monkeypatch):
    monkeypatch.setattr(chains, "_DIRECT_STATES", 10)
    monkeypatch.setattr(chains, "_SWEEPS", 40)
    matrix = local_chain(300, 3, seed=5)
    d, solved = Chain(matrix).stationary
    assert solved.outcome is Outcome.ITERATED
    np.testing.assert_allclose(d, dense_stationary(matrix.toarray()), atol=1e-9)


@pytest.mark.parametrize("way", PATHS)
@settings(max_examples=40)
@given(drawn=irreducible())
def test_the_gain_is_earnings_over_time(way, drawn):
    """η = d·r / d·t, also where the last state takes no time, as one that restarts episodes does."""
    matrix, generator = drawn
    reward, time = generator.normal(size=len(matrix)), np.ones(len(matrix))
    time[-1] = 0.0
    d = dense_stationary(matrix)
    with pytest.MonkeyPatch.context() as patch:
        force(way, patch)
        assert sparse_chain(matrix).gain(reward, time) == pytest.approx(d @ reward / (d @ time), abs=1e-8)


@pytest.mark.parametrize("way", PATHS)
@settings(max_examples=40)
@given(drawn=irreducible(), side=st.sampled_from(["N", "T"]))
def test_leaking_chains_are_solved_from_both_sides_without_a_discount(way, drawn, side):
    matrix, generator = drawn
    matrix = matrix * generator.uniform(0.6, 0.95, size=(len(matrix), 1))
    right = generator.normal(size=len(matrix))
    system = np.eye(len(matrix)) - matrix
    with pytest.MonkeyPatch.context() as patch:
        force(way, patch)
        found, _ = Resolvent(sparse.csr_matrix(matrix), 1.0).solve(right, side)
    np.testing.assert_allclose(found, np.linalg.solve(system if side == "N" else system.T, right), atol=1e-8)


@pytest.mark.parametrize("short", [1e-6, 1e-8, 1e-9, 1e-12])
def test_a_discount_next_to_one_is_solved_to_its_limit(short):
    """Two states, with the law in closed form: what starts in one of them hardly matters any more."""
    matrix = np.array([[0.9, 0.1], [0.03, 0.97]])
    gamma = 1 - short
    d, solved = Chain(sparse.csr_matrix(matrix)).discounted_occupancy((1 - gamma) * np.array([1.0, 0.0]), gamma)
    start = (1 - gamma * 0.97) / ((1 - gamma * 0.97) + gamma * 0.1)  # from d(1) = γ (0.1 d(0) + 0.97 d(1)), Σ d = 1
    assert solved.ok
    assert d == pytest.approx([start, 1 - start], abs=1e-8)


def test_two_long_runs_next_to_one_say_how_far_floats_can_tell_them_apart():
    """Mass that belongs to one of two runs that never meet is known to 10⁻¹⁶/(1−γ), and the residual says so."""
    matrix = sparse.block_diag([np.array([[0.3, 0.7], [0.6, 0.4]])] * 2, format="csr")
    gamma = 1 - 1e-12
    d, solved = Chain(sparse.csr_matrix(matrix)).discounted_occupancy((1 - gamma) * np.array([0.2, 0, 0.8, 0]), gamma)
    assert d[:2].sum() == pytest.approx(0.2, abs=max(10 * solved.residual, 1e-12))
    assert d.sum() == pytest.approx(1.0, abs=1e-12)
