import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from mixope.base.errors import DataError, UsageError
from mixope.policies import DiscretePolicy, read_policy, sklearn_policy

GENERATOR = np.random.default_rng(0)
OBSERVATIONS = GENERATOR.normal(size=(200, 3))
ACTIONS = np.array(["left", "right", "stay"])[GENERATOR.integers(3, size=200)]


@pytest.fixture(scope="module")
def classifier():
    return LogisticRegression().fit(OBSERVATIONS, ACTIONS)


def test_classes_are_actions_and_probabilities_their_laws(classifier):
    policy = sklearn_policy(classifier)
    assert isinstance(policy, DiscretePolicy)
    assert policy.actions.tolist() == ["left", "right", "stay"]
    np.testing.assert_allclose(policy.probs(OBSERVATIONS), classifier.predict_proba(OBSERVATIONS), rtol=1e-12)
    taken = classifier.predict_log_proba(OBSERVATIONS)[np.arange(200), np.searchsorted(policy.actions, ACTIONS)]
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, ACTIONS), taken, rtol=1e-9)


def test_the_reader_takes_classifiers_and_pipelines(classifier):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(OBSERVATIONS, ACTIONS)
    assert read_policy(classifier).fingerprint() == sklearn_policy(classifier).fingerprint()
    np.testing.assert_allclose(read_policy(pipeline).probs(OBSERVATIONS), pipeline.predict_proba(OBSERVATIONS))


def test_ids_are_one_column():
    states, actions = np.repeat(["a", "b"], 50), np.tile([0, 1, 1, 1], 25)
    policy = sklearn_policy(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(states[:, None], actions))
    np.testing.assert_allclose(policy.probs(states)[:, 1], 0.75, atol=0.02)


def test_laws_in_single_precision_are_laws():
    single = OBSERVATIONS.astype(np.float32)
    network = MLPClassifier((8,), max_iter=500, tol=1e-2, random_state=0).fit(single, ACTIONS)
    assert network.predict_proba(single).dtype == np.float32
    np.testing.assert_allclose(sklearn_policy(network).probs(single).sum(axis=1), 1, atol=1e-15)


def test_a_classifier_fitted_on_a_frame_takes_arrays():
    frame = pd.DataFrame(OBSERVATIONS, columns=["x", "y", "z"])
    policy = sklearn_policy(KNeighborsClassifier().fit(frame, ACTIONS))
    assert policy.probs(OBSERVATIONS).shape == (200, 3)


def test_an_action_that_is_no_class_is_an_error_or_zero(classifier):
    with pytest.raises(DataError, match="does not know"):
        sklearn_policy(classifier).log_prob(OBSERVATIONS[:1], np.array(["jump"]))
    lenient = sklearn_policy(classifier, unknown_actions="zero")
    assert lenient.log_prob(OBSERVATIONS[:1], np.array(["jump"]))[0] == -np.inf


def test_another_fit_has_another_fingerprint(classifier):
    other = LogisticRegression().fit(OBSERVATIONS[:100], ACTIONS[:100])
    assert sklearn_policy(other).fingerprint() != sklearn_policy(classifier).fingerprint()


def test_observations_of_the_wrong_width_are_refused(classifier):
    with pytest.raises(DataError, match="LogisticRegression cannot take these observations"):
        sklearn_policy(classifier).probs(OBSERVATIONS[:, :2])


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (LogisticRegression(), "is not fitted"),
        (LogisticRegression, "is a class"),
        (LinearSVC(), "gives no probabilities"),
        (DummyClassifier().fit(OBSERVATIONS, np.zeros((200, 2))), "2 labels at once"),
    ],
)
def test_what_is_no_policy_is_refused_in_words(classifier, message):
    with pytest.raises(UsageError, match=message):
        sklearn_policy(classifier)


def test_options_of_tables_are_refused(classifier):
    with pytest.raises(UsageError, match="default is for tables; a classifier answers"):
        read_policy(classifier, default="uniform")
    with pytest.raises(UsageError, match="not for classifiers"):
        read_policy(classifier, actions=[0, 1])
