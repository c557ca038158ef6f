"""Moments on JAX arrays and in float32 batches are those of NumPy in float64."""

import subprocess
import sys

import numpy as np
import pytest

from mixope.behaviours.row_calibration import calibration_moments
from mixope.errors import UnknownName, UsageError
from mixope.features import NormalisedBumps, RandomFourier
from mixope.statistics.batch_products import BatchProducts
from mixope.statistics.device_moments import PRECISIONS, DeviceMoments, bump_columns, device_batch

GAMMA = 0.97
TOLERANCE = {"float32": 1e-5, "bf16x3": 1e-5, "tf32": 1e-3, "bf16": 1e-2}


@pytest.fixture(scope="module")
def rows():
    """Five thousand rows in three dimensions, one of them far away, some ended."""
    generator = np.random.default_rng(0)
    n = 5000
    states = generator.normal(size=(n, 3))
    states[17] = 60.0
    return {
        "states": states,
        "following": 0.9 * states + 0.3 * generator.normal(size=(n, 3)),
        "ratio": np.exp(0.3 * generator.normal(size=n)),
        "reward": generator.normal(size=n),
        "weight": generator.uniform(0.5, 1.5, n),
        "ended": (generator.random(n) < 0.02).astype(float),
    }


@pytest.fixture(scope="module")
def bumps(rows):
    return NormalisedBumps(40).fit(rows["states"][18:2000])


def reference(features, states, following, ratio, reward, weight, ended):
    """The sums as they are written in the docstring, one row at a time."""
    size = features.size
    sums = {"a": np.zeros((size, size)), **{k: np.zeros(size) for k in ("e", "h", "g", "ended")}}
    phi, ahead = features.transform(states), features.transform(following)
    for i, (p, q) in enumerate(zip(phi, ahead, strict=True)):
        c, rho = weight[i], ratio[i]
        sums["a"] += np.outer(c * (p - GAMMA * rho * (1 - ended[i]) * q), p)
        sums["e"] += c * p
        sums["h"] += c * rho * p
        sums["g"] += c * rho * reward[i] * p
        sums["ended"] += c * rho * ended[i] * p
    return {**sums, "n": weight.sum()}


def close(found, wanted, tolerance):
    for name, value in wanted.items():
        assert np.linalg.norm(found[name] - value) <= tolerance * np.linalg.norm(value), name


@pytest.mark.parametrize("precision", PRECISIONS)
def test_device_moments_are_the_loop_of_rows(rows, bumps, precision):
    """Two batches, of which none is a whole number of chunks."""
    arrays = list(rows.values())
    batches = [device_batch(*(a[:3000] for a in arrays)), device_batch(*(a[3000:] for a in arrays))]
    found = DeviceMoments(bumps, GAMMA, precision, chunk=1024).total(batches)
    assert found.n_rows == 5000
    close(found, reference(bumps, **rows), TOLERANCE[precision])


def test_features_given_and_features_computed_agree(rows, bumps):
    given = device_batch(
        bumps.transform(rows["states"]).T, bumps.transform(rows["following"]).T, *list(rows.values())[2:]
    )
    found = DeviceMoments(None, GAMMA, "float32", chunk=512).total([given])
    close(found, reference(bumps, **rows), 1e-5)


def test_any_feature_map_on_device_arrays_will_do(rows):
    features = RandomFourier(20).fit(rows["states"][18:])
    near = {name: np.delete(array, 17, axis=0) for name, array in rows.items()}
    found = DeviceMoments(features, GAMMA, "float32", chunk=4999).total([device_batch(*near.values())])
    close(found, reference(features, **near), 1e-4)


def test_calibration_and_gram_are_those_of_the_host(rows, bumps):
    phi = bumps.transform(rows["states"])
    batch = device_batch(*rows.values())
    found = DeviceMoments(bumps, precision="float32", kind="calibration", chunk=1024).total([batch])
    close(found, vars(calibration_moments(phi, rows["ratio"], rows["weight"])), 1e-5)
    gram = DeviceMoments(bumps, precision="float32", gram=True, chunk=1024).total([batch])["gram"]
    close({"gram": gram}, {"gram": phi.T @ (phi * rows["weight"][:, None])}, 1e-5)


def test_sums_of_many_chunks_lose_nothing():
    """Chunks of 2²⁴ and of 1 by turns: float32 alone would drop every 1."""
    chunks = 300
    weight = np.tile(np.array([2.0**24, 1.0]), chunks)
    phi = np.ones((1, 2 * chunks))
    batch = device_batch(phi, phi, np.zeros(2 * chunks), weight=weight)
    found = DeviceMoments(None, 1.0, "float32", chunk=1).total([batch])
    assert found["e"][0] == weight.sum()


def test_bumps_by_columns_are_the_bumps(rows, bumps):
    found = np.asarray(bump_columns(bumps, rows["states"].astype(np.float32))).T
    np.testing.assert_allclose(found, bumps.transform(rows["states"]), atol=2e-5)


def test_no_batch_gives_no_rows(bumps):
    assert DeviceMoments(bumps).total([]).n_rows == 0


def test_an_unknown_precision_offers_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'bf16'"):
        DeviceMoments(None, precision="bf61")
    with pytest.raises(UsageError, match="at least one row"):
        DeviceMoments(None, chunk=0)


@pytest.mark.parametrize("features", ["bumps", "fourier"])
def test_host_batches_in_float32_are_the_loop_of_rows(rows, bumps, features):
    """A row far from every bump included; a batch shorter and a batch longer than the arrays kept."""
    chosen = bumps if features == "bumps" else RandomFourier(20).fit(rows["states"][18:])
    keep = slice(None) if features == "bumps" else slice(18, None)
    used = {name: array[keep] for name, array in rows.items()}
    sums = BatchProducts(chosen, GAMMA, rows=700)
    arrays = list(used.values())
    sums.add(*(a[:300] for a in arrays))
    sums.add(*(a[300:] for a in arrays))
    found = sums.moments()
    assert found.n_rows == len(used["ratio"])
    close(found, reference(chosen, **used), 1e-5)


def test_equal_weights_need_not_be_given(rows, bumps):
    sums = BatchProducts(bumps, GAMMA)
    sums.add(rows["states"], rows["following"], rows["ratio"], rows["reward"])
    plain = {**rows, "weight": np.ones(5000), "ended": np.zeros(5000)}
    close(sums.moments(), {k: v for k, v in reference(bumps, **plain).items() if k != "ended"}, 1e-5)


def test_the_moment_code_loads_neither_pyarrow_nor_duckdb():
    """A machine with an accelerator may have NumPy and JAX alone."""
    code = (
        "import sys, mixope.statistics.device_moments, mixope.features.bumps;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"pyarrow", "duckdb", "sklearn", "jax"} & set(done.stdout.split())
