"""Fitted behaviours as policies: proper laws, near the ones that made the rows, that can be drawn from and sent."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.behaviours import ClassifierMixture, HeteroscedasticGaussian, MixtureOfExperts, imitate
from mixope.policies import ContinuousPolicy, DiscretePolicy
from mixope.requests.rows import Rows


def rows_of(states, actions):
    n = len(states)
    no = np.zeros(n, dtype=bool)
    return Rows(states, actions, np.zeros(n), states, no, no, np.full(n, np.nan), np.full(n, "a"))


def drawn(shown=lambda draws: draws, n=3000):
    generator = np.random.default_rng(1)
    states = generator.normal(size=(n, 2))
    draws = 0.5 * states[:, :1] - 0.2 + 0.4 * generator.standard_normal((n, 1))
    rows = rows_of(states, shown(draws))
    return states, imitate(HeteroscedasticGaussian().fit(rows, np.ones(n)))


def test_a_gaussian_is_found_again():
    states, policy = drawn()
    assert isinstance(policy, ContinuousPolicy)
    grid = np.linspace(-4, 4, 2001)
    here = np.tile([[0.6, -1.0]], (len(grid), 1))
    density = np.exp(policy.log_prob(here, grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    assert np.trapezoid(density * grid, grid) == pytest.approx(0.1, abs=0.05)
    draws = policy.sample(states, np.random.default_rng(0)) - (0.5 * states[:, :1] - 0.2)
    assert draws.mean() == pytest.approx(0.0, abs=0.03)
    assert draws.std() == pytest.approx(0.4, abs=0.03)
    assert policy.at_noise(states, np.zeros(1)) == pytest.approx(0.5 * states[:, :1] - 0.2, abs=0.1)


def likewise(states):
    """Other draws of the same law."""
    return 0.5 * states[:, 0] - 0.2 + 0.4 * np.random.default_rng(2).normal(size=len(states))


def test_clipped_actions_are_drawn_clipped_and_beyond_the_bounds_there_is_nothing():
    states, policy = drawn(lambda draws: np.clip(draws, -0.5, 0.5))
    draws = policy.sample(states, np.random.default_rng(0))
    assert (draws.min(), draws.max()) == (-0.5, 0.5)
    share = np.mean(likewise(states) >= 0.5)
    assert np.mean(draws == 0.5) == pytest.approx(share, abs=0.03)
    found = policy.log_prob(states[:3], np.array([[0.5], [0.7], [0.1]]))
    assert np.isfinite(found).tolist() == [True, False, True]


def test_squashed_actions_are_drawn_squashed():
    states, policy = drawn(lambda draws: np.tanh(4 * draws))
    draws = policy.sample(states, np.random.default_rng(0))
    assert np.abs(draws).max() <= 1.0
    quarters = [0.25, 0.5, 0.75]
    expected = np.quantile(np.tanh(4 * likewise(states)), quarters)
    assert np.quantile(draws, quarters) == pytest.approx(expected, abs=0.08)


def test_a_classifier_is_a_law_over_the_actions_it_has_seen():
    generator = np.random.default_rng(3)
    states = generator.normal(size=(2000, 1))
    actions = np.where(generator.random(2000) < 1 / (1 + np.exp(-states[:, 0])), "right", "left")
    policy = imitate(ClassifierMixture().fit(rows_of(states, actions), np.ones(2000)))
    assert isinstance(policy, DiscretePolicy)
    assert policy.actions.tolist() == ["left", "right"]
    at = np.array([[-1.0], [0.0], [1.0]])
    probs = policy.probs(at)
    assert probs.sum(axis=1) == pytest.approx(np.ones(3))
    assert probs[:, 1] == pytest.approx(1 / (1 + np.exp(-at[:, 0])), abs=0.06)
    assert policy.log_prob(at, np.array(["left", "right", "up"])) == pytest.approx(
        [np.log(probs[0, 0]), np.log(probs[1, 1]), -np.inf]
    )


def test_imitations_can_be_sent_and_know_themselves_again():
    _, policy = drawn()
    _, other = drawn(lambda draws: draws + 1.0)
    sent = pickle.loads(pickle.dumps(policy))
    assert sent.fingerprint() == policy.fingerprint()
    assert drawn()[1].fingerprint() == policy.fingerprint()
    assert other.fingerprint() != policy.fingerprint()


def test_what_is_no_law_of_one_logger_is_refused():
    generator = np.random.default_rng(4)
    apart = np.repeat([[-3.0], [3.0]], 300, axis=0)
    rows = rows_of(generator.normal(size=(600, 2)), apart + generator.normal(size=(600, 1)))
    both = replace(rows, logger=np.repeat(["a", "b"], 300))
    with pytest.raises(UsageError, match="of one logger"):
        imitate(MixtureOfExperts().fit(both, np.ones(600)))
