"""The same episodes carry all targets: differences are narrow where targets are alike, and cover."""

import json

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.comparison import compare_targets
from mixope.differences import JointScores, contest, pairwise, ranks
from mixope.features import NormalisedBumps
from mixope.session.session import count
from mixope.worlds import continuous, linear_quadratic, simulate, truth

from .logs import chain_log


def near(target, toward, share=0.1):
    return (1 - share) * target + share * toward


def twins(seed, episodes=40):
    model, target, loggers, columns = chain_log(seed, episodes=episodes, horizon=20)
    other = near(target, loggers[0])
    return model, {"old": target, "new": other}, columns


def policies(laws):
    return {name: mixope.TabularPolicy(law) for name, law in laws.items()}


@pytest.mark.long
def test_the_difference_of_similar_targets_is_three_times_narrower_than_the_naive_one_and_covers():
    hits, ratios, logs = 0, [], 60
    for seed in range(logs):
        model, laws, columns = twins(seed)
        wanted = truth.average(model, laws["old"]) - truth.average(model, laws["new"])
        found = compare_targets(columns, policies(laws), "emp")["old", "new"]
        hits += found.interval.low <= wanted <= found.interval.high
        ratios.append(found.narrower)
    assert np.min(ratios) >= 3
    assert 0.88 <= hits / logs <= 1.0


@pytest.mark.parametrize("estimator", ["emp", "bch-pooled", "wis-step", "dr"])
def test_values_and_errors_are_those_of_each_target_alone(estimator):
    _, laws, columns = twins(3)
    found = compare_targets(columns, policies(laws), estimator)
    alone = {name: mixope.evaluate(columns, policy, estimator) for name, policy in policies(laws).items()}
    pair = found["old", "new"]
    assert pair.value == pytest.approx(alone["old"].value - alone["new"].value)
    for place in found.selection.ranks:
        assert place.standard_error == pytest.approx(alone[place.target].standard_error)
    naive = np.hypot(alone["old"].standard_error, alone["new"].standard_error)
    assert pair.independent_standard_error == pytest.approx(naive)


def test_a_target_is_as_good_as_itself():
    _, laws, columns = twins(1)
    same = compare_targets(columns, policies({"a": laws["old"], "b": laws["old"]}), "emp")["a", "b"]
    assert (same.value, same.standard_error, same.probability_first_is_better) == (0.0, 0.0, 0.5)
    assert same.narrower == np.inf


@pytest.mark.long
def test_joint_intervals_are_wider_and_cover_together():
    generator = np.random.default_rng(0)
    covered = {"single": 0, "joint": 0}
    repetitions = 300
    for _ in range(repetitions):
        data = generator.normal(size=(30, 4)) @ generator.normal(size=(4, 4))
        joint = JointScores(tuple("abcd"), data.mean(axis=0), (data - data.mean(axis=0)) / 30)
        pairs = pairwise(joint, 0.9, seed=1)
        covered["single"] += all(p.interval.low <= 0 <= p.interval.high for p in pairs)
        covered["joint"] += all(p.joint.low <= 0 <= p.joint.high for p in pairs)
        assert all(p.joint.width > p.interval.width for p in pairs)
    assert covered["joint"] / repetitions == pytest.approx(0.9, abs=0.06)
    assert covered["single"] < covered["joint"]


def test_ranks_are_probabilities_and_repeat():
    generator = np.random.default_rng(2)
    scores = generator.normal(size=(50, 3)) / 50
    joint = JointScores(("low", "high", "middle"), np.array([0.0, 10.0, 0.05]), scores)
    ranking = ranks(contest(joint, 0.95, seed=3))
    assert [r.target for r in ranking] == ["high", "middle", "low"]
    assert ranking[0].probability_best == 1.0
    assert (ranking[0].low, ranking[0].high) == (1, 1)
    assert (ranking[1].low, ranking[1].high) == (2, 3)
    assert all(sum(r.places) == pytest.approx(1.0) for r in ranking)
    assert sum(r.expected_rank for r in ranking) == pytest.approx(6.0)
    assert ranking == ranks(contest(joint, 0.95, seed=3))


def test_the_probability_agrees_with_the_interval():
    _, laws, columns = twins(5)
    reverse = {"new": laws["new"], "old": laws["old"]}
    there = compare_targets(columns, policies(laws))["old", "new"]
    back = compare_targets(columns, policies(reverse))["new", "old"]
    assert there.probability_first_is_better == pytest.approx(1 - back.probability_first_is_better)
    assert (there.interval.low > 0) == (there.probability_first_is_better > 0.975)


def test_a_record_is_text_and_json():
    _, laws, columns = twins(5)
    found = compare_targets(count(columns), policies(laws))
    record = json.loads(found.to_json())
    assert record["estimator"] == "emp"
    assert record["pairs"][0]["interval"]["level"] == 0.95
    assert [r["target"] for r in record["ranks"]] == [r.target for r in found.selection.ranks]
    assert "old is best with probability" in found.full()
    assert "40 episodes" in found.full()
    with pytest.raises(KeyError, match="'old', 'new'"):
        found["new", "old"]


def test_one_long_episode_is_cut_into_blocks():
    model, laws, _ = twins(0)
    loggers = chain_log(0)[2]
    columns = simulate(model, loggers[:1], 1, 4000, seed=1)
    found = compare_targets(columns, policies(laws), "emp")
    assert found.n_episodes == 1
    assert any("one episode" in alert for alert in found.alerts)
    assert found["old", "new"].narrower > 3
    short = {name: column[:20] for name, column in columns.items()}
    with pytest.raises(UsageError, match="at least two episodes"):
        compare_targets(short, policies(laws), "emp")
    with pytest.raises(UsageError, match="at least two episodes"):
        compare_targets(columns, policies(laws), "wis")
    with pytest.raises(UsageError, match="weighs whole episodes"):
        compare_targets(columns, policies(laws), "wis", interval="blocks")


def test_vectors_have_differences_too():
    loggers = linear_quadratic.loggers(4)[1:]
    columns = continuous.simulate(linear_quadratic.linear_quadratic(), loggers, 30, 40, seed=0)
    targets = {name: mixope.LinearGaussianPolicy([-0.4, -0.4], bias, 0.6) for name, bias in (("a", 0.0), ("b", 0.05))}
    found = compare_targets(columns, targets, "emp", features=NormalisedBumps(20))["a", "b"]
    alone = [mixope.evaluate(columns, t, "emp", features=NormalisedBumps(20)) for t in targets.values()]
    assert found.value == pytest.approx(alone[0].value - alone[1].value)
    assert found.independent_standard_error == pytest.approx(np.hypot(*(e.standard_error for e in alone)))
    assert found.narrower > 1.5


def test_few_episodes_and_uncovered_targets_are_said():
    model, laws, _ = twins(0)
    greedy = np.eye(model.n_actions)[np.zeros(model.n_states, dtype=int)]
    lazy = near(greedy, laws["old"], 0.05)
    columns = simulate(model, [greedy, lazy], 4, 40, seed=0)
    found = compare_targets(columns, policies({"greedy": greedy, "old": laws["old"]}), "emp")
    assert any("4 episodes" in alert for alert in found.alerts)
    assert any(alert.startswith("old:") for alert in found.alerts)


def test_questions_without_an_answer_are_refused():
    _, laws, columns = twins(0)
    with pytest.raises(UsageError, match="at least two targets"):
        compare_targets(columns, policies({"a": laws["old"]}))
    with pytest.raises(UsageError, match="no joint intervals"):
        compare_targets(columns, policies(laws), mixope.estimators.state_ratio.emp(form="paper"))
