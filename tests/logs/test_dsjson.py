"""Decisions of Vowpal Wabbit: rewards, propensities and loggers are those of the lines; no line vanishes unsaid."""

import gzip
import json

import pytest
from other_tools import decision, dsjson

import mixope
from cli.running import run
from mixope.base.errors import DataError

MORE_SPORTS = mixope.TabularPolicy(
    [[0.25, 0.75]], states=[("pro", "UK")], actions=["news", "sports"], default=[0.25, 0.75]
)


@pytest.mark.parametrize("name", ["log.dsjson", "log.json", "log.jsonl", "log.dsjson.gz"])
def test_every_decision_is_an_episode_of_one_step(tmp_path, name):
    path = dsjson(tmp_path / name)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    logs = mixope.read(path)
    rows = logs.table().to_pylist()
    assert [row["reward"] for row in rows] == [1.0, 0.0, 2.0]
    assert [row["propensity"] for row in rows] == [0.8, 0.5, 0.2]
    assert [row["action"] for row in rows] == ["sports", "news", "news"]
    assert [row["policy_id"] for row in rows] == ["model-0", "model-1", "model-0"]
    assert [row["episode_id"] for row in rows] == ["event-0", "event-1", "event-2"]
    assert all(row["terminated"] and row["start"] and row["step"] == 0 for row in rows)
    assert logs.schema.observation == ("observation.User.tier", "observation.User.country", "observation.hour")
    assert [row["observation.User.tier"] for row in rows] == ["pro", "free", "pro"]


def test_the_value_of_a_policy_is_the_weighted_mean_of_the_rewards(tmp_path):
    lines = [decision(n, "pro", "UK", n % 2, 0.5, -float(n % 2)) for n in range(40)]
    for line in lines:
        del line["c"]["hour"]
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = mixope.evaluate(mixope.read(path), MORE_SPORTS, estimand="episode", estimator="is")
    assert found.value == pytest.approx(0.75)


def test_what_is_no_decision_is_counted(tmp_path):
    dangling = {"RewardValue": 1.0, "EnqueuedTimeUtc": "2026-01-01T00:00:00Z", "EventId": "late"}
    unlabelled = {key: value for key, value in decision(7, "pro", "UK", 0, 0.5, 0.0).items() if key != "_label_cost"}
    silent = decision(8, "pro", "UK", 0, 0.5, 0.0, o=[])
    inactive = decision(9, "pro", "UK", 0, 0.5, 0.0, _skipLearn=True)
    path = dsjson(tmp_path / "log.dsjson", dangling, dangling, unlabelled, silent, inactive)
    with pytest.warns(mixope.MixopeWarning):
        logs = mixope.read(path)
    notes = " ".join(logs.notes)
    assert logs.total_rows() == 4
    assert "2 of the lines are not read: each holds a reward without its decision" in notes
    assert "1 of the lines is not read: each has no cost" in notes
    assert "1 of the lines is not read: each is marked as not shown" in notes
    assert "for 1 of 4 decisions no reward came; they have the default cost" in notes


def test_different_offers_are_part_of_the_state(tmp_path):
    more = decision(5, "pro", "UK", 0, 0.5, -1.0)
    more["c"]["_multi"] = [{"_tag": "music"}]
    path = dsjson(tmp_path / "log.dsjson", more)
    with pytest.warns(mixope.MixopeWarning, match="lines offer different actions"):
        rows = mixope.read(path).table().to_pylist()
    assert [row["observation.offered"] for row in rows] == ["news|sports"] * 3 + ["music"]


def test_actions_without_a_tag_are_called_by_their_features(tmp_path):
    line = decision(0, "pro", "UK", 1, 0.5, -1.0)
    line["c"] = {"_multi": [{"T": {"topic": "herbs"}}, {"T": {"topic": "cars"}, "price": 3}]}
    (tmp_path / "log.dsjson").write_text(json.dumps(line))
    (row,) = mixope.read(tmp_path / "log.dsjson").table().to_pylist()
    assert (row["action"], row["observation"]) == ("T.topic=cars,price=3", "no context")


def test_a_feature_that_a_line_lacks_is_zero_and_a_word_is_absent(tmp_path):
    line = decision(5, "pro", "UK", 0, 0.5, -1.0)
    line["c"] |= {"User": {"tier": "pro"}, "score": 0.5}
    row = mixope.read(dsjson(tmp_path / "log.dsjson", line)).table().to_pylist()
    assert [each["observation.User.country"] for each in row] == ["UK", "UK", "FR", "(absent)"]
    assert [each["observation.score"] for each in row] == [0, 0, 0, 0.5]


@pytest.mark.parametrize("ending", ["dsjson", "jsonl"])
def test_decisions_without_a_name_are_kept_apart(tmp_path, ending):
    dsjson(tmp_path / f"a.{ending}", without=["EventId"])
    dsjson(tmp_path / f"b.{ending}", decision(5, "pro", "UK", 0, 0.5, -1.0), without=["EventId"])
    rows = mixope.read(tmp_path).table().to_pylist()
    assert len({row["episode_id"] for row in rows}) == 7


def test_the_same_event_twice_is_refused(tmp_path):
    path = dsjson(tmp_path / "log.dsjson", decision(2, "pro", "UK", 0, 0.5, -1.0))
    uniform = mixope.TabularPolicy([[0.5, 0.5]], [("pro", "UK", 9)], ["news", "sports"], default="uniform")
    with pytest.raises(DataError, match=r"(?s)repeat a step.*event-2"):
        mixope.evaluate(mixope.read(path), uniform, estimand="episode")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"_label_cost": 1, "c": {', "line 1"),
        ('{"_label_cost": 1, "c": {"_multi": []}}', "offers no actions"),
        ('{"_label_cost": 1, "c": {"_multi": [{}, {}]}, "_labelIndex": 0}', "cannot be told apart"),
        ('{"_label_cost": 1, "c": {"_multi": [{"_tag": "a"}]}, "_labelIndex": 1}', "not one of those offered"),
        ('{"_label_cost": "x", "c": {"_multi": [{"_tag": "a"}]}, "_labelIndex": 0}', "A label is no number"),
        (f'{{"_label_cost": 1{"0" * 400}, "c": {{"_multi": [{{}}]}}, "_labelIndex": 0}}', "A line cannot be read"),
        ('{"_label_cost": 1, "c": ' + "[" * 100_000, "A line is not JSON"),
        ('{"_outcomes": [], "c": {"_multi": [], "_slots": []}}', "several decisions per line"),
        ('{"_label_ca": {}, "c": {}}', "continuous actions"),
        ('{"EventId": "1", "RewardValue": 1.0}', "The file has no decisions"),
        ("[1]", "A line is no object"),
        ("", "The file has no decisions"),
    ],
)
def test_what_cannot_be_read_is_said_with_status_3(tmp_path, content, said):
    (tmp_path / "log.dsjson").write_text(content)
    result = run("inspect", tmp_path / "log.dsjson")
    assert result.exit_code == 3
    assert said in " ".join(result.stderr.split())


def test_lines_that_stand_for_different_numbers_of_decisions_are_refused(tmp_path):
    path = dsjson(tmp_path / "log.dsjson", decision(5, "pro", "UK", 0, 0.5, -1.0, pdrop=0.5))
    with pytest.raises(DataError, match="with different probabilities"):
        mixope.read(path)


def test_the_format_may_be_said_where_the_name_does_not(tmp_path):
    result = run("inspect", dsjson(tmp_path / "decisions.log"), "--format", "dsjson")
    assert result.exit_code == 0, result.stderr
    assert "3 rows in 3 episodes" in result.stdout
