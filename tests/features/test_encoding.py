"""Columns of a state as numbers for a learner: each by its role, deterministic, and the same when pickled."""

import pickle

import numpy as np
import pytest

from mixope.base.errors import DataError
from mixope.features import StateEncoding
from mixope.requests.request import content_key

ROLES = ("number", "missing", "category", "number")


def mixed(n=200, seed=0):
    generator = np.random.default_rng(seed)
    gone = generator.random(n) < 0.2
    age = np.where(gone, 0.0, generator.normal(60, 10, n))
    ward = generator.choice([1.25, 1.5, 1.75], n, p=[0.6, 0.39, 0.01])
    return np.stack([age, gone, ward, np.full(n, 3.0)], axis=1)


def test_plain_vectors_are_standardised_and_constants_left_out():
    states = np.random.default_rng(0).normal(5, 3, (100, 3))
    states[:, 1] = 7.0
    encoding = StateEncoding.fit(states)
    found = encoding.transform(states)
    assert encoding.size == 2
    assert encoding.source == (0, 2)
    np.testing.assert_allclose(found, (states - states.mean(0))[:, [0, 2]] / states.std(0)[[0, 2]])


def test_a_missing_number_is_at_the_mean_of_the_others_and_has_an_indicator():
    states = mixed()
    gone = states[:, 1] == 1
    encoding = StateEncoding.fit(states, ROLES)
    found = encoding.transform(states)
    assert encoding.source[:2] == (0, 1)
    assert (found[gone, 0] == 0).all()
    assert found[~gone, 0].mean() == pytest.approx(0, abs=1e-12)
    assert found[~gone, 0].std() == pytest.approx(1)
    np.testing.assert_array_equal(found[:, 1], gone)


def test_levels_have_a_column_each_and_rare_or_unknown_ones_share_one():
    states = mixed()
    states[:4, 2] = 1.75
    states[4:, 2] = np.where(states[4:, 2] == 1.75, 1.25, states[4:, 2])
    encoding = StateEncoding.fit(states, ROLES)
    found = encoding.transform(states)[:, 2:]
    np.testing.assert_array_equal(found, np.stack([states[:, 2] == c for c in (1.25, 1.5, 1.75)], axis=1))
    renamed = states.copy()
    renamed[:, 2] = 3.0 - states[:, 2]
    np.testing.assert_array_equal(StateEncoding.fit(renamed, ROLES).transform(renamed)[:, 2:], found)
    states[0, 2] = 1.99
    np.testing.assert_array_equal(encoding.transform(states)[0, 2:], [0, 0, 1])


def test_ids_and_factors_of_words_are_one_hot():
    ids = np.repeat([4, 9], 10)
    np.testing.assert_array_equal(StateEncoding.fit(ids).transform(ids), np.stack([ids == 4, ids == 9], axis=1))
    factors = np.stack([np.array(["a", "b"] * 10, dtype=object), np.repeat([1, 2], 10)], axis=1)
    found = StateEncoding.fit(factors).transform(factors)
    np.testing.assert_array_equal(found[:, :2], np.stack([factors[:, 0] == c for c in "ab"], axis=1))
    np.testing.assert_array_equal(found[:, 2:], np.stack([factors[:, 1] == c for c in (1, 2)], axis=1))


def test_equal_samples_give_encodings_of_equal_content_also_after_a_pickle():
    one, other = StateEncoding.fit(mixed(), ROLES), StateEncoding.fit(mixed()[::-1], ROLES)
    assert content_key(one) == content_key(pickle.loads(pickle.dumps(one)))
    np.testing.assert_allclose(one.transform(mixed()), other.transform(mixed()), atol=1e-12)


def test_states_of_another_width_are_refused():
    with pytest.raises(DataError, match="another shape"):
        StateEncoding.fit(mixed(), ROLES).transform(np.zeros((2, 3)))


def test_a_state_that_never_varies_has_no_columns():
    encoding = StateEncoding.fit(np.ones((10, 2)))
    assert encoding.transform(np.ones((3, 2))).shape == (3, 0)
