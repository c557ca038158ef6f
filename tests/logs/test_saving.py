"""Saved logs, read again without a word, are the same rows and give the same answer."""

import warnings

import pytest
from sessions import sessions

import mixope
from mixope import worlds
from mixope.base.errors import DataError, UsageError


def _same(logs, again):
    columns = [name for name in logs.columns if name != "source"]
    assert again.to_arrow(columns).equals(logs.to_arrow(columns))
    assert again.schema.roles == logs.schema.roles


def test_a_saved_log_gives_the_same_answer(tmp_path):
    model = worlds.make("gridworld-slip")
    logs = mixope.read(worlds.simulate(model, worlds.stages(model, 2, seed=0), episodes=20, horizon=30, seed=0))
    again = mixope.read(logs.save(tmp_path / "saved.parquet"))
    _same(logs, again)
    target = worlds.target(model, seed=0)
    one, other = mixope.evaluate(logs, target), mixope.evaluate(again, target)
    assert (one.value, *one.interval) == (other.value, *other.interval)


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_what_was_derived_is_written(ends, tmp_path):
    columns = {"episode_id": "session_id", "observation": "state"}
    table = {name: column for name, column in sessions(50).items() if name != "step"}
    logs = mixope.read(table, columns=columns, ends=ends)
    path = logs.save(tmp_path / "saved.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left to assume
        _same(logs, mixope.read(path))


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_vectors_mixed_states_and_densities_come_back(tmp_path):
    rows = {"episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0]}
    ends = {"terminated": [False, True] * 2}
    vector = {"observation.x": [0.5, 1.5, 2.5, 3.5], "observation.y": [1.0, 2.0, 3.0, 4.0]}
    mixed = {"observation.ward": ["a", "b", "a", "b"], "observation.age": [1.5, 2.5, 3.5, 4.5]}
    for state in (vector, mixed):
        logs = mixope.read(
            {**rows, **state, "action": [0.1, 0.2, 0.3, 0.4], "action_logp": [0.5, 0.1, -1.0, -2.0], **ends}
        )
        _same(logs, mixope.read(logs.save(tmp_path / "saved.parquet")))


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_the_same_number_in_two_sources_stays_two_episodes(tmp_path):
    tables = [sessions(20, seed) for seed in (1, 2)]
    logs = mixope.read(*tables, columns={"episode_id": "session_id", "observation": "state"}, ends="terminated")
    again = mixope.read(logs.save(tmp_path / "saved.parquet"))
    assert mixope.inspect(again).contents.episodes == mixope.inspect(logs).contents.episodes == 40
    assert again.to_frame()["reward"].tolist() == logs.to_frame()["reward"].tolist()


def test_what_cannot_come_back_is_refused_and_leaves_no_file(tmp_path):
    table = {"episode_id": [0, 0], "step": [0, 1], "action": [0, 1], "reward": [1.0, 2.0], "terminated": [False, True]}
    state = {"observation.ward": [1, 2], "observation.age": [0.5, 1.5]}
    logs = mixope.read({**table, **state}, roles={"ward": "category"})
    path = tmp_path / "saved.parquet"
    with pytest.raises(DataError, match="cannot be saved"):
        logs.save(path)
    with pytest.raises(UsageError, match="Parquet"):
        logs.save(tmp_path / "saved.csv")
    holes = mixope.read({**table, "observation.age": [None, 1.5], "observation.dose": [0.5, 1.5]}, missing="keep")
    with pytest.raises(UsageError, match="missing='keep'"):
        holes.save(path)
    assert not list(tmp_path.iterdir())
