"""Gaussian behaviours against densities known by construction."""

import numpy as np
import pytest

from mixope.base.errors import DataError, UsageError
from mixope.behaviours import (
    Behaviour,
    ClassifierMixture,
    FittedBehaviour,
    HeteroscedasticGaussian,
    MixtureOfExperts,
    MixtureOfLoggers,
    default_mixture,
)
from mixope.behaviours.experts import gate_step
from mixope.behaviours.gaussian import VARIANCE_RIDGE, gram
from mixope.features import NormalisedBumps
from mixope.features.quadratic import Quadratic
from mixope.policies.gaussian import GaussianPolicy, SquashedGaussianPolicy
from mixope.worlds import pendulum
from mixope.worlds.continuous import simulate

from .test_protocol import make_rows


def mean(states):
    return np.stack([states[:, 0] - 0.5 * states[:, 1] ** 2, 0.3 * states[:, 0] * states[:, 1]], axis=1)


def scale(states):
    return np.exp(np.stack([0.4 * states[:, 0] - 0.5, 0.2 + 0.3 * states[:, 1]], axis=1))


def first(function):
    return lambda states: function(states)[:, :1]


def draw(policy, n, seed=0):
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 2))
    actions = policy.sample(states, generator)
    return make_rows(states, actions, policy.log_prob(states, actions))


def gap(fitted, rows):
    """Mean and mean absolute log b̂ − log b."""
    difference = fitted.log_prob(rows) - np.log(rows.propensity)
    return difference.mean(), np.abs(difference).mean()


def ones(rows):
    return np.ones(len(rows))


def test_a_heteroscedastic_gaussian_is_recovered_and_quadratics_suffice():
    policy = GaussianPolicy(mean, scale)
    fitted = HeteroscedasticGaussian().fit(draw(policy, 2500), np.ones(2500))
    new = draw(policy, 2500, seed=1)
    assert fitted.choice.label == "quadratic"
    assert fitted.notes == ()
    bias, error = gap(fitted, new)
    # Of p parameters, maximum likelihood loses p/2n nats a row, and log b̂ − log b has the root mean square √(p/n).
    assert abs(bias) < 3 * 24 / (2 * 2500)
    assert error < np.sqrt(24 / 2500)
    assert fitted.choice.held_out == pytest.approx(np.log(new.propensity).mean(), abs=0.1)


def test_both_are_what_the_protocols_ask():
    behaviour = HeteroscedasticGaussian(NormalisedBumps(10))
    rows = draw(GaussianPolicy(mean, scale), 300)
    assert isinstance(behaviour, Behaviour)
    assert isinstance(behaviour.fit(rows, ones(rows)), FittedBehaviour)


def test_bumps_are_taken_where_a_quadratic_is_too_stiff():
    wavy = GaussianPolicy(lambda states: 2 * np.sin(3 * states[:, :1]), 0.5)
    rows = draw(wavy, 3000)
    fitted = HeteroscedasticGaussian().fit(rows, ones(rows))
    stiff = HeteroscedasticGaussian(Quadratic()).fit(rows, ones(rows))
    assert "bumps" in fitted.choice.label
    assert fitted.choice.held_out > stiff.choice.held_out + 0.9
    bias, error = gap(fitted, draw(wavy, 3000, seed=1))
    assert abs(bias) < 0.06
    assert error < 0.15


def test_no_row_is_taken_for_impossible_where_data_are_thin():
    wavy = GaussianPolicy(lambda states: 2 * np.sin(3 * states[:, :1]), 0.5)
    rows, new = draw(wavy, 3000), draw(wavy, 20_000, seed=1)
    fitted = HeteroscedasticGaussian().fit(rows, ones(rows))
    assert (fitted.log_prob(new) - np.log(new.propensity)).min() > -12


def test_atoms_at_the_bounds_are_the_mass_that_was_clipped():
    clipped = GaussianPolicy(first(mean), first(scale), low=-2.0, high=1.0, clipped=True)
    rows = draw(clipped, 2500)
    fitted = HeteroscedasticGaussian().fit(rows, ones(rows))
    share = np.mean(rows.action == 1.0)
    assert f"{share:.1%} of actions are exactly 1: treated as clipped there" in fitted.notes[1]
    assert "exactly -2" in fitted.notes[0]
    bias, error = gap(fitted, draw(clipped, 4000, seed=1))
    assert abs(bias) < 0.01
    assert error < 0.05


