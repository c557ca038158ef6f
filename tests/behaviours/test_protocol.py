"""What behaviours share: held-out checks, logged propensities, one model per logger."""

import numpy as np
import pytest

from mixope.base.errors import DataError
from mixope.behaviours import Behaviour, FittedBehaviour, HeteroscedasticGaussian, Logged, PerLogger
from mixope.behaviours.protocol import first_best, held_out
from mixope.features import NormalisedBumps
from mixope.policies.gaussian import GaussianPolicy
from mixope.requests.rows import Rows


def make_rows(observation, action, log_propensity=None, logger=None):
    """Rows made of what a behaviour looks at."""
    n = len(observation)
    return Rows(
        observation=observation,
        action=action,
        reward=np.zeros(n),
        next_observation=observation,
        terminated=np.zeros(n, dtype=bool),
        start=np.zeros(n, dtype=bool),
        propensity=np.full(n, np.nan) if log_propensity is None else np.exp(log_propensity),
        logger=np.full(n, "only") if logger is None else np.asarray(logger),
    )


UP, DOWN = (GaussianPolicy(lambda s, sign=sign: sign * s[:, :1], 0.5) for sign in (1.0, -1.0))


def labelled(n=800, seed=0):
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 1))
    up = np.arange(n) % 2 == 0
    actions = np.where(up[:, None], UP.sample(states, generator), DOWN.sample(states, generator))
    log_prob = np.where(up, UP.log_prob(states, actions), DOWN.log_prob(states, actions))
    return make_rows(states, actions, log_prob, np.where(up, "up", "down"))


def test_every_row_is_held_out_once():
    seen = np.zeros(10)

    def trial(inside, outside):
        assert not set(inside) & set(outside)
        assert len(inside) + len(outside) == 10
        seen[outside] += 1
        return outside.astype(float)

    np.testing.assert_array_equal(held_out(trial, 10, seed=1), np.arange(10.0))
    np.testing.assert_array_equal(seen, np.ones(10))


def test_a_later_model_must_gain_more_than_chance():
    noise = np.random.default_rng(0).normal(size=1000)
    noise -= noise.mean()
    weight = np.ones(1000)
    assert first_best([np.zeros(1000), noise + 0.01], weight) == (0, 0.0)
    best, reached = first_best([np.zeros(1000), noise + 0.1], weight)
    assert (best, reached) == (1, pytest.approx(0.1))


def test_after_two_models_without_gain_the_rest_is_not_tried():
    tried = []

    def scores():
        for k, level in enumerate([0.0, 1.0, 0.5, 0.5, 9.0]):
            tried.append(k)
            yield np.full(5, level)

    assert first_best(scores(), np.ones(5)) == (1, 1.0)
    assert tried == [0, 1, 2, 3]


def test_recorded_propensities_are_the_answer():
    rows = labelled()
    behaviour = Logged()
    assert isinstance(behaviour, Behaviour)
    fitted = behaviour.fit(rows, np.ones(len(rows)))
    assert isinstance(fitted, FittedBehaviour)
    np.testing.assert_allclose(fitted.log_prob(rows), np.log(rows.propensity))


def test_missing_propensities_are_asked_of_the_rows_own_logger():
    full = labelled()
    rows = make_rows(full.observation, full.action, np.log(full.propensity), full.logger)
    rows.propensity[::3] = np.nan
    fitted = Logged({"up": UP, "down": DOWN}).fit(rows, np.ones(len(rows)))
    np.testing.assert_allclose(fitted.log_prob(rows), np.log(full.propensity))


def test_missing_propensities_without_a_policy_are_a_data_error():
    rows = labelled()
    rows.propensity[[1, 3]] = np.nan
    with pytest.raises(DataError, match=r"missing in 2 of 800 rows[\s\S]*rows:     1, 3[\s\S]*'down'"):
        Logged({"up": UP}).fit(rows, np.ones(len(rows)))


def test_a_logged_action_of_probability_zero_is_a_data_error():
    rows = labelled()
    rows.propensity[2] = 0.0
    with pytest.raises(DataError, match="never takes"):
        Logged().log_prob(rows)


def test_each_logger_is_fitted_to_its_own_rows():
    rows, new = labelled(), labelled(seed=1)
    behaviour = PerLogger(HeteroscedasticGaussian(NormalisedBumps(8)))
    fitted = behaviour.fit(rows, np.ones(len(rows)))
    assert behaviour.name == "per logger: Gaussian mixture"
    assert np.abs(fitted.log_prob(new) - np.log(new.propensity)).mean() < 0.15
    up = np.flatnonzero(rows.logger == "up")
    alone = HeteroscedasticGaussian(NormalisedBumps(8)).fit(rows.take(up), np.ones(len(up)))
    np.testing.assert_array_equal(fitted.log_prob(rows)[up], alone.log_prob(rows.take(up)))


def test_a_label_that_was_not_fitted_is_a_data_error():
    rows = labelled()
    fitted = PerLogger(HeteroscedasticGaussian(NormalisedBumps(8))).fit(rows, np.ones(len(rows)))
    stranger = make_rows(rows.observation[:2], rows.action[:2], logger=["up", "new"])
    with pytest.raises(DataError, match=r"logger 'new'[\s\S]*rows:     1"):
        fitted.log_prob(stranger)
