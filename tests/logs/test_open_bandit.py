"""The Open Bandit Dataset: known by its columns in any format, one decision per row."""

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from other_tools import open_bandit

import mixope
from cli.running import run


@pytest.fixture
def path(tmp_path):
    return open_bandit(tmp_path / "all.csv")


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_row_is_a_decision_that_ends(path, ending):
    if ending == "parquet":
        pq.write_table(csv.read_csv(path), path := path.with_suffix(".parquet"))
    logs = mixope.read(f"random={path}")
    rows = logs.table().to_pylist()
    assert [row["action"] for row in rows] == [0, 1, 2, 0, 1, 2]
    assert [row["reward"] for row in rows] == [0, 0, 1, 0, 0, 0]
    assert {row["propensity"] for row in rows} == {0.25}
    assert {row["policy_id"] for row in rows} == {"random"}
    assert len({row["episode_id"] for row in rows}) == 6
    assert all(row["terminated"] and row["start"] for row in rows)
    users = [f"observation.user_feature_{k}" for k in range(4)]
    assert logs.schema.observation == ("observation.position", *users)
    assert logs.schema.observation_kind == "factors"


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_the_affinities_are_named_and_may_be_put_into_the_state(path):
    said = "3 columns 'user-item_affinity_0' … are not part of the state"
    assert said in " ".join(mixope.read(path).notes)
    logs = mixope.read(path, columns={"observation": ["position", "user_feature_0", "user-item_affinity_0"]})
    assert logs.schema.observation_kind == "mixed"
    assert said not in " ".join(logs.notes)


def test_a_broken_file_is_said_with_status_3(path):
    path.write_text(path.read_text().replace(",0.25,", ",often,", 1))
    result = run("inspect", path)
    assert result.exit_code == 3
    assert "propensity_score" in result.stderr
