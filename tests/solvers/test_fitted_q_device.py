"""Networks trained by JAX are those that NumPy trains, the same bits every time; and where there is no GPU, words."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import mixope
from mixope.base.errors import MissingExtra, UnknownName, UsageError
from mixope.estimators.learned import LearnedValue
from mixope.policies import LinearGaussianPolicy
from mixope.solvers import devices
from mixope.solvers.fitted_q import FittedQSettings, FittedRows, fit_networks, with_clock

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed: pip install 'mixope[jax]'")
QUICK = FittedQSettings(width=16, renewals=8, steps=6, batch=64)
ONE, ALL = True, False
"""Whether one pair ahead stands for all of them."""
N, PAIRS = 600, 3


def rows_of(kind, even, ends=0.05):
    """Rows from a seed; one in twenty ends its episode."""
    draw = np.random.default_rng(0)
    inputs, ahead = (draw.standard_normal(shape).astype(np.float32) for shape in ((N, 5), (N, PAIRS, 5)))
    shares = np.full((N, PAIRS), 1 / PAIRS) if even else draw.dirichlet(np.ones(PAIRS), N)
    shares = shares.astype(np.float32)
    reward, going = np.tanh(inputs[:, 0]) + 0.1 * draw.standard_normal(N), (draw.random(N) >= ends).astype(float)
    low, high = min(reward.min(), 0.0), max(reward.max(), 0.0)
    match kind:
        case "discounted":
            return FittedRows(inputs, ahead, shares, 0.05 * reward, 0.95 * going, low, high)
        case "episode":
            return FittedRows(inputs, ahead, shares, reward / 20, going, 20 * low, 20 * high)
        case "horizon":
            return FittedRows(inputs, ahead, shares, reward, going, low, high, horizon=10)
    starts, at_start = ahead[:40], shares[:40]
    return FittedRows(inputs, ahead, shares, reward, going, -np.inf, np.inf, starts=starts, start_shares=at_start)


def weights_of(networks=2):
    return (np.arange(N)[None, :] % networks != np.arange(networks)[:, None]).astype(float)


def values_of(fitted, rows):
    return fitted.networks.values(with_clock(rows.inputs.astype(np.float64), 5.0, rows.horizon))


def on_processor():
    """JAX's processor in the place of a GPU: the same programme."""
    import jax

    return jax.devices("cpu")[0]


def fit_on_jax(*arguments, **options):
    from mixope.solvers.fitted_q_device import fit_networks_on

    return fit_networks_on(on_processor(), *arguments, **options)


@needs_jax
@pytest.mark.parametrize(
    ("kind", "even"),
    [("discounted", ONE), ("discounted", ALL), ("episode", ONE), ("horizon", ALL), ("average", ONE)],
)
@pytest.mark.long
def test_both_trainers_find_the_same_networks(kind, even):
    rows, weights = rows_of(kind, even), weights_of()
    plain, found = fit_networks(rows, weights, QUICK, 3), fit_on_jax(rows, weights, QUICK, 3)
    expected, got = values_of(plain, rows), values_of(found, rows)
    spread = np.ptp(expected)
    assert spread > 0
    assert np.abs(got - expected).max() < 1e-3 * spread
    if kind == "average":
        assert found.averages == pytest.approx(plain.averages, abs=1e-5)
    else:
        assert found.averages is None


@needs_jax
@pytest.mark.long
def test_the_average_of_logs_that_never_end_is_the_same_too():
    rows = rows_of("average", ONE, ends=0.0)
    plain, found = fit_networks(rows, weights_of(), QUICK, 0), fit_on_jax(rows, weights_of(), QUICK, 0)
    assert found.averages == pytest.approx(plain.averages, abs=1e-5)


@needs_jax
@pytest.mark.long
def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    rows = rows_of("discounted", ONE)
    one, again, other = (values_of(fit_on_jax(rows, weights_of(), QUICK, seed), rows) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.allclose(one, other)


@needs_jax
def test_a_network_does_not_depend_on_those_beside_it():
    rows, weights = rows_of("discounted", ONE), weights_of()
    two, one = fit_on_jax(rows, weights, QUICK, 0), fit_on_jax(rows, weights[:1], QUICK, 0)
    expected = values_of(two, rows)[0]
    assert values_of(one, rows)[0] == pytest.approx(expected, abs=1e-4 * np.ptp(expected))


@needs_jax
@pytest.mark.long
def test_every_renewal_is_told():
    told = []
    fit_on_jax(rows_of("discounted", ONE), weights_of(), QUICK, 0, tick=lambda done, total: told.append((done, total)))
    assert told == [(k + 1, QUICK.renewals) for k in range(QUICK.renewals)]


@needs_jax
def test_training_keeps_to_single_precision_and_leaves_that_of_the_caller():
    import jax

    fit_on_jax(rows_of("discounted", ONE), weights_of(), QUICK, 0)
    assert jax.numpy.ones(1).dtype == np.float32
    assert jax.config.jax_default_matmul_precision is None


# --- which device is taken


@pytest.fixture
def no_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)


