"""Logs whose episodes end are judged by what an end means for the question: what is right is not refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mixope
from mixope.base.estimand import Estimand
from mixope.checks.evidence import Evidence
from mixope.checks.value import reward_range
from mixope.checks.weights import mean_weight
from mixope.estimators import Solution
from mixope.estimators.solution import Measures
from mixope.uncertainty import Interval, Uncertainty


def pole(seed=0, episodes=300):
    """A pole that falls sooner by action 1, one unit of reward per step; states 0 and 1 alternate."""
    generator = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state, ended, step = 0, False, 0
        while not ended:
            action = int(generator.random() < 0.5)
            ended = bool(generator.random() < (0.4 if action else 0.1))
            rows.append((episode, step, state, action, 1.0, 1 - state, ended))
            state, step = 1 - state, step + 1
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


TARGET = mixope.TabularPolicy([[0.8, 0.2], [0.8, 0.2]])
FALLS = 0.8 * 0.1 + 0.2 * 0.4


def check(estimate, name):
    return next((d for d in estimate.diagnostics if d.name == name), None)


@pytest.mark.parametrize(
    ("options", "truth"),
    [
        ({"estimand": "discounted", "gamma": 0.95}, 0.05 / (1 - 0.95 * (1 - FALLS))),
        ({"estimand": "horizon", "horizon": 10}, (1 - (1 - FALLS) ** 10) / FALLS / 10),
        ({}, 1.0),
    ],
)
def test_nothing_is_earned_after_an_end_and_that_is_within_the_range(options, truth):
    found = mixope.evaluate(pole(), TARGET, "emp", **options)
    assert found.value == pytest.approx(truth, rel=0.1)
    assert check(found, "reward range").status == "pass"
    assert str(found.verdict) == "trustworthy"


def evidence(value, estimand, ended=1.0, **measures):
    survey = SimpleNamespace(lowest=1.0, highest=2.0, episodes=SimpleNamespace(ended=np.array([0.0, ended])))
    return Evidence(Solution(value, measures=Measures(**measures)), Uncertainty(), survey, estimand=estimand)


@pytest.mark.parametrize(
    ("value", "estimand", "ended", "status"),
    [
        (0.5, Estimand("discounted", gamma=0.9), 1.0, "pass"),
        (0.5, Estimand("discounted", gamma=0.9), 0.0, "fail"),
        (2.5, Estimand("discounted", gamma=0.9), 1.0, "fail"),
        (-0.5, Estimand("horizon", horizon=4), 1.0, "fail"),
        (0.5, Estimand(), 1.0, "fail"),
    ],
)
def test_zero_belongs_to_the_range_where_an_end_is_final_and_somebody_ended(value, estimand, ended, status):
    assert reward_range(evidence(value, estimand, ended)).status == status


@pytest.mark.parametrize(("value", "status"), [(5.0, "pass"), (9.9, "pass"), (4.0, "fail"), (11.0, "fail")])
def test_the_total_of_an_episode_lies_among_the_sums_of_as_many_rewards(value, status):
    found = reward_range(evidence(value, Estimand("episode"), episode_length=5.0))
    assert found.status == status
    assert "what an episode can earn by the logged rewards, 5 to 10" in found.sentence


@pytest.mark.parametrize(("value", "status"), [(1.0, "pass"), (19.0, "pass"), (0.9, "fail"), (21.0, "fail")])
def test_without_a_length_an_episode_has_at_least_one_step_and_what_a_discount_allows(value, status):
    assert reward_range(evidence(value, Estimand("episode", gamma=0.9))).status == status


def test_a_value_beyond_the_rewards_is_refused_only_where_its_interval_is_beyond_them_too():
    near, far = (
        replace(evidence(2.1, Estimand()), uncertainty=Uncertainty(Interval(low, 2.6, 0.95, "by hand"), 0.3))
        for low in (1.6, 2.05)
    )
    assert (reward_range(near).status, reward_range(far).status) == ("pass", "fail")
    assert "by chance" in reward_range(near).sentence


def test_the_mean_weight_is_a_share_of_the_mass():
    found = mean_weight(evidence(1.0, Estimand("discounted", gamma=0.9), mean_weight=0.6))
    assert (found.name, found.status, found.value, found.bound) == ("mean weight", "warn", 0.6, "within")


def test_rewards_that_are_all_equal_are_no_reason_for_caution():
    """The average of ones is one, with scores that are rounding; no check may make anything of that."""
    for seed in range(5):
        found = mixope.evaluate(pole(seed, 60), TARGET, "emp")
        assert found.value == pytest.approx(1.0)
        assert [d.name for d in found.diagnostics if d.status != "pass"] == []


def survival(seed, episodes=400):
    """Up to three visits, then one reward at the end: the patient lived, or did not."""
    generator = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        visits = int(generator.integers(1, 4))
        for step in range(visits):
            action, last = int(generator.random() < 0.5), step == visits - 1
            lived = float(generator.random() < (0.7 if action else 0.4)) if last else 0.0
            rows.append((episode, step, step, action, lived, step + 1, last))
    names = ("episode_id", "step", "observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


CARE = mixope.TabularPolicy([[0.3, 0.7]] * 3)


def test_one_random_reward_per_episode_raises_no_alarm():
    """The reward of an end may vary, but there is no second one that it could hang together with."""
    alarms = []
    for seed in range(30):
        found = mixope.evaluate(survival(seed), CARE, "emp")
        assert check(found, "rewards by episode") is None
        alarms.append(any(d.status != "pass" for d in found.diagnostics))
    assert sum(alarms) <= 1


def test_the_verdict_on_a_table_is_that_on_its_file(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for seed in range(6):
        columns = survival(seed, 100)
        columns["reward"] = columns["reward"] * 0.1
        pq.write_table(pa.table(columns), tmp_path / f"{seed}.parquet")
        table, file = (mixope.evaluate(logs, CARE, "emp") for logs in (columns, str(tmp_path / f"{seed}.parquet")))
        assert [(d.name, d.status) for d in table.diagnostics] == [(d.name, d.status) for d in file.diagnostics]
