"""A group is a row that happened n times: what is fitted to groups and to their rows is the same."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import mixope
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.behaviours import (
    BEHAVIOURS,
    ClassifierMixture,
    CountedMixture,
    DefaultMixture,
    HeteroscedasticGaussian,
    KnownMixture,
    Logged,
    MixtureOfExperts,
    PerLogger,
    behaviour_by_name,
    classifier,
    experts,
    nearest_logger_weights,
)
from mixope.estimators.state_ratio import emp
from mixope.requests.rows import Rows

from .problems import S, by_group, laws, plain, problem, rows
from .test_classifier import draw, logistic_law
from .test_gaussian import two_loggers
from .test_protocol import DOWN, UP, labelled, make_rows

TARGET = laws(9, 1)[0]


def as_plain_rows(columns):
    """The same log without numbers or counts."""
    return make_rows(columns["observation"], columns["action"], np.log(columns["action_prob"]), columns["policy_id"])


def test_a_batch_of_groups_has_every_row_once():
    columns = rows(0)
    found = problem(columns, TARGET)
    groups = found.transitions.as_rows()
    assert groups.times.sum() == 600
    assert groups.begun.sum() == found.transitions.starts.sum()
    np.testing.assert_allclose(groups.reward * groups.times, by_group(found, columns, lambda row: row[3]), atol=1e-12)
    np.testing.assert_allclose(groups.times / groups.propensity, by_group(found, columns, lambda row: 1 / row[5]))
    assert as_plain_rows(columns).times.tolist() == [1.0] * 600


def test_groups_have_observations_as_policies_see_them_and_ended_rows_keep_their_state():
    columns = rows(0)
    columns["terminated"] = np.arange(600) % 3 == 0
    groups = problem(columns, TARGET).transitions.as_rows()
    np.testing.assert_array_equal(groups.observation, groups.state)
    ended = groups.terminated
    assert ended.any()
    np.testing.assert_array_equal(groups.next_observation[ended], groups.observation[ended])
    np.testing.assert_array_equal(groups.next_observation[~ended], groups.next_state[~ended])


def test_parts_of_rows_are_joined_and_what_one_lacks_is_left_out():
    whole = problem(rows(0), TARGET).transitions.as_rows()
    parts = [whole.take(np.arange(10)), whole.take(np.arange(10, len(whole)))]
    joined = Rows.concatenate(parts)
    np.testing.assert_array_equal(joined.count, whole.count)
    assert joined.episode is None


@pytest.mark.parametrize(
    "behaviour", [CountedMixture(), CountedMixture(2.0), PerLogger(CountedMixture()), Logged()], ids=lambda b: b.name
)
@pytest.mark.parametrize("seed", range(2))
def test_groups_are_fitted_like_their_rows(behaviour, seed):
    columns, each = rows(seed), {"a": 0.5, "b": 3.0}
    found, single = problem(columns, TARGET), as_plain_rows(columns)
    groups = found.transitions.as_rows()
    on_groups = behaviour.fit(groups, np.array([each[j] for j in groups.logger]))
    on_rows = behaviour.fit(single, np.array([each[j] for j in single.logger])).log_prob(single)
    each_row = {row[:3]: value for row, value in zip(plain(columns), on_rows, strict=True)}
    expected = by_group(found, columns, lambda row: np.exp(-each_row[row[:3]]))
    np.testing.assert_allclose(on_groups.invert(groups).inverse, expected, rtol=1e-12)
    assert on_groups.invert(groups).by_row == (behaviour.name == "logged")


def test_smoothing_gives_every_action_some_probability():
    columns = rows(0, n=40)
    single = as_plain_rows(columns)
    fitted = CountedMixture(smoothing=1.0).fit(single, np.ones(40))
    total = sum(np.exp(fitted.log_prob(make_rows(np.arange(S), np.full(S, a)))) for a in range(3))
    np.testing.assert_allclose(total, 1.0)
    assert not fitted.counted
    with pytest.raises(UsageError, match="smoothing of 0 or more"):
        CountedMixture(smoothing=-1.0)


def test_what_was_never_counted_is_an_error_in_words():
    single = as_plain_rows(rows(0))
    fitted = CountedMixture().fit(single, np.ones(600))
    with pytest.raises(DataError, match="counted mixture never takes"):
        fitted.log_prob(make_rows(np.array([99]), np.array([0])))
    groups = problem(rows(0), TARGET).transitions.as_rows()
    with pytest.raises(UsageError, match="rows without numbers"):
        CountedMixture().fit(groups, np.ones(len(groups))).log_prob(single)


def test_a_policy_is_asked_once_for_each_distinct_pair():
    asked = []

    @dataclass(frozen=True)
    class Remembers:
        def log_prob(self, observations, actions):
            asked.append(len(actions))
            return np.log(np.full(len(actions), 1 / 3))

    groups = problem({k: v for k, v in rows(0).items() if k != "action_prob"}, TARGET).transitions.as_rows()
    known = {"a": Remembers(), "b": Remembers()}
    KnownMixture(known).fit(groups, np.ones(len(groups))).invert(groups)
    assert asked == [len(np.unique(groups.pair))] * 2


def test_a_gap_in_recorded_propensities_is_found_in_its_group():
    columns = rows(0)
    columns["action_prob"] = np.where(np.arange(600) == 7, np.nan, columns["action_prob"])
    groups = problem(columns, TARGET).transitions.as_rows()
    with pytest.raises(DataError, match=r"missing in groups that hold \d+ of 600 rows[\s\S]*complete the column"):
        Logged().fit(groups, np.ones(len(groups)))


def test_a_classifier_of_features_takes_opaque_ids():
    logs, target = mixope.read(rows(0)), mixope.TabularPolicy(TARGET)
    given = ClassifierMixture(GaussianNB(), features=lambda states: np.eye(S)[states])
    assert np.isfinite(mixope.evaluate(logs, target, emp(behaviour=given)).value)


def test_nearness_is_of_loggers_that_have_rows_or_a_policy():
    sample, shares = labelled(400), {"up": 0.4, "down": 0.4, "rare": 0.2}
    with pytest.raises(DataError, match="no rows of logger 'rare'"):
        nearest_logger_weights(sample, UP, {}, shares)
    known = {"up": UP, "down": DOWN, "rare": DOWN}
    found = nearest_logger_weights(sample, UP, known, shares)
    assert found["up"] > 2.3
    assert found["rare"] == 0.0
    assert sum(shares[label] * weight for label, weight in found.items()) == pytest.approx(1.0)


# --- names, options, pickles


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviours_have_names_and_travel_in_pickles(name):
    behaviour = behaviour_by_name(name)
    assert pickle.loads(pickle.dumps(behaviour)) == behaviour
    assert hash(behaviour) == hash(behaviour_by_name(name))


@pytest.mark.parametrize(
    "behaviour",
    [CountedMixture(), ClassifierMixture(GaussianNB()), PerLogger(DefaultMixture()), Logged()],
    ids=lambda b: b.name,
)
def test_fitted_behaviours_travel_in_small_pickles(behaviour):
    sample = draw(logistic_law, [0, 1, 2], 400, 0)
    if isinstance(behaviour, CountedMixture):
        sample = as_plain_rows(rows(0))
    fitted = behaviour.fit(sample, np.ones(len(sample)))
    packed = pickle.dumps(fitted)
    np.testing.assert_array_equal(pickle.loads(packed).log_prob(sample), fitted.log_prob(sample))
    if not isinstance(behaviour, PerLogger):
        assert len(packed) < 5_000


def test_a_misspelt_name_or_option_offers_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'per-logger'"):
        behaviour_by_name("per logger")
    with pytest.raises(UsageError, match="Did you mean 'smoothing'"):
        behaviour_by_name("counted", smothing=1.0)
    with pytest.raises(UsageError, match="Did you mean 'classifier'"):
        emp(behaviour="clasifier")
    with pytest.raises(UsageError, match="expected a behaviour or one of"):
        emp(behaviour=3)
    with pytest.raises(UsageError, match=r"expected a floor"):
        behaviour_by_name("classifier", floor=2.0)
    with pytest.raises(UsageError, match="predict_proba"):
        ClassifierMixture("logit")


def test_estimators_take_behaviours_by_name():
    logs, target = mixope.read(rows(0)), mixope.TabularPolicy(TARGET)
    named = mixope.evaluate(logs, target, emp(behaviour="logged"))
    assert named.value == mixope.evaluate(logs, target, emp(behaviour=Logged())).value
    assert mixope.evaluate(logs, target, emp(behaviour="mixture")).value == mixope.evaluate(logs, target, "emp").value
    with pytest.raises(MixopeError, match="opaque ids"):
        mixope.evaluate(logs, target, emp(behaviour="classifier"))


# --- what a fit has to say of itself


def test_a_logit_that_does_not_converge_says_so(monkeypatch):
    sample = draw(logistic_law, [0, 1, 2], 400, 0)
    only = {"logit": classifier.Logit}
    monkeypatch.setattr(classifier, "BY_ROWS", only)
    assert ClassifierMixture().fit(sample, np.ones(400)).notes == ()
    monkeypatch.setattr(classifier, "LOGIT_ITERATIONS", 2)
    (note,) = ClassifierMixture().fit(sample, np.ones(400)).notes
    assert "did not converge in 2 iterations" in note
    (apart,) = PerLogger(ClassifierMixture()).fit(sample, np.ones(400)).notes
    assert apart.startswith("logger 'only': the logit")


def test_rounds_of_experts_that_are_cut_short_are_noted(monkeypatch):
    sample = two_loggers(400, 0)
    monkeypatch.setattr(experts, "ROUNDS", 2)
    (note,) = MixtureOfExperts(2).fit(sample, np.ones(400)).notes
    assert "cut short" in note


def test_known_labels_need_no_rounds_of_em(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("EM was run")

    monkeypatch.setattr(experts, "fit_experts", refuse)
    sample = labelled(200)
    fitted = PerLogger(DefaultMixture()).fit(sample, np.ones(200))
    alone = HeteroscedasticGaussian()
    for label in ("up", "down"):
        mine = sample.take(sample.logger == label)
        np.testing.assert_array_equal(fitted.log_prob(mine), alone.fit(mine, np.ones(len(mine))).log_prob(mine))