def test_atoms_at_one_bound_leave_the_other_side_open():
    floored = GaussianPolicy(first(mean), 1.0, low=-1.0, high=100.0, clipped=True)
    rows = draw(floored, 2000)
    fitted = HeteroscedasticGaussian(NormalisedBumps(20)).fit(rows, ones(rows))
    assert fitted.choice.box.low.tolist() == [-1.0]
    assert fitted.choice.box.high.tolist() == [np.inf]
    with pytest.raises(DataError, match="beyond a bound"):
        fitted.log_prob(make_rows(rows.observation[:3], rows.action[:3] - 10))


def test_squashed_actions_are_noted_and_fitted_as_such():
    squashed = SquashedGaussianPolicy(first(mean), 0.8)
    rows = draw(squashed, 2500)
    fitted = HeteroscedasticGaussian().fit(rows, ones(rows))
    assert "squashed by tanh" in fitted.notes[0]
    bias, error = gap(fitted, draw(squashed, 4000, seed=1))
    assert abs(bias) < 0.02
    assert error < 0.08


def test_row_weights_count_like_copies():
    rows = draw(GaussianPolicy(first(mean), first(scale)), 600)
    times = np.arange(600) % 3
    copies = rows.take(np.repeat(np.arange(600), times))
    counted = HeteroscedasticGaussian(Quadratic()).fit(rows, times.astype(float))
    copied = HeteroscedasticGaussian(Quadratic()).fit(copies, ones(copies))
    # Features are standardised on the rows, not on their weights, which moves the ridge a little.
    np.testing.assert_allclose(counted.log_prob(rows), copied.log_prob(rows), atol=0.03)


