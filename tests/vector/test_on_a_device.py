"""Evaluations whose moments are made on a device say so, and find what those of the processor find."""

from importlib.util import find_spec

import numpy as np
import pytest

import mixope
from mixope.estimators import device_sums
from mixope.estimators.device_sums import WORTHWHILE, DeviceSums
from mixope.features import ColumnFeatures, NormalisedBumps, OneHot
from mixope.worlds import continuous, linear_quadratic

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed: pip install 'mixope[jax]'")
SAID = "sums of features were made on a GPU"


@pytest.fixture
def no_gpu_but_jax(monkeypatch):
    """JAX's processor in the place of a GPU: the same programme."""
    import jax

    found = jax.devices("cpu")[0]
    monkeypatch.setattr(device_sums, "find_gpu", lambda device: None if device == "cpu" else found)
    monkeypatch.setattr("mixope.evaluation.check_device", lambda device: None)
    monkeypatch.setattr("mixope.requests.device_moments.PIECE", 1 << 10)
    return found


@pytest.fixture(scope="module")
def logs():
    loggers = linear_quadratic.loggers(4)[2:]
    return mixope.read(continuous.simulate(linear_quadratic.linear_quadratic(), loggers, 40, 50, seed=1))


@needs_jax
@pytest.mark.parametrize(
    ("estimator", "bumps", "gamma"),
    [
        ("dr", 30, None),
        ("mwl", 30, 0.95),
        pytest.param("emp", 30, 0.95, marks=pytest.mark.long),
        pytest.param("emp", None, None, marks=pytest.mark.long),
        pytest.param("dr", None, 0.95, marks=pytest.mark.long),
    ],
)
@pytest.mark.usefixtures("no_gpu_but_jax")
@pytest.mark.long
def test_the_estimate_is_that_of_the_processor(logs, estimator, bumps, gamma):
    asked = {"estimand": "average" if gamma is None else "discounted", "gamma": gamma}
    asked["features"] = None if bumps is None else NormalisedBumps(bumps)
    target = linear_quadratic.target()
    plain, found = (mixope.evaluate(logs, target, estimator, device=device, **asked) for device in ("cpu", "gpu"))
    # Single precision, on processors that round differently: little beside what is not known anyway.
    assert found.value == pytest.approx(plain.value, abs=0.01 * plain.standard_error)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-3)
    assert any(SAID in note for note in found.notes)
    assert not any(SAID in note for note in plain.notes)


@needs_jax
@pytest.mark.usefixtures("no_gpu_but_jax")
def test_features_without_a_form_for_a_device_stay_on_the_processor_and_it_says_so():
    generator = np.random.default_rng(0)
    n = 400
    state = generator.integers(0, 4, n + 1)
    columns = {
        "episode_id": np.arange(n) // 20,
        "step": np.arange(n) % 20,
        "observation": state[:-1],
        "next_observation": state[1:],
        "action": generator.integers(0, 2, n),
        "reward": generator.random(n),
    }
    read, target = mixope.read(columns), mixope.policies.uniform([0, 1])
    plain, found = (mixope.evaluate(read, target, "emp", features=OneHot(), device=device) for device in ("cpu", "gpu"))
    assert found.value == plain.value
    assert any("FittedOneHot" in note and "processor" in note for note in found.notes)
    assert not any(SAID in note for note in found.notes)


@needs_jax
@pytest.mark.usefixtures("no_gpu_but_jax")
@pytest.mark.long
def test_mixed_states_are_encoded_on_the_processor_and_summed_on_the_device():
    generator = np.random.default_rng(0)
    n = 600
    ward, age = generator.choice(["a", "b", "c"], n + 1), generator.normal(50, 10, n + 1)
    columns = {
        "episode_id": np.arange(n) // 20,
        "step": np.arange(n) % 20,
        "observation.ward": ward[:-1],
        "observation.age": age[:-1],
        "next_observation.ward": ward[1:],
        "next_observation.age": age[1:],
        "action": generator.integers(0, 2, n),
        "reward": generator.random(n) + (ward[:-1] == "a"),
    }
    read, target = mixope.read(columns), mixope.policies.uniform([0, 1])
    plain, found = (
        mixope.evaluate(read, target, "emp", features=ColumnFeatures(12), device=device) for device in ("cpu", "gpu")
    )
    assert found.value == pytest.approx(plain.value, rel=1e-4)
    assert any(SAID in note for note in found.notes)


def test_a_gpu_is_not_started_for_few_rows_unless_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(device_sums, "find_gpu", asked.append)
    assert DeviceSums("auto", WORTHWHILE - 1).gpu is None
    assert asked == []
    assert DeviceSums("auto", WORTHWHILE).gpu is None
    assert DeviceSums("gpu", 1).gpu is None
    assert asked == ["auto", "gpu"]


@pytest.mark.parametrize("device", ["auto", "cpu"])
@pytest.mark.long
def test_without_a_gpu_every_bit_is_the_same(logs, device):
    target = linear_quadratic.target()
    plain, found = (mixope.evaluate(logs, target, "emp", device=each) for each in ("cpu", device))
    assert (found.value, found.standard_error) == (plain.value, plain.standard_error)
    assert found.notes == plain.notes
