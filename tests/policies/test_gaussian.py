import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from mixope.base.errors import DataError, UsageError
from mixope.policies import (
    ContinuousPolicy,
    DiscretePolicy,
    GaussianPolicy,
    LinearGaussianPolicy,
    SquashedGaussianPolicy,
    read_policy,
)

OBSERVATIONS = np.random.default_rng(0).normal(size=(50, 3))
ACTIONS = np.random.default_rng(1).normal(size=(50, 2))


def mean(observations):
    return np.sin(observations[:, :2])


def first(observations):
    return observations[:, 0]


def scale(observations):
    return 0.5 + observations[:, 1:] ** 2


@pytest.mark.parametrize("spread", [0.7, [0.7, 1.3], scale], ids=["number", "vector", "function"])
def test_the_density_is_the_product_of_normal_densities(spread):
    policy = GaussianPolicy(mean, spread)
    sigma = spread(OBSERVATIONS) if callable(spread) else spread
    expected = stats.norm.logpdf(ACTIONS, mean(OBSERVATIONS), sigma).sum(axis=1)
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, ACTIONS), expected, rtol=1e-13)


def test_one_component_may_come_flat():
    policy = GaussianPolicy(first, 0.5)
    flat = policy.log_prob(OBSERVATIONS, ACTIONS[:, 0])
    np.testing.assert_array_equal(flat, policy.log_prob(OBSERVATIONS, ACTIONS[:, :1]))
    assert policy.sample(OBSERVATIONS, np.random.default_rng(0)).shape == (50, 1)


def test_a_linear_policy_is_a_gaussian_one_with_a_linear_mean():
    weights, bias = np.array([[1.0, 2, 3], [0, -1, 1]]), np.array([0.5, -0.5])
    linear = LinearGaussianPolicy(weights, bias, [0.5, 2])
    plain = GaussianPolicy(lambda s: s @ weights.T + bias, [0.5, 2])
    np.testing.assert_allclose(linear.log_prob(OBSERVATIONS, ACTIONS), plain.log_prob(OBSERVATIONS, ACTIONS))
    np.testing.assert_array_equal(LinearGaussianPolicy([1, 2, 3], 0.5, 1.0).weights, weights[:1])


@pytest.mark.parametrize("law", ["plain", "clipped", "squashed"])
def test_the_law_has_mass_one(law):
    observation = np.zeros((1, 3))
    options = {"low": -0.5, "high": 1.5}
    policy = {
        "plain": lambda: GaussianPolicy(lambda s: s[:, 0] + 0.3, 0.8, **options),
        "clipped": lambda: GaussianPolicy(lambda s: s[:, 0] + 0.3, 0.8, **options, clipped=True),
        "squashed": lambda: SquashedGaussianPolicy(lambda s: s[:, 0] + 0.3, 0.8, **options),
    }[law]()

    def density(action):
        return float(np.exp(policy.log_prob(observation, np.array([[action]])))[0])

    low, high = (-8, 8) if law == "plain" else (-0.5 + 1e-5, 1.5 - 1e-5)
    mass = integrate.quad(density, low, high, epsabs=1e-10, limit=200)[0]
    atoms = density(-0.5) + density(1.5) if law == "clipped" else 0.0
    assert mass + atoms == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("law", ["plain", "squashed"])
def test_draws_follow_the_density(law):
    observations = np.zeros((20_000, 1))
    make = GaussianPolicy if law == "plain" else SquashedGaussianPolicy
    policy = make(lambda s: s + 0.4, 0.6)
    draws = policy.sample(observations, np.random.default_rng(3))[:, 0]
    grid = np.linspace(-3, 4, 4001) if law == "plain" else np.linspace(-1 + 1e-9, 1 - 1e-9, 4001)
    density = np.exp(policy.log_prob(np.zeros((4001, 1)), grid))
    cumulative = integrate.cumulative_simpson(density, x=grid, initial=0)
    assert stats.kstest(draws, lambda x: np.interp(x, grid, cumulative)).pvalue > 0.01


def test_a_clipped_draw_lands_on_a_bound_as_often_as_its_probability_says():
    policy = GaussianPolicy(lambda s: s, 1.0, low=-1, high=0.5, clipped=True)
    observations = np.full((40_000, 1), 0.2)
    draws = policy.sample(observations, np.random.default_rng(0))[:, 0]
    for bound in (-1.0, 0.5):
        chance = np.exp(policy.log_prob(observations[:1], np.array([bound])))[0]
        assert (draws == bound).mean() == pytest.approx(chance, abs=4 * np.sqrt(chance / 40_000))


def test_a_bound_far_from_the_mean_keeps_a_finite_logarithm():
    policy = GaussianPolicy(lambda s: s, 0.1, low=-1, high=1, clipped=True)
    answer = policy.log_prob(np.array([[-20.0]]), np.array([[1.0]]))
    assert answer[0] == pytest.approx(stats.norm.logsf(210), rel=1e-12)


def test_bounds_stored_in_single_precision_are_bounds():
    policy = GaussianPolicy(lambda s: s, 1.0, low=-0.1, high=0.1, clipped=True)
    stored = np.array([[0.1]], dtype=np.float32)
    assert policy.log_prob(np.zeros((1, 1)), stored)[0] == pytest.approx(stats.norm.logsf(0.1), rel=1e-6)


