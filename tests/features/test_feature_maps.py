"""Feature maps against slow loops, and what each promises."""

import numpy as np
import pytest

from mixope.base.errors import DataError
from mixope.features import (
    NormalisedBumps,
    OneHot,
    Standardise,
    default_size,
)
from mixope.features.kernel import median_bandwidth

GENERATOR = np.random.default_rng(11)
STATES = GENERATOR.normal(size=(400, 3)) * [1.0, 30.0, 0.01] + [0.0, 5.0, -2.0]
MAPS = {
    "bumps": NormalisedBumps(20),
    "standard": Standardise(),
}
each = pytest.mark.parametrize("name", MAPS)


@each
def test_size_is_the_number_of_columns(name):
    fitted = MAPS[name].fit(STATES, seed=3)
    assert fitted.transform(STATES).shape == (400, fitted.size)


@each
def test_the_same_seed_gives_the_same_features(name):
    first, second = (MAPS[name].fit(STATES, seed=3).transform(STATES[:9]) for _ in range(2))
    assert np.array_equal(first, second)


@each
def test_rows_are_transformed_one_by_one(name):
    fitted = MAPS[name].fit(STATES)
    alone = np.concatenate([fitted.transform(STATES[i : i + 1]) for i in range(8)])
    assert fitted.transform(STATES[:8]) == pytest.approx(alone, abs=1e-12)


@each
def test_the_units_of_columns_do_not_matter(name):
    """k-means starts from a random row whatever its units, so that even the centres move along."""
    scale, shift = np.array([2.0, 0.25, 1024.0]), np.array([-3.0, 8.0, 0.5])
    plain, moved = MAPS[name].fit(STATES, seed=1), MAPS[name].fit(STATES * scale + shift, seed=1)
    assert moved.transform(STATES * scale + shift) == pytest.approx(plain.transform(STATES), abs=1e-6)


@each
def test_a_column_that_does_not_vary_changes_nothing_and_makes_no_nan(name):
    constant = np.column_stack([STATES, np.full(400, 7.25)])
    values = MAPS[name].fit(constant, seed=1).transform(constant)
    assert np.isfinite(values).all()
    plain = MAPS[name].fit(STATES, seed=1).transform(STATES)
    if name != "fourier":
        assert values[:, : plain.shape[1]] == pytest.approx(plain, abs=1e-9)


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(name, bad):
    broken = STATES.copy()
    broken[17, 1] = bad
    with pytest.raises(DataError, match="not finite") as error:
        MAPS[name].fit(broken)
    assert error.value.rows == (17,)
    assert error.value.exit_code == 3


def test_bumps_are_positive_and_sum_to_one_even_far_away():
    fitted = NormalisedBumps(20).fit(STATES)
    everywhere = np.concatenate([STATES, STATES * 50.0, np.full((1, 3), 1e6)])
    phi = fitted.transform(everywhere)
    assert np.isfinite(phi).all()
    assert (phi >= 0).all()
    assert phi.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert (fitted.transform(STATES) > 0).any(axis=0).all()


def test_bumps_equal_a_slow_loop():
    fitted = NormalisedBumps(9).fit(STATES)
    for state, phi in zip(STATES[:5], fitted.transform(STATES[:5]), strict=True):
        z = (state - STATES.mean(axis=0)) / STATES.std(axis=0)
        heights = [
            np.exp(-np.sum((z - c) ** 2) / (2 * w**2)) for c, w in zip(fitted.centres, fitted.widths, strict=True)
        ]
        assert phi == pytest.approx(np.array(heights) / sum(heights), abs=1e-10)


@pytest.mark.parametrize("neighbour", [1, 3])
def test_a_width_is_the_distance_to_the_neighbouring_centre(neighbour):
    fitted = NormalisedBumps(15, neighbour=neighbour, stretch=1.5).fit(STATES)
    for centre, width in zip(fitted.centres, fitted.widths, strict=True):
        distances = sorted(float(np.linalg.norm(centre - other)) for other in fitted.centres)
        assert width == pytest.approx(1.5 * distances[neighbour])


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_few_distinct_states_get_a_bump_each(distinct):
    states = STATES[:distinct][np.arange(50) % distinct]
    fitted = NormalisedBumps(20).fit(states)
    assert fitted.size == distinct
    assert np.isfinite(fitted.transform(states)).all()