def test_the_same_seed_gives_the_same_fit():
    rows = draw(GaussianPolicy(mean, scale), 600)
    one, two = (HeteroscedasticGaussian().fit(rows, ones(rows), seed=3).log_prob(rows) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_far_state_has_a_finite_density():
    rows = draw(GaussianPolicy(mean, scale), 600)
    far = make_rows(np.full((2, 2), 1e6), np.full((2, 2), -1e3))
    for behaviour in (HeteroscedasticGaussian(), MixtureOfExperts(2)):
        assert np.isfinite(behaviour.fit(rows, ones(rows)).log_prob(far)).all()


@pytest.mark.parametrize("behaviour", [HeteroscedasticGaussian(), MixtureOfExperts()], ids=lambda b: b.name)
def test_what_has_no_density_is_refused_in_words(behaviour):
    states = np.random.default_rng(0).normal(size=(200, 2))
    varied = np.random.default_rng(1).normal(size=200)
    weight = np.ones(200)
    constant = make_rows(states, np.stack([varied, np.full(200, 3.0)], axis=1))
    with pytest.raises(DataError, match=r"component 1 takes one value only[\s\S]*deterministic logger"):
        behaviour.fit(constant, weight)
    with pytest.raises(DataError, match="takes 3 values only"):
        behaviour.fit(make_rows(states, np.sign(varied)[:, None] * (varied[:, None] > -1)), weight)
    with pytest.raises(DataError, match=r"actions have NaN[\s\S]*rows:     7"):
        behaviour.fit(make_rows(states, np.where(np.arange(200) == 7, np.nan, varied)[:, None]), weight)
    with pytest.raises(DataError, match="states have NaN"):
        behaviour.fit(make_rows(np.where(states == states[5, 1], np.inf, states), varied[:, None]), weight)
    with pytest.raises(DataError, match="actions are not vectors"):
        behaviour.fit(make_rows(states, np.arange(200)), weight)
    with pytest.raises(DataError, match="states are not vectors"):
        behaviour.fit(make_rows(np.arange(200), varied[:, None]), weight)
    with pytest.raises(DataError, match="row weights"):
        behaviour.fit(make_rows(states, varied[:, None]), np.ones(3))
    with pytest.raises(DataError, match="too few rows"):
        behaviour.fit(make_rows(states[:10], varied[:10, None]), np.ones(10))


def test_an_action_that_is_a_function_of_the_state_is_refused():
    states = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.raises(DataError, match="function of the state"):
        HeteroscedasticGaussian().fit(make_rows(states, mean(states)), np.ones(500))


def test_actions_of_another_size_are_refused():
    rows = draw(GaussianPolicy(mean, scale), 300)
    fitted = HeteroscedasticGaussian(NormalisedBumps(5)).fit(rows, ones(rows))
    with pytest.raises(DataError, match="another number of components"):
        fitted.log_prob(make_rows(rows.observation, rows.action[:, :1]))


def two_loggers(n, seed):
    """Two loggers that do opposite things, the second more often on the right; with the log of the true mixture."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 2))
    share = 1 / (1 + np.exp(-states[:, 0]))
    second = generator.random(n) < share
    centre = np.where(second, 2.0 + 0.5 * states[:, 1], -2.0 - 0.5 * states[:, 1])
    action = (centre + 0.5 * generator.standard_normal(n))[:, None]

    def density(at):
        return np.exp(-0.5 * ((action[:, 0] - at) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))

    mixture = share * density(2.0 + 0.5 * states[:, 1]) + (1 - share) * density(-2.0 - 0.5 * states[:, 1])
    return make_rows(states, action, np.log(mixture), np.where(second, "right", "left"))


@pytest.mark.parametrize("labelled", [True, False])
def test_experts_beat_one_gaussian_on_loggers_that_differ_and_come_near_the_truth(labelled):
    rows, new = two_loggers(2000, 0), two_loggers(2000, 1)
    if not labelled:
        rows = make_rows(rows.observation, rows.action)
    features = NormalisedBumps(12)
    single = HeteroscedasticGaussian(features).fit(rows, ones(rows))
    experts = MixtureOfExperts(features=features).fit(rows, ones(rows))
    assert experts.choice.label.startswith(("2 experts", "3 experts"))
    assert experts.choice.held_out > single.choice.held_out + 0.3
    bias, error = gap(experts, new)
    assert abs(bias) < 0.03
    assert error < 0.12


def test_experts_fall_back_to_one_where_more_do_not_help():
    policy = GaussianPolicy(first(mean), first(scale))
    rows = draw(policy, 1000)
    labels = np.where(np.arange(1000) % 2, "a", "b")
    rows = make_rows(rows.observation, rows.action, np.log(rows.propensity), labels)
    fitted = MixtureOfExperts().fit(rows, ones(rows))
    assert "experts" not in fitted.choice.label
    assert np.allclose(fitted.log_prob(rows), HeteroscedasticGaussian().fit(rows, ones(rows)).log_prob(rows))


def test_too_many_experts_do_little_harm():
    train, new = (_pendulum(seed) for seed in (1, 2))
    features = NormalisedBumps(30)
    one, four = (MixtureOfExperts(k, features).fit(train, ones(train)) for k in (1, 4))
    assert gap(four, new)[0] > gap(one, new)[0] - 0.03


def test_a_step_of_the_gate_never_loses():
    rows = _pendulum(1)
    n = len(rows)
    maps = Quadratic().fit(rows.observation), NormalisedBumps(50).fit(rows.observation)
    design = np.concatenate([np.ones((n, 1)), *(m.transform(rows.observation) for m in maps)], axis=1)
    share = np.eye(4)[np.digitize(rows.action[:, 0], [-1.0, 0.0, 1.0])]
    gate, reached = np.zeros((design.shape[1], 4)), []
    information = gram(design, np.ones(n), 2 * VARIANCE_RIDGE)
    for _ in range(30):
        gate = gate_step(gate, design, share, np.ones(n), information)
        scores = design @ gate
        fit = np.sum(share * scores) - np.logaddexp.reduce(scores, axis=1).sum()
        reached.append(fit - 0.5 * VARIANCE_RIDGE * np.sum(gate[1:] ** 2))
    assert np.diff(reached).min() > -1e-9 * n


def test_no_experts_at_all_is_a_usage_error():
    with pytest.raises(UsageError, match="at least one expert"):
        MixtureOfExperts(0)


def test_defaults_go_by_the_actions_and_the_loggers():
    assert isinstance(default_mixture("continuous", ["a"]), HeteroscedasticGaussian)
    assert isinstance(default_mixture("continuous", ["a", "b"]), MixtureOfExperts)
    assert isinstance(default_mixture("continuous", ["a", "b"], columns=17 * 6), MixtureOfLoggers)
    many = [f"logger {k}" for k in range(20)]
    assert isinstance(default_mixture("continuous", many, columns=17 * 6), MixtureOfExperts)
    assert isinstance(default_mixture("discrete", ["a", "b"]), ClassifierMixture)
    with pytest.raises(UsageError, match="unknown kind of action"):
        default_mixture("mixed")


def test_pendulum_is_fitted_to_a_hundredth_of_a_nat():
    train, new = (_pendulum(seed) for seed in (1, 2))
    fitted = HeteroscedasticGaussian().fit(train, ones(train))
    bias, error = gap(fitted, new)
    assert abs(bias) < 0.015
    assert error < 0.1


def _pendulum(seed):
    columns = simulate(pendulum.Pendulum(), pendulum.loggers(1), 30, 200, seed=seed)
    return make_rows(columns["observation"], columns["action"], columns["action_logp"], columns["policy_id"])