@pytest.fixture
def pretended(monkeypatch):
    """JAX as it would be on a machine with the devices that are given."""

    def install(*platforms, fails=None):
        def seen():
            if fails:
                raise RuntimeError(fails)
            return [SimpleNamespace(platform=each, device_kind=each.upper()) for each in platforms]

        monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(devices=seen))

    return install


def test_without_jax_auto_takes_the_processor_and_gpu_is_refused_with_the_line_that_installs_it(no_jax):
    assert devices.find_gpu("auto") is None
    with pytest.raises(MissingExtra, match=r"pip install 'mixope\[jax\]'"):
        devices.find_gpu("gpu")


def test_a_gpu_is_taken_by_auto_and_gpu_and_never_by_cpu(pretended):
    pretended("cpu", "cuda")
    assert devices.find_gpu("auto").platform == devices.find_gpu("gpu").platform == "cuda"
    assert devices.find_gpu("cpu") is None


def test_jax_without_a_gpu_is_the_processor_to_auto_and_a_refusal_to_gpu(pretended):
    pretended("cpu")
    assert devices.find_gpu("auto") is None
    with pytest.raises(UsageError, match=r"JAX sees none here.*jax\[cuda12\].*device='cpu'"):
        devices.find_gpu("gpu")


def test_a_driver_that_fails_is_the_processor_to_auto_and_its_words_to_gpu(pretended):
    pretended(fails="no CUDA-capable device is detected\nmore")
    assert devices.find_gpu("auto") is None
    with pytest.raises(UsageError, match=r"no CUDA-capable device is detected\. Say device='cpu'"):
        devices.find_gpu("gpu")


def test_auto_does_not_import_jax_where_no_driver_shows_a_gpu(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(devices, "_NODES", ("/nowhere/at/all",))
    monkeypatch.setattr(devices, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert devices.find_gpu("auto") is None


def test_a_device_that_is_none_is_told_before_anything_is_read():
    for call in (
        lambda: mixope.evaluate("nowhere.csv", "nowhere.csv", device="gpus"),
        lambda: mixope.compare("nowhere.csv", {"new": "nowhere.csv"}, device="gpus"),
    ):
        with pytest.raises(UnknownName, match="Did you mean 'gpu'"):
            call()


# --- from the question to the trainer


LEARNED = LearnedValue(QUICK)


def autoregression(episodes=10, steps=20):
    """x′ = .8 x + .4 a + noise in two dimensions, and a target that steers to the middle."""
    draw = np.random.default_rng(0)
    n = episodes * steps
    x, a = draw.standard_normal((n, 2)), draw.standard_normal((n, 2))
    log = {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": x,
        "action": a,
        "reward": -(x**2).mean(axis=1),
        "next_observation": 0.8 * x + 0.4 * a + 0.3 * draw.standard_normal((n, 2)),
    }
    log["truncated"] = log["step"] == steps - 1
    return log, LinearGaussianPolicy(-0.5 * np.eye(2), np.zeros(2), np.full(2, 0.5))


@pytest.fixture
def as_if_gpu(monkeypatch):
    """JAX's processor is taken for a GPU."""
    found = on_processor()
    monkeypatch.setattr(devices, "_likely", lambda: True)
    monkeypatch.setattr(devices, "_gpu", lambda: found)
    return found


@needs_jax
@pytest.mark.parametrize("device", ["auto", "gpu"])
@pytest.mark.long
def test_a_value_that_a_gpu_learned_says_so_and_is_that_of_the_processor(as_if_gpu, device):
    log, target = autoregression()
    plain = mixope.evaluate(log, target, LEARNED, gamma=0.9, device="cpu")
    found = mixope.evaluate(log, target, LEARNED, gamma=0.9, device=device)
    assert found.value == pytest.approx(plain.value, rel=1e-4)
    assert (plain.provenance.trained_on, found.provenance.trained_on) == (None, as_if_gpu.device_kind)
    assert any("trained on a GPU" in note for note in found.notes)
    assert not any("GPU" in note for note in plain.notes)


@needs_jax
@pytest.mark.long
def test_the_device_of_an_estimator_goes_before_that_of_the_question(as_if_gpu):
    log, target = autoregression()
    kept = LearnedValue(QUICK, device="cpu")
    found = mixope.compare(log, {"new": target}, [kept, LEARNED], gamma=0.9, device="gpu")
    assert [one.provenance.trained_on for one in found] == [None, as_if_gpu.device_kind]


@needs_jax
def test_a_gpu_that_fails_in_training_says_how_to_do_without(as_if_gpu, monkeypatch):
    from mixope.solvers import fitted_q_device

    def fail(*arguments):
        raise fitted_q_device.DeviceFailure("RESOURCE_EXHAUSTED: Out of memory\nmore")

    monkeypatch.setattr(fitted_q_device, "fit_networks_on", fail)
    log, target = autoregression()
    with pytest.raises(UsageError, match=r"RESOURCE_EXHAUSTED: Out of memory\. To .* say device='cpu'"):
        mixope.evaluate(log, target, LEARNED, gamma=0.9)
