"""Moments on a device are those of NumPy, up to single precision: every request, any pieces, any chains, any folds."""

from importlib.util import find_spec

import numpy as np
import pytest

from laws.requests import examples, kinds, vector_logs
from mixope.features import FittedBumps
from mixope.requests.moments import MomentRequest
from mixope.requests.request import Batch, merge_in_order, partials
from mixope.requests.rows import row_columns

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed: pip install 'mixope[jax]'")
MOMENTS = list({type(r): name for name, (r, _) in examples().items() if isinstance(r, MomentRequest)}.values())
"""One request of every kind."""


def on_device(requests, pieces, piece=64, precision="float32"):
    """All requests at once, on JAX's processor in the place of a GPU, from the rows in these pieces."""
    import jax

    from mixope.requests.device_moments import DeviceMoments

    request = DeviceMoments(requests, jax.devices("cpu")[0], piece, precision)
    schema = vector_logs().schema
    parts = (partials(table, schema, [request], number) for number, table in enumerate(pieces))
    return request.finish(merge_in_order(parts).partials[0])


def table_of(logs=None):
    logs = logs or vector_logs()
    return logs.table((*row_columns(logs.schema), "step"))


def cut(table, size):
    return [table.slice(low, size) for low in range(0, table.num_rows, size)]


def assert_close(found, expected):
    assert found.n_rows == expected.n_rows
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert found[name].shape == array.shape, name
        assert found[name].dtype == np.float64
        assert np.abs(found[name] - array).max() <= 2e-5 * max(np.abs(array).max(), 1e-12), name


def test_every_kind_of_moments_has_terms_for_a_device():
    asked = {type(examples()[name][0]) for name in MOMENTS}
    assert asked == {kind for kind in kinds() if issubclass(kind, MomentRequest)}
    assert all(examples()[name][0].maps for name in MOMENTS)


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.long
def test_the_device_adds_up_what_numpy_does(name):
    request, logs = examples()[name]
    table = table_of(logs)
    (found,) = on_device([request], cut(table, 37))
    assert_close(found, request.of(Batch(table, logs.schema)))


@pytest.mark.parametrize(("size", "piece"), [(1000, 4096), (240, 16), (1, 8), (11, 4), (7, 256), (64, 64), (63, 64)])
@pytest.mark.long
def test_any_pieces_of_any_size_give_the_same_sums(size, piece):
    request = examples()[MOMENTS[-1]][0]
    table, schema = table_of(), vector_logs().schema
    (found,) = on_device([request], cut(table, size), piece)
    assert_close(found, request.of(Batch(table, schema)))


def test_no_rows_are_no_sums():
    requests = [examples()[name][0] for name in MOMENTS[:2]]
    table = table_of()
    assert [found.n_rows for found in on_device(requests, [table.slice(0, 0)])] == [0, 0]
    (some,) = on_device(requests[:1], [table.slice(0, 0), table, table.slice(0, 0)])
    assert_close(some, requests[0].of(Batch(table, vector_logs().schema)))


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.long
def test_requests_share_their_features_whether_chains_break_or_not(shuffled):
    """Rows in order share φ with the row before; rows in disorder do not."""
    table, schema = table_of(), vector_logs().schema
    order = np.random.default_rng(0).permutation(table.num_rows) if shuffled else np.arange(table.num_rows)
    table = table.take(order)
    requests = [examples()[name][0] for name in MOMENTS]
    for request, found in zip(requests, on_device(requests, cut(table, 100), piece=32), strict=True):
        assert_close(found, request.of(Batch(table, schema)))


@pytest.mark.parametrize("size", [5, 64, 100])
@pytest.mark.long
def test_the_kernel_makes_the_bumps_of_numpy(size):
    """Also far from all of them, where all but one vanish."""
    import jax.numpy as jnp

    from mixope.features.points import points_of
    from mixope.requests.device_kernel import bumps, in_tiles, padded_size, table_of

    draw = np.random.default_rng(0)
    features = FittedBumps(np.zeros(3), np.ones(3), draw.normal(size=(size, 3)), 0.5 + draw.random(size))
    states = draw.normal(size=(128, 3))
    states[0] = 1e3
    table = table_of(points_of(features))
    expected = np.zeros((padded_size(points_of(features)), 128))
    expected[:size] = features.transform(states).T
    plain = bumps(table, jnp.asarray(states.T, dtype=jnp.float32), on_chip=False)
    lifted = np.concatenate([states.T, (states**2).sum(axis=1)[None], np.ones((1, 128)), np.zeros((11, 128))])
    found = in_tiles(table.lifted, lifted.astype(np.float32), jnp.float32, interpret=True)
    assert np.abs(np.asarray(plain)[:, 1:] - expected[:, 1:]).max() < 1e-5
    assert np.abs(np.asarray(found)[:, 1:] - expected[:, 1:]).max() < 1e-5
    for far in (np.asarray(plain)[:, 0], np.asarray(found)[:, 0]):
        assert far.sum() == pytest.approx(1.0, abs=1e-5)
        assert np.isfinite(far).all()


@pytest.mark.long
def test_halves_of_numbers_make_products_of_single_precision():
    request = examples()[MOMENTS[-1]][0]
    table, schema = table_of(), vector_logs().schema
    expected = request.of(Batch(table, schema))
    (found,), (rough,) = (on_device([request], cut(table, 50), precision=mode) for mode in ("float32", "bfloat16"))
    assert_close(found, expected)
    assert np.abs(rough["a"] - expected["a"]).max() > 1e-4 * np.abs(expected["a"]).max()


@pytest.mark.long
def test_squares_keep_the_direction_that_is_one_at_zero():
    """Σ xxᵀ − Σx Σxᵀ/n is zero where a combination of x is one for every row, and must not fall below by rounding."""
    request = next(examples()[name][0] for name in MOMENTS if name.startswith("PairGram"))
    sums = next(examples()[name][0] for name in MOMENTS if name.startswith("ValueSums"))
    gram, value = on_device([request, sums], cut(table_of(), 50), precision="bfloat16")
    n, mean, square = value["n"].sum(), value["e"].sum(axis=0), gram["gram"].sum(axis=0)
    centred = square - np.outer(mean, mean) / n
    assert np.linalg.eigvalsh(centred).min() > -1e-6 * np.linalg.eigvalsh(centred).max()