@pytest.mark.parametrize("u", [-8.0, -0.3, 0.0, 2.0, 12.0])
def test_squashing_is_stable_near_the_bounds(u):
    policy = SquashedGaussianPolicy(lambda s: s, 1.5)
    answer = policy.log_prob(np.zeros((1, 1)), np.array([np.tanh(u)]))[0]
    inside = np.clip(u, -9.01, 9.01)
    log_slope = 2 * (np.log(2) - inside - np.logaddexp(0, -2 * inside))
    assert answer == pytest.approx(stats.norm.logpdf(inside, 0, 1.5) - log_slope, abs=1e-2)
    if abs(u) < 9:
        assert answer == pytest.approx(stats.norm.logpdf(u, 0, 1.5) - log_slope, rel=1e-7)


def test_a_squashed_action_rounded_onto_its_bound_is_finite():
    policy = SquashedGaussianPolicy(lambda s: s, 1.0, low=-2, high=2)
    assert np.isfinite(policy.log_prob(np.zeros((2, 1)), np.array([[-2.0], [2.0]], dtype=np.float32))).all()


def test_a_plain_law_keeps_the_raw_draw_and_knows_what_is_executed():
    policy = GaussianPolicy(lambda s: s, 5.0, low=-2, high=2)
    draws = policy.sample(np.zeros((1000, 1)), np.random.default_rng(0))
    assert np.abs(draws).max() > 2
    assert np.isfinite(policy.log_prob(np.zeros((1000, 1)), draws)).all()
    np.testing.assert_array_equal(policy.executed(draws), np.clip(draws, -2, 2))


def test_the_policies_are_continuous_and_pass_through_the_reader():
    policy = LinearGaussianPolicy([1.0], 0.0, 1.0)
    assert isinstance(policy, ContinuousPolicy)
    assert not isinstance(policy, DiscretePolicy)
    assert read_policy(policy) is policy


def test_fingerprints_tell_policies_apart_and_survive_pickling():
    policies = [
        LinearGaussianPolicy([1.0], 0.0, 1.0),
        LinearGaussianPolicy([1.0], 0.1, 1.0),
        LinearGaussianPolicy([1.0], 0.0, 2.0),
        LinearGaussianPolicy([1.0], 0.0, 1.0, low=-1, high=1),
        LinearGaussianPolicy([1.0], 0.0, 1.0, low=-1, high=1, clipped=True),
        GaussianPolicy(mean, 1.0),
        GaussianPolicy(mean, scale),
        SquashedGaussianPolicy(mean, 1.0),
    ]
    prints = [policy.fingerprint() for policy in policies]
    assert len(set(prints)) == len(prints)
    assert [pickle.loads(pickle.dumps(policy)).fingerprint() for policy in policies] == prints
    assert LinearGaussianPolicy([1.0], 0.0, 1.0).fingerprint() == prints[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianPolicy(mean, 0.0), "not positive"),
        (lambda: GaussianPolicy(mean, -1.0), "log standard deviations"),
        (lambda: GaussianPolicy(mean, np.nan), "NaN"),
        (lambda: GaussianPolicy(mean, np.ones((2, 2))), "wrong shape"),
        (lambda: GaussianPolicy(mean, 1.0, low=1, high=0), "empty"),
        (lambda: LinearGaussianPolicy(np.ones((2, 3)), np.ones(3), 1.0), "do not fit"),
        (lambda: LinearGaussianPolicy([np.inf], 0, 1.0), "NaN or infinite"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianPolicy(0.0, 1.0), "LinearGaussianPolicy"),
        (lambda: GaussianPolicy(mean, 1.0, clipped=True), "needs the box"),
        (lambda: GaussianPolicy(mean, 1.0, low=0.0), "both low and high"),
    ],
)
def test_wrong_use_is_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize(
    ("policy", "actions", "message"),
    [
        (GaussianPolicy(mean, 1.0), ACTIONS[:10], "different lengths"),
        (GaussianPolicy(mean, 1.0), ACTIONS[:, :1], "as many components"),
        (GaussianPolicy(mean, 1.0), np.where(ACTIONS > 1, np.nan, ACTIONS), "NaN or infinite"),
        (GaussianPolicy(mean, 1.0), np.full((50, 2), "left"), "not numbers"),
        (GaussianPolicy(mean, 1.0), ACTIONS[:, :, None], "wrong shape"),
        (GaussianPolicy(mean, [1.0, 1, 1]), ACTIONS, "scale does not fit"),
        (GaussianPolicy(mean, lambda s: -np.ones((len(s), 2))), ACTIONS, "not positive"),
        (GaussianPolicy(lambda s: s[:3], 1.0), ACTIONS, "mean has the wrong shape"),
        (GaussianPolicy(lambda s: s * np.nan, 1.0), ACTIONS, "means of the policy have NaN"),
        (GaussianPolicy(mean, 1.0, low=-0.5, high=0.5, clipped=True), ACTIONS, "outside the policy's box"),
        (SquashedGaussianPolicy(mean, 1.0), ACTIONS, "outside the policy's box"),
        (LinearGaussianPolicy(np.ones((2, 4)), 0.0, 1.0), ACTIONS, "do not fit the weights"),
    ],
)
def test_bad_data_is_refused_in_words(policy, actions, message):
    with pytest.raises(DataError, match=message):
        policy.log_prob(OBSERVATIONS, actions)


def test_bad_observations_are_named_by_row():
    observations = OBSERVATIONS.copy()
    observations[[3, 7], 1] = np.nan
    with pytest.raises(DataError, match="observations have NaN") as error:
        GaussianPolicy(mean, 1.0).sample(observations, np.random.default_rng(0))
    assert error.value.rows == (3, 7)
