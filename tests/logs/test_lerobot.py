"""LeRobot data sets: the rows of all episodes, no row of the record, and words on what is not part of the state."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_tools import EPISODES, lerobot

import mixope
from cli.running import run
from mixope.base.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")


@pytest.mark.parametrize("version", ["v2.0", "v2.1", "v3.0"])
def test_rows_are_the_frames_of_all_episodes(tmp_path, version):
    logs = mixope.read(lerobot(tmp_path / "set", version), done="terminated")
    rows = logs.table().to_pylist()
    assert [(row["episode_id"], row["step"]) for row in rows] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert [row["reward"] for row in rows] == [1, 2, 3, 4, 5]
    assert logs.schema.observation == ("observation.state.0", "observation.state.1")
    assert [row["next_observation.state.0"] for row in rows if not row["terminated"]] == [0.5, 1.0, 3.5]
    assert "videos are not part of the state: observation.images.top" in " ".join(logs.notes)


def test_done_is_asked_about_as_in_every_log(tmp_path):
    with pytest.raises(DataError, match="A lone done column is ambiguous"):
        mixope.read(lerobot(tmp_path / "set"))


def test_pictures_are_named_and_left_out(tmp_path):
    picture = [{"bytes": b"png", "path": None}] * 5
    logs = mixope.read(lerobot(tmp_path / "set", content={"observation.image": picture, **EPISODES}), done="truncated")
    assert logs.schema.observation == ("observation.state.0", "observation.state.1")
    assert "pictures are not part of the state: observation.image" in " ".join(logs.notes)


def test_several_tasks_are_mentioned_and_may_be_part_of_the_state(tmp_path):
    folder = lerobot(tmp_path / "set", content=EPISODES | {"task_index": [0, 0, 0, 1, 1]})
    assert "there are several tasks" in " ".join(mixope.read(folder, done="terminated").notes)
    state = ["observation.state", "task_index"]
    logs = mixope.read(folder, done="terminated", columns={"observation": state}, roles={"task_index": "category"})
    assert logs.schema.observation_kind == "mixed"
    assert "several tasks" not in " ".join(logs.notes)


def test_a_reward_of_another_name_may_be_said(tmp_path):
    content = {("score" if name == "next.reward" else name): values for name, values in EPISODES.items()}
    folder = lerobot(tmp_path / "set", content=content)
    assert mixope.read(folder, done="terminated", columns={"reward": "score"}).total_rows() == 5


def without(name):
    return {key: values for key, values in EPISODES.items() if key != name}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (without("next.reward"), "a column 'next.reward' with what each step earned"),
        (without("observation.state"), "nothing but pictures"),
    ],
)
def test_what_is_missing_is_said_with_status_3(tmp_path, content, said):
    result = run("inspect", lerobot(tmp_path / "set", content=content))
    assert result.exit_code == 3
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("change", "said"),
    [({"total_frames": 6}, "another number of rows"), ({"codebase_version": "v1.6"}, "another version of LeRobot")],
)
def test_a_record_that_does_not_fit_is_said_with_status_3(tmp_path, change, said):
    record = lerobot(tmp_path / "set") / "meta" / "info.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | change))
    result = run("inspect", tmp_path / "set")
    assert result.exit_code == 3
    assert said in result.stderr


def test_a_part_of_the_data_set_is_refused(tmp_path):
    folder = lerobot(tmp_path / "set")
    with pytest.raises(DataError, match="a part of a LeRobot data set"):
        mixope.read(folder / "data")
    with pytest.raises(DataError, match="a LeRobot data set among other logs"):
        mixope.read(tmp_path)


def test_a_damaged_file_is_said_with_status_3(tmp_path):
    file = lerobot(tmp_path / "set") / "data" / "chunk-000" / "file-000.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    result = run("inspect", tmp_path / "set")
    assert result.exit_code == 3
    assert "file-000.parquet" in result.stderr


def test_a_table_of_lerobot_is_known_by_its_columns():
    logs = mixope.read(pa.table(EPISODES), done="terminated")
    assert logs.schema.observation == ("observation.state.0", "observation.state.1")


def test_a_file_that_changes_is_noticed(tmp_path):
    folder = lerobot(tmp_path / "set")
    logs = mixope.read(folder, done="terminated")
    pq.write_table(pa.table(EPISODES).slice(0, 3), folder / "data" / "chunk-000" / "file-000.parquet")
    with pytest.raises(DataError, match="has changed since it was opened"):
        logs.table()
