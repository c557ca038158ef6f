"""``--lags`` and ``--history``: the past of an episode beside its states."""

import numpy as np
import pytest

from mixope.logs import write

from .running import json_of, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log whose reward hangs on the action before, and a target over the state as it was logged."""
    place = tmp_path_factory.mktemp("past")
    draw = np.random.default_rng(5)
    episodes, steps = 60, 10
    action, state = draw.integers(0, 2, (episodes, steps)), draw.integers(0, 3, (episodes, steps))
    before = np.concatenate([np.zeros((episodes, 1), dtype=np.int64), action[:, :-1]], axis=1)
    columns = {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "state": state.ravel(),
        "action": action.ravel(),
        "reward": (1.0 * before + 0.1 * draw.random((episodes, steps))).ravel(),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
        "policy_id": np.repeat(np.where(np.arange(episodes) % 2, "odd", "even"), steps),
    }
    write(columns, place / "log.parquet")
    write({"state": np.repeat(np.arange(3), 2), "action": [0, 1] * 3, "prob": [0.1, 0.9] * 3}, place / "new.csv")
    return place


def test_commands_put_the_past_beside_the_state(folder):
    logs, target = folder / "log.parquet", ("--target", folder / "new.csv")
    plain = json_of("evaluate", logs, *target)
    past = json_of("evaluate", logs, *target, "--lags", "1")
    assert plain["value"] < 0.7 < past["value"] == pytest.approx(0.95, abs=0.03)
    (compared,) = json_of("compare", logs, *target, "--lags", "1")["estimates"]
    assert compared["value"] == past["value"]
    other = json_of("evaluate", logs, *target, "--history", "reward, action")
    assert other["value"] not in {plain["value"], past["value"]}
    assert len(json_of("backtest", logs, "--lags", "1")["rows"]) == 2


def test_an_inspection_shows_the_past_and_what_it_costs(folder):
    found = json_of("inspect", folder / "log.parquet", "--lags", "1", "--target", folder / "new.csv")
    assert found["observation"][1:] == ["observation.action before", "observation.state before"]
    assert "past" in {remark["name"] for remark in found["remarks"]}
    assert found["coverage"] is not None


def test_what_is_wrong_is_said_in_the_words_of_the_command_line(folder):
    found = run("evaluate", folder / "log.parquet", "--target", folder / "new.csv", "--history", "nothing")
    assert found.exit_code == 3
    assert "reward, action, state" in " ".join(found.stderr.split())
    assert run("inspect", folder / "log.parquet", "--lags", "9").exit_code == 2
    said = run("inspect", folder / "log.parquet", "--history", "reward,action").stdout
    assert "--history reward,action" in " ".join(said.split())
