"""A backtest answers the question that the target is to be asked, and says what it did."""

import json

import numpy as np
import pytest

import mixope
from cli.running import run
from mixope.base.estimand import Estimand

STEPS, STAY = 12, (0.55, 0.8)
"""The longest episode; how likely it is that an episode goes on, by action."""


def sessions(episodes=240, seed=0, cap=None, vectors=False):
    """Two loggers, one reward per step: nothing tells them apart but how long their episodes are."""
    draw = np.random.default_rng(seed)
    rows = []
    for e in range(episodes):
        logger = e % 2
        for t in range(10_000 if cap is None else cap):
            state = int(draw.integers(2))
            action = int(draw.random() < (0.3, 0.6)[logger])
            over = draw.random() > STAY[action]
            rows.append((e, t, state, action, 1.0, over, not over and cap is not None and t == cap - 1, logger))
            if over:
                break
    names = ("episode_id", "step", "observation", "action", "reward", "terminated", "truncated", "policy_id")
    columns = {name: np.array(found) for name, found in zip(names, zip(*rows, strict=True), strict=True)}
    after = np.append(columns["observation"][1:], 0)
    columns["next_observation"] = np.where(columns["truncated"], draw.integers(2, size=len(after)), after)
    columns["policy_id"] = np.where(columns["policy_id"] == 0, "brief", "long")
    if vectors:
        for name in ("observation", "next_observation"):
            columns[name] = columns[name][:, None] + 0.1 * draw.normal(size=(len(after), 1))
    return columns


def test_the_total_is_what_the_episodes_earned():
    columns = sessions()
    asked = mixope.backtest(columns, estimand="episode")
    assert [row.estimand for row in asked.rows] == ["total of an episode"] * 2
    for row in asked.rows:
        mine = columns["policy_id"] == row.label
        assert row.earned == pytest.approx(mine.sum() / len(set(columns["episode_id"][mine])))
    assert asked.estimand == Estimand("episode")
    assert asked.unit == "reward per episode"
    assert asked.agree == len(asked.supported) == 2
    empty = mixope.backtest(columns)
    assert [row.earned for row in empty.rows] == [1.0, 1.0]  # which says nothing


@pytest.mark.parametrize("asked", [{"gamma": 0.8}, {"horizon": 3}, {"estimand": "episode", "gamma": 0.9}], ids=str)
def test_other_estimands_are_those_of_the_episodes_too(asked):
    columns = sessions()
    found = mixope.backtest(columns, **asked)
    gamma, horizon = asked.get("gamma", 1.0), asked.get("horizon", np.inf)
    scale = 1.0 if asked.get("estimand") else 1 / horizon if "horizon" in asked else 1 - gamma
    for row in found.rows:
        mine = columns["policy_id"] == row.label
        step = columns["step"][mine]
        by_hand = scale * (gamma**step * (step < horizon)).sum() / len(set(columns["episode_id"][mine]))
        assert row.earned == pytest.approx(by_hand)
        assert row.covered
    assert not any("solved from its own rows" in note for note in found.notes)


def test_where_episodes_were_cut_what_a_logger_earned_is_solved_and_a_note_says_so():
    found = mixope.backtest(sessions(cap=4), estimand="episode")
    whole = mixope.backtest(sessions(episodes=4000, seed=1), estimand="episode")
    assert any("solved from its own rows" in note for note in found.notes)
    for row, truth in zip(found.rows, whole.rows, strict=True):
        assert row.earned_low < truth.earned < row.earned_high


def test_vectors_answer_the_same_question():
    found = mixope.backtest(sessions(episodes=120, vectors=True), estimand="episode")
    columns = sessions(episodes=120)
    for row in found.rows:
        mine = columns["policy_id"] == row.label
        assert row.earned == pytest.approx(mine.sum() / len(set(columns["episode_id"][mine])))
    assert {row.estimand for row in found.rows} == {"total of an episode"}


def test_episodes_that_mostly_ended_are_not_said_to_be_all_cut():
    columns = sessions(episodes=120, cap=STEPS, vectors=True)
    cut = {label: int(columns["truncated"][columns["policy_id"] == label].sum()) for label in ("brief", "long")}
    assert max(cut.values()) > 0
    (note,) = [note for note in mixope.backtest(columns).notes if "long-run average is predicted" in note]
    assert "all" not in note.split("Where")[0]
    for label, n in cut.items():
        if n:
            assert f"after {STEPS} steps {n} of 60 of {label}'s episodes" in note


def test_json_and_the_command_line_have_it_too(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(sessions()), path)
    result = run("backtest", path, "--estimand", "episode", "--json")
    record = json.loads(result.stdout)
    assert record["estimand"] == {"kind": "episode"}
    assert record["unit"] == "reward per episode"
    assert mixope.Backtest.from_json(result.stdout).to_json() == json.dumps(record, indent=2, ensure_ascii=False)
    shown = run("backtest", path, "--estimand", "episode", "--full").stdout
    assert "total of an episode, reward per episode" in " ".join(shown.split())
    assert run("backtest", path, "--gamma", "0.9", "--estimand", "horizon").exit_code == 2


def test_an_answer_is_tested_on_its_own_question(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, target = tmp_path / "log.parquet", tmp_path / "t.csv"
    pq.write_table(pa.table(sessions()), path)
    target.write_text("observation,action,prob\n" + "".join(f"{s},{a},0.5\n" for s in (0, 1) for a in (0, 1)))
    result = run("evaluate", path, "--target", target, "--estimand", "episode", "--backtest", "--json")
    assert json.loads(result.stdout)["backtest"]["estimand"] == {"kind": "episode"}


def test_a_prediction_that_is_refused_draws_no_conclusion():
    columns = sessions(episodes=12)
    columns["action"] = np.where(columns["policy_id"] == "long", 1, 0)  # neither does what the other did
    found = mixope.backtest(columns)
    assert found.supported == ()
    assert {(row.covered, row.z, row.deviate) for row in found.rows} == {(None, None, None)}
