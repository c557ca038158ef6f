"""Classifiers as behaviours, against laws known by construction."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mixope.base.errors import DataError, UsageError
from mixope.behaviours import ClassifierMixture, KnownMixture
from mixope.policies.gaussian import GaussianPolicy

from .test_protocol import make_rows


def logistic_law(states):
    scores = np.stack([np.zeros(len(states)), states[:, 0], 1.5 * states[:, 1] - 0.5], axis=1)
    law = np.exp(scores)
    return law / law.sum(axis=1, keepdims=True)


def stepped_law(states):
    """What no logit on quadratics can say: a checkerboard."""
    first = np.where((np.floor(states[:, 0]) + np.floor(states[:, 1])) % 2 == 0, 0.9, 0.1)
    return np.stack([first, 1 - first], axis=1)


def draw(law, names, n, seed):
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 2))
    probabilities = law(states)
    picked = (probabilities.cumsum(axis=1) < generator.random((n, 1))).sum(axis=1)
    return make_rows(states, np.asarray(names)[picked], np.log(probabilities[np.arange(n), picked]))


def error(fitted, rows):
    return np.abs(fitted.log_prob(rows) - np.log(rows.propensity)).mean()


def test_a_logistic_policy_is_recovered_by_the_logit():
    names = ["left", "none", "right"]
    rows, new = (draw(logistic_law, names, 2000, seed) for seed in (0, 1))
    fitted = ClassifierMixture().fit(rows, np.ones(2000))
    assert fitted.law.chosen == "logit"
    assert error(fitted, new) < 0.06
    assert fitted.law.held_out == pytest.approx(np.log(new.propensity).mean(), abs=0.05)


def test_boosting_is_taken_where_a_logit_is_misspecified():
    rows, new = (draw(stepped_law, [3, 7], 3000, seed) for seed in (0, 1))
    fitted = ClassifierMixture().fit(rows, np.ones(3000))
    assert fitted.law.chosen.startswith("boosting")
    assert error(fitted, new) < 0.25


def test_a_classifier_of_the_users_own_is_used():
    rows = draw(logistic_law, [0, 1, 2], 500, 0)
    fitted = ClassifierMixture(GaussianNB()).fit(rows, np.ones(500))
    assert fitted.law.chosen == "GaussianNB"
    expected = GaussianNB().fit(rows.observation, rows.action).predict_proba(rows.observation)
    np.testing.assert_allclose(np.exp(fitted.log_prob(rows)), expected[np.arange(500), rows.action])


def test_probabilities_sum_to_one_over_the_actions():
    rows = draw(logistic_law, [0, 1, 2], 500, 0)
    fitted = ClassifierMixture(GaussianNB(), floor=0.0).fit(rows, np.ones(500))
    total = sum(np.exp(fitted.log_prob(make_rows(rows.observation, np.full(500, a)))) for a in range(3))
    np.testing.assert_allclose(total, 1.0)


def test_an_action_outside_the_sample_gets_the_floor():
    rows = draw(logistic_law, [0, 1, 2], 500, 0)
    unseen = make_rows(rows.observation[:4], np.full(4, 9))
    given = GaussianNB()
    np.testing.assert_allclose(ClassifierMixture(given).fit(rows, np.ones(500)).log_prob(unseen), np.log(1 / 500))
    np.testing.assert_allclose(
        ClassifierMixture(given, floor=0.01).fit(rows, np.ones(500)).log_prob(unseen), np.log(0.01)
    )


@pytest.mark.parametrize("kind", ["integers", "strings", "ids"])
def test_factors_and_ids_are_encoded_by_rank(kind):
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 4, size=(1500, 2))
    first = 0.2 + 0.6 * (codes[:, 0] == 2)
    action = (generator.random(1500) > first).astype(int)
    states = {"integers": 10 * codes, "strings": codes.astype(str).astype(object), "ids": 10 * codes[:, 0]}[kind]
    rows = make_rows(states, action, np.log(np.where(action == 0, first, 1 - first)))
    fitted = ClassifierMixture().fit(rows, np.ones(1500))
    assert error(fitted, rows) < 0.12
    new = np.full(states[:1].shape, "never" if kind == "strings" else 5, dtype=states.dtype)
    assert np.isfinite(fitted.log_prob(make_rows(new, action[:1]))).all()


def test_one_action_throughout_has_probability_one():
    rows = make_rows(np.random.default_rng(0).normal(size=(50, 2)), np.full(50, "wait"))
    np.testing.assert_array_equal(ClassifierMixture().fit(rows, np.ones(50)).log_prob(rows), np.zeros(50))


def test_rows_of_weight_zero_do_not_count():
    rows = draw(logistic_law, [0, 1, 2], 600, 0)
    weight = (rows.action != 1).astype(float)
    fitted = ClassifierMixture(GaussianNB()).fit(rows, weight)
    assert fitted.law.classes.tolist() == [0, 2]


def test_vectors_of_actions_and_strange_states_are_refused():
    rows = draw(logistic_law, [0, 1, 2], 100, 0)
    with pytest.raises(DataError, match="actions are not ids"):
        ClassifierMixture().fit(make_rows(rows.observation, rows.observation), np.ones(100))
    fitted = ClassifierMixture(GaussianNB()).fit(rows, np.ones(100))
    with pytest.raises(DataError, match="states have NaN"):
        fitted.log_prob(make_rows(np.full((2, 2), np.nan), np.zeros(2, dtype=int)))
    with pytest.raises(DataError, match="another shape"):
        fitted.log_prob(make_rows(np.zeros((2, 3)), np.zeros(2, dtype=int)))


LOW, HIGH = (GaussianPolicy(lambda s, at=at: at + 0 * s[:, :1], 1.0) for at in (-1.0, 1.0))


def known_world(n, share_of_high, seed=0):
    """States normal, the logger drawn with a probability that is a function of the state."""
    generator = np.random.default_rng(seed)
    states = generator.normal(size=(n, 2))
    share = share_of_high(states)
    high = generator.random(n) < share
    actions = np.where(high[:, None], HIGH.sample(states, generator), LOW.sample(states, generator))
    mixture = share * np.exp(HIGH.log_prob(states, actions)) + (1 - share) * np.exp(LOW.log_prob(states, actions))
    return make_rows(states, actions, np.log(mixture), np.where(high, "high", "low")), high.mean()


def test_the_known_mixture_is_exact_where_states_do_not_tell_loggers_apart():
    rows, share = known_world(1000, lambda s: np.full(len(s), 0.3))
    fitted = KnownMixture({"low": LOW, "high": HIGH}).fit(rows, np.ones(1000))
    high, low = (np.exp(p.log_prob(rows.observation, rows.action)) for p in (HIGH, LOW))
    assert fitted.law.chosen == "shares"
    np.testing.assert_allclose(np.exp(fitted.log_prob(rows)), share * high + (1 - share) * low, rtol=1e-12)


def test_the_known_mixture_learns_who_was_where():
    rows, _ = known_world(2000, lambda s: 1 / (1 + np.exp(-2 * s[:, 0])))
    fitted = KnownMixture({"low": LOW, "high": HIGH}).fit(rows, np.ones(2000))
    assert fitted.law.chosen == "logit"
    assert error(fitted, rows) < 0.04


def test_one_known_logger_is_its_policy():
    rows, _ = known_world(100, lambda s: np.ones(len(s)))
    fitted = KnownMixture({"high": HIGH}).fit(rows, np.ones(100))
    np.testing.assert_allclose(fitted.log_prob(rows), HIGH.log_prob(rows.observation, rows.action))


def test_an_unknown_label_says_how_to_give_its_policy():
    rows, _ = known_world(100, lambda s: np.full(len(s), 0.5))
    with pytest.raises(UsageError, match=r"'low' is not known[\s\S]*loggers="):
        KnownMixture({"high": HIGH}).fit(rows, np.ones(100))


def test_an_action_that_no_logger_takes_is_a_data_error():
    class Never:
        def log_prob(self, observations, actions):
            return np.full(len(observations), -np.inf)

        def fingerprint(self):
            return "never"

    rows, _ = known_world(100, lambda s: np.full(len(s), 0.5))
    fitted = KnownMixture({"low": Never(), "high": Never()}).fit(rows, np.ones(100))
    with pytest.raises(DataError, match="never takes"):
        fitted.log_prob(rows)