def test_bumps_grow_with_the_cube_root_of_the_rows_ten_rows_to_a_bump():
    assert [default_size(n) for n in (1, 1000, 8000, 10**9)] == [20, 100, 480, 800]


def test_the_median_bandwidth_is_the_median_distance():
    states = STATES[:60]
    pairs = [np.linalg.norm(states[i] - states[j]) for i in range(60) for j in range(i)]
    assert median_bandwidth(states) == pytest.approx(np.median(pairs))
    assert median_bandwidth(np.ones((5, 2))) == 1.0


def test_standardised_columns_have_mean_zero_and_deviation_one():
    z = Standardise().fit(STATES).transform(STATES)
    assert z.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-10)
    assert z.std(axis=0) == pytest.approx(np.ones(3))


def test_one_hot_marks_the_state_and_refuses_strangers():
    fitted = OneHot().fit(np.array([3, 1, 1, 8]))
    assert np.array_equal(fitted.transform(np.array([1, 8, 3])), np.eye(3)[[0, 2, 1]])
    with pytest.raises(DataError, match="not in the sample") as error:
        fitted.transform(np.array([1, 2]))
    assert error.value.rows == (1,)


def test_one_hot_of_many_states_is_never_built_densely():
    states = np.random.default_rng(0).permutation(100_000)
    fitted = OneHot().fit(states)
    assert fitted.columns(states[:500]).tolist() == states[:500].tolist()
    with pytest.raises(DataError, match="100000 states on 500 rows are too large as a dense matrix"):
        fitted.transform(states[:500])
    with pytest.raises(DataError, match="too large as a dense matrix"):
        OneHot().fit(np.arange(2000)).transform(np.zeros(60_000, dtype=int))


@pytest.mark.parametrize("kind", ["ids", "factors", "strings", "mixed", "vectors"])
def test_one_hot_has_a_column_for_every_kind_of_state(kind):
    codes = np.random.default_rng(0).integers(4, size=(60, 3))
    mixed = np.array([[int(a), f"s{b}", int(c)] for a, b, c in codes], dtype=object)
    states = {"ids": codes[:, 0], "factors": codes, "strings": codes[:, 0].astype(str), "mixed": mixed}
    chosen = states.get(kind, codes / 7)
    fitted = OneHot().fit(chosen)
    dense = fitted.transform(chosen)
    assert dense.sum(axis=1).tolist() == [1.0] * 60
    _, number = np.unique(chosen.reshape(60, -1).astype(str), axis=0, return_inverse=True)
    assert len(set(zip(number.ravel().tolist(), dense.argmax(axis=1).tolist(), strict=True))) == fitted.size


def test_states_of_another_kind_are_strangers():
    fitted = OneHot().fit(np.array([[1, 2], [3, 4]]))
    assert fitted.columns(np.array([["1", "2"], ["x", "y"]])).tolist() == [-1, -1]
    with pytest.raises(DataError, match="another shape"):
        fitted.columns(np.array([1, 2]))


def test_one_hot_takes_vectors_too():
    fitted = OneHot().fit(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]]))
    assert np.array_equal(fitted.transform(np.array([[0.0, 2.0]])), [[0.0, 1.0]])


@each
@pytest.mark.long
def test_jax_arrays_give_the_same_features(name):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    fitted = MAPS[name].fit(STATES)
    found = fitted.transform(jax.numpy.asarray(STATES[:20], dtype="float32"))
    assert isinstance(found, jax.Array)
    assert np.asarray(found) == pytest.approx(fitted.transform(STATES[:20]), abs=2e-2)


@each
def test_single_precision_stays_single(request, name):
    fitted = MAPS[name].fit(STATES)
    single = fitted.transform(STATES[:20].astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(fitted.transform(STATES[:20]), abs=2e-2)
