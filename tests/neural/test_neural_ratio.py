"""The neural ratio finds a ratio that is known, says when it did not move, and works as an estimator."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.behaviours import HeteroscedasticGaussian
from mixope.estimators.neural import NeuralRatio
from mixope.features import NormalisedBumps
from mixope.solvers.linear import Whitening
from mixope.solvers.neural import NeuralRows, NeuralSettings, train
from mixope.worlds import continuous, linear_quadratic

pytestmark = pytest.mark.long

SMALL = NeuralSettings(hidden=(12, 12), seeds=2, steps=50)


def one_dimension(n=6000, shift=0.5, seed=0):
    """s′ = .5 s + a + noise; logger a ~ N(0, 1), target a ~ N(shift, 1): both laws are Gaussian with the same variance.

    Σ = (1 + .25)/(1 − .25), means 0 and 2 shift, hence ω(s) = exp(m s/Σ − m²/2Σ).
    """
    generator = np.random.default_rng(seed)
    variance, mean = 1.25 / 0.75, 2 * shift
    s = generator.normal(size=n) * np.sqrt(variance)
    a = generator.normal(size=n)
    following = 0.5 * s + a + 0.5 * generator.normal(size=n)
    ratio = np.exp(shift * a - shift**2 / 2)
    return s, following, ratio, np.exp(mean * s / variance - mean**2 / (2 * variance))


def neural_rows(s, following, ratio, tests=30):
    psi = NormalisedBumps(tests).fit(s[:, None])
    here, ahead = psi.transform(s[:, None]), psi.transform(following[:, None])
    root = Whitening.of(here.T @ here / len(s), 1e-3).root
    difference = (here - ratio[:, None] * ahead) @ root
    return NeuralRows(
        s[:, None] / s.std(),
        following[:, None] / s.std(),
        ratio,
        np.ones(len(s)),
        difference,
        np.zeros(difference.shape[1]),
    )


def nothing_held_out(seeds, n):
    return np.zeros((seeds, n), dtype=bool)


def test_gauss_newton_recovers_a_known_ratio():
    s, following, ratio, omega = one_dimension()
    rows = neural_rows(s, following, ratio)
    done = train(rows, nothing_held_out(2, len(s)), SMALL)
    assert done.moved
    assert done.fall < 0.05
    for ratios in done.ratios(rows.states):
        found = ratios / ratios.mean()
        assert np.corrcoef(found, omega)[0, 1] > 0.95
        assert np.mean((found - omega) ** 2) < 0.15 * np.mean((1 - omega) ** 2)


def test_every_seed_is_a_network_of_its_own_and_repeats():
    s, following, ratio, _ = one_dimension(1500)
    rows = neural_rows(s, following, ratio, 15)
    quick = NeuralSettings(hidden=(8, 8), seeds=2, steps=5)
    first, again = (train(rows, nothing_held_out(2, 1500), quick, seed=3).ratios(rows.states) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first[0] - first[1]).max() > 1e-3


def test_held_out_rows_judge_and_do_not_teach():
    """Rows held out may hold nonsense: what is learnt does not change."""
    s, following, ratio, _ = one_dimension(3000)
    held_out = nothing_held_out(1, 3000)
    held_out[:, 2000:] = True
    settings = NeuralSettings(hidden=(8, 8), seeds=1, steps=6)
    rows = neural_rows(s, following, ratio, 15)
    wild = NeuralRows(
        rows.states,
        rows.following,
        rows.ratio,
        rows.weight,
        np.where(held_out[0][:, None], 5.0, rows.difference),
        rows.right,
    )
    one, other = (train(r, held_out, settings) for r in (rows, wild))
    np.testing.assert_allclose(one.ratios(rows.states), other.ratios(rows.states), rtol=1e-6)
    assert other.last_held_out[0] > one.last_held_out[0]


def test_stopping_held_out_keeps_the_best_network():
    s, following, ratio, _ = one_dimension(2000)
    held_out = nothing_held_out(1, 2000)
    held_out[:, ::4] = True
    settings = NeuralSettings(hidden=(8, 8), seeds=1, steps=25, stop="held-out", patience=4)
    done = train(neural_rows(s, following, ratio, 15), held_out, settings)
    assert done.last_held_out[0] <= done.first_held_out[0]


def test_the_kernel_loss_is_reported_as_hardly_moving():
    s, following, ratio, _ = one_dimension(1500)
    settings = NeuralSettings(loss="kernel", hidden=(8, 8), seeds=2, adam_steps=3, batch=64, rate=1e-4)
    done = train(neural_rows(s, following, ratio, 15), nothing_held_out(2, 1500), settings)
    assert not done.moved
    assert "hardly moved" in done.message


def test_the_kernel_loss_falls_where_adam_has_time():
    s, following, ratio, omega = one_dimension(3000)
    settings = NeuralSettings(loss="kernel", hidden=(8, 8), seeds=1, adam_steps=600, batch=128, rate=1e-2)
    rows = neural_rows(s, following, ratio, 15)
    done = train(rows, nothing_held_out(1, 3000), settings)
    assert done.last_loss[0] < done.first_loss[0]
    assert np.corrcoef(done.ratios(rows.states)[0], omega)[0, 1] > 0.7


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(UsageError, match="'tests' or 'kernel'"):
        NeuralSettings(loss="mse")
    with pytest.raises(UsageError, match="at least one seed"):
        NeuralSettings(seeds=0)


# ------------------------------------------------------------------------------------------ the estimator


@pytest.fixture(scope="module")
def logs():
    system = linear_quadratic.linear_quadratic()
    columns = continuous.simulate(system, linear_quadratic.loggers(1), 40, 100, seed=1)
    return mixope.Logs.from_arrays(**columns)


def test_the_estimator_comes_near_the_truth(logs):
    """Twice as near as the mean of the logs, at least."""
    truth = linear_quadratic.average(linear_quadratic.linear_quadratic(), linear_quadratic.target())
    result = mixope.evaluate(logs, linear_quadratic.target(), NeuralRatio(SMALL, tests=60))
    assert result.estimator == "emp-neural"
    assert abs(result.value - truth) < 0.5 * abs(result.logged_mean - truth)
    assert result.interval.low < result.interval.high
    assert result.measures.loss_fall < 0.5
    assert result.measures.seed_spread >= 0


def test_an_unmoved_ratio_is_a_known_bias(logs):
    still = NeuralRatio(NeuralSettings(loss="kernel", hidden=(8, 8), seeds=1, adam_steps=2, batch=32, rate=1e-5))
    result = mixope.evaluate(logs, linear_quadratic.target(), still)
    assert "hardly moved" in str(result.diagnostics)


def test_discounted_values_need_the_loss_with_tests(logs):
    kernel = NeuralRatio(NeuralSettings(loss="kernel"))
    with pytest.raises(UsageError, match="loss='tests'"):
        mixope.evaluate(logs, linear_quadratic.target(), kernel, estimand="discounted", gamma=0.9)
    with pytest.raises(UsageError, match="emp-neural"):
        mixope.evaluate(logs, linear_quadratic.target(), NeuralRatio(), estimand="horizon", horizon=10)


def test_a_discounted_value_comes_near_the_truth(logs):
    system, target = linear_quadratic.linear_quadratic(), linear_quadratic.target()
    truth = linear_quadratic.discounted(system, target, 0.9)
    result = mixope.evaluate(logs, target, NeuralRatio(SMALL, tests=40), estimand="discounted", gamma=0.9)
    assert abs(result.value - truth) < 0.15 * abs(truth)


def test_rows_in_another_order_and_other_rewards_train_the_same_network():
    """The contract of all estimators, in one go: rewards do not teach, and the order of rows does not matter."""
    columns = continuous.simulate(linear_quadratic.linear_quadratic(), linear_quadratic.loggers(1), 12, 25, seed=1)
    order = np.random.default_rng(5).permutation(300)
    changed = {name: values[order] for name, values in columns.items()}
    changed["reward"] = 2.5 - 3.0 * changed["reward"]
    tiny = NeuralRatio(NeuralSettings(hidden=(4, 4), seeds=1, steps=2), tests=8, behaviour=HeteroscedasticGaussian())
    options = {"features": NormalisedBumps(8)}
    before, after = (
        mixope.evaluate(mixope.read(each), linear_quadratic.target(), tiny, **options) for each in (columns, changed)
    )
    assert after.value == pytest.approx(2.5 - 3.0 * before.value, abs=1e-6)
    assert after.standard_error == pytest.approx(3.0 * before.standard_error, rel=1e-5)
    assert after.effective_sample_size == pytest.approx(before.effective_sample_size, rel=1e-6)
