"""Steps that RLlib recorded: JSON batches and Parquet are read, what it packed is refused with how to write it."""

import base64

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from other_tools import BATCHES, batches, steps

import mixope
from cli.running import run
from mixope.base.errors import DataError

PACKED = base64.b64encode(b"\x04\x22\x4d\x18" + bytes(20)).decode()
"""As an LZ4 frame begins."""


def test_batches_are_the_steps_of_their_episodes(tmp_path):
    rows = mixope.read(batches(tmp_path / "log.json")).table().to_pylist()
    assert [(row["episode_id"], row["step"]) for row in rows] == [(7, 0), (7, 1), (7, 2), (8, 0)]
    assert [row["reward"] for row in rows] == [1, 2, 3, 4]
    assert [row["propensity"] for row in rows] == [0.5, 0.25, 0.75, 1.0]
    assert [row["terminated"] for row in rows] == [False, False, True, False]
    assert [row["truncated"] for row in rows] == [False, False, False, True]
    assert [row["next_observation.1"] for row in rows][-1] == 0.75


def test_a_folder_has_the_files_that_rllib_names(tmp_path):
    batches(tmp_path / "output-2026-01-01_00-00-00_worker-0_0.json", BATCHES[:1])
    batches(tmp_path / "output-2026-01-01_00-00-00_worker-1_0.json", BATCHES[1:])
    assert mixope.read(tmp_path).total_rows() == 4


def test_the_batch_of_a_single_policy_is_read(tmp_path):
    line = {"type": "MultiAgentBatch", "count": 2, "policy_batches": {"default_policy": BATCHES[0]}}
    assert mixope.read(batches(tmp_path / "log.json", [line])).total_rows() == 2


def test_a_lone_done_is_asked_about(tmp_path):
    lines = [{("dones" if k == "terminateds" else k): v for k, v in b.items() if k != "truncateds"} for b in BATCHES]
    path = batches(tmp_path / "log.json", lines)
    with pytest.raises(DataError, match="A lone done column is ambiguous"):
        mixope.read(path)
    assert [row["terminated"] for row in mixope.read(path, done="terminated").table().to_pylist()][2]


def test_parquet_with_one_row_per_step_is_read(tmp_path):
    steps(tmp_path / "cartpole" / "000001-00001" / "part-0.parquet")
    with pytest.warns(mixope.MixopeWarning, match="steps are taken from the row order within each episode"):
        logs = mixope.read(tmp_path / "cartpole")
    rows = logs.table().to_pylist()
    assert [(row["episode_id"], row["step"]) for row in rows] == [
        ("00000007", 0),
        ("00000007", 1),
        ("00000007", 2),
        ("00000008", 0),
    ]
    assert np.allclose([row["propensity"] for row in rows], [0.5, 0.25, 0.75, 1.0])
    assert [row["reward"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["next_observation.1"] == 0.75


def test_packed_observations_are_refused_with_how_to_write_them(tmp_path):
    path = steps(tmp_path / "log.parquet", obs=[PACKED] * 4, new_obs=[PACKED] * 4)
    with pytest.raises(DataError, match=r"(?s)packed the rows as pickles.*output_compress_columns=\[\]"):
        mixope.read(path)
    result = run("inspect", batches(tmp_path / "log.json", [{**BATCHES[0], "obs": PACKED, "new_obs": PACKED}]))
    assert result.exit_code == 3
    assert "output_compress_columns=[]" in result.stderr


def test_packed_episodes_are_refused_with_how_to_write_them(tmp_path):
    pq.write_table(pa.table({"item": [b"\x81\xa3abc"]}), tmp_path / "log.parquet")
    result = run("inspect", tmp_path / "log.parquet")
    assert result.exit_code == 3
    assert "output_write_episodes=False" in result.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**BATCHES[0], "rewards": None}, "no list of rewards"),
        ({**BATCHES[0], "actions": [1]}, "different lengths"),
        ({**BATCHES[1], "type": "Other"}, "no batch of RLlib"),
        ({"type": "MultiAgentBatch", "policy_batches": {"a": {}, "b": {}}}, "several policies"),
        ({k: v for k, v in BATCHES[1].items() if k != "action_prob"}, "a column that others lack"),
    ],
)
def test_what_cannot_be_read_is_said_with_status_3(tmp_path, line, said):
    result = run("inspect", batches(tmp_path / "log.json", [BATCHES[0], line]))
    assert result.exit_code == 3
    assert said in " ".join(result.stderr.split())
    assert "line 2" in result.stderr
