"""Classes of units by maximum likelihood: the climb, the order of things, and what one unit moves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mixope.solvers.mixtures import CellCounts, choose_mixture, fit_mixture, through_members

BLOCK = np.array([0, 0, 1, 1, 1, 2, 2])
LAWS = np.array([[0.8, 0.2, 0.1, 0.3, 0.6, 0.5, 0.5], [0.2, 0.8, 0.5, 0.4, 0.1, 0.5, 0.5]])


def drawn(n=80, rows=8, laws=LAWS, seed=0):
    """Units of as many classes as there are laws, in turn: so many rows in every block."""
    generator = np.random.default_rng(seed)
    lines = [
        np.concatenate([generator.multinomial(rows, laws[u % len(laws)][block == BLOCK]) for block in range(3)])
        for u in range(n)
    ]
    counts = sparse.csr_matrix(np.array(lines, dtype=float))
    return cells_of(counts)


def cells_of(counts):
    total = np.asarray(counts.sum(axis=0)).ravel()
    return CellCounts(counts, BLOCK, total / np.bincount(BLOCK, total)[BLOCK], np.ones(counts.shape[0]))


def objective(cells, found):
    """L by a loop over units and classes."""
    dense, total = cells.counts.toarray(), 0.0
    for u in range(cells.n_units):
        total += np.log(sum(p * np.prod(law ** dense[u]) for p, law in zip(found.share, found.chance.T, strict=True)))
    return total + sum(float(cells.prior @ np.log(law)) for law in found.chance.T)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
def test_the_likelihood_never_falls_and_is_that_of_the_formula(n_classes):
    cells = drawn()
    found = fit_mixture(cells, n_classes)
    assert found.n_classes == n_classes
    assert np.diff(found.path).min() > -1e-9 * abs(found.path[-1])
    assert found.path[-1] == pytest.approx(objective(cells, found), rel=1e-10)


def test_one_class_has_the_pooled_chances():
    cells = drawn()
    found = fit_mixture(cells, 1)
    total = np.asarray(cells.counts.sum(axis=0)).ravel()
    np.testing.assert_allclose(found.chance[:, 0], total / np.bincount(BLOCK, total)[BLOCK], rtol=1e-12)
    np.testing.assert_allclose(found.member, 1.0)


def test_two_classes_are_found_with_their_members():
    found = fit_mixture(drawn(rows=30), 2)
    first = int(found.chance[0, 1] > found.chance[0, 0])
    np.testing.assert_allclose(found.chance[:, [first, 1 - first]].T, LAWS, atol=0.05)
    np.testing.assert_allclose(found.member[::2, first], 1.0, atol=1e-6)
    np.testing.assert_allclose(found.member[1::2, first], 0.0, atol=1e-6)


def test_at_the_top_chances_are_those_of_the_members():
    """E and M once more change nothing: by dense arithmetic."""
    cells = drawn()
    found = fit_mixture(cells, 2)
    dense = cells.counts.toarray()
    likely = found.share * np.exp(dense @ np.log(found.chance))
    member = likely / likely.sum(axis=1, keepdims=True)
    sums = dense.T @ member + cells.prior[:, None]
    blocks = np.stack([np.bincount(BLOCK, column)[BLOCK] for column in sums.T], axis=1)
    np.testing.assert_allclose(found.chance, sums / blocks, atol=1e-4)
    np.testing.assert_allclose(found.share, member.mean(axis=0), atol=1e-4)


def test_neither_the_order_of_units_nor_that_of_cells_matters():
    cells = drawn()
    units, places = np.random.default_rng(1).permutation(cells.n_units), np.array([5, 6, 3, 2, 4, 1, 0])
    other = CellCounts(
        cells.counts[units][:, places], np.array([0, 0, 1, 1, 1, 2, 2]), cells.prior[places], cells.weight
    )
    (one, gains), (two, others) = choose_mixture(cells), choose_mixture(other)
    assert one.n_classes == two.n_classes
    assert gains == pytest.approx(others, rel=1e-6)
    for c in range(one.n_classes):
        alike = int(np.argmin(np.abs(two.member - one.member[units, c][:, None]).sum(axis=0)))
        np.testing.assert_allclose(two.member[:, alike], one.member[units, c], atol=1e-6)
        np.testing.assert_allclose(two.chance[:, alike], one.chance[places, c], atol=1e-6)


@pytest.mark.parametrize(("laws", "n_classes"), [(LAWS[:1], 1), (LAWS, 2)])
def test_units_that_were_not_used_say_how_many_classes_there_are(laws, n_classes):
    found, gains = choose_mixture(drawn(200, laws=laws))
    assert (found.n_classes, len(gains)) == (n_classes, n_classes - 1)


def test_alike_units_are_hardly_ever_divided():
    wrong = sum(choose_mixture(drawn(40, 6, LAWS[:1], seed=s))[0].n_classes > 1 for s in range(15))
    assert wrong <= 1


def test_a_unit_that_counts_twice_is_two_units():
    cells = drawn(40)
    twice = replace(cells, weight=np.where(np.arange(40) < 10, 2.0, 1.0))
    repeated = sparse.vstack([cells.counts, cells.counts[:10]]).tocsr()
    other = CellCounts(repeated, BLOCK, cells.prior, np.ones(50))
    one, two = fit_mixture(twice, 2), fit_mixture(other, 2)
    assert one.path[-1] == pytest.approx(two.path[-1], rel=1e-8)
    np.testing.assert_allclose(np.sort(one.share), np.sort(two.share), atol=1e-5)


def test_what_a_unit_moves_is_the_derivative_of_the_whole_fit():
    """A value of shares and chances, Σ_c p_c P_c(0) P_c(5), against fits with a unit that weighs a little more."""
    cells = drawn(30, 4)
    found = fit_mixture(cells, 2)
    share, sums, law = found.share, found.sums, found.chance
    blocks = cells.over_block(sums)
    direct = np.zeros((cells.n_units, 2))
    for cell, other in ((0, 5), (5, 0)):
        own = cells.counts[:, cell].toarray() / sums[cell]
        there = np.asarray(cells.counts[:, BLOCK[cell] == BLOCK].sum(axis=1)) / blocks[cell]
        direct += share * law[cell] * law[other] * (own - there)
    worth = law[0] * law[5]
    direct += (worth - share @ worth) / cells.n_units
    moved = np.sum(found.member * through_members(cells, found, direct), axis=1)

    def value(weight):
        again = fit_mixture(replace(cells, weight=weight), 2)
        return float(again.share @ (again.chance[0] * again.chance[5]))

    step = 1e-2
    for unit in range(5):
        at = step * (np.arange(30) == unit)
        assert moved[unit] == pytest.approx((value(1 + at) - value(1 - at)) / (2 * step), rel=0.02, abs=2e-6)
