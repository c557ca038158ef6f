"""HDF5 files as D4RL and d3rlpy write them: every step is a row, ends and cuts are told apart, the rest is refused."""

import sys

import numpy as np
import pytest
from other_tools import ACTIONS, D4RL, MDP, OBSERVATIONS, REWARDS, buffer, episode, stored

import mixope
from cli.running import run
from mixope.base.errors import DataError, MissingExtra

pytest.importorskip("h5py")


def rows_of(logs):
    return logs.table().to_pylist()


def test_d4rl_ends_are_terminals_and_cuts_are_timeouts(tmp_path):
    rows = rows_of(mixope.read(stored(tmp_path / "hopper.hdf5", D4RL)))
    assert [row["reward"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["terminated"] for row in rows] == [False, False, True, False, False, False]
    assert [row["unfollowed"] for row in rows] == [False] * 5 + [True]  # the last row of the cut episode leads nowhere
    assert [row["step"] for row in rows] == [0, 1, 2, 0, 1, 2]
    assert [row["next_observation.0"] for row in rows if not row["terminated"]] == [2, 4, 8, 10, None]
    assert [round(row["propensity"], 6) for row in rows] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_d4rl_next_observations_keep_the_last_row_of_a_cut_episode(tmp_path):
    path = stored(tmp_path / "hopper.h5", D4RL, next_observations=OBSERVATIONS + 2)
    rows = rows_of(mixope.read(path))
    assert [row["reward"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert (rows[-1]["truncated"], rows[-1]["next_observation.0"]) == (True, 12)


def test_d4rl_without_timeouts_says_what_is_assumed(tmp_path):
    path = stored(tmp_path / "hopper.h5", D4RL, without=["timeouts"])
    with pytest.warns(mixope.MixopeWarning, match="no array 'timeouts', so episodes are cut after terminals only"):
        logs = mixope.read(path)
    assert [row["step"] for row in rows_of(logs)] == [0, 1, 2, 0, 1, 2]


def test_log_densities_of_another_length_are_left_out_with_a_note(tmp_path):
    path = stored(tmp_path / "hopper.h5", D4RL, **{"infos/action_log_probs": np.zeros(4)})
    with pytest.warns(mixope.MixopeWarning, match=r"action_log_probs is not read: it has shape \(4,\), of 6 steps"):
        logs = mixope.read(path)
    assert not logs.schema.has_propensity


def test_a_replay_buffer_of_d3rlpy_is_its_episodes(tmp_path):
    logs = mixope.read(buffer(tmp_path / "buffer.h5"))
    rows = rows_of(logs)
    assert logs.schema.action_kind == "discrete"
    assert [(row["episode_id"], row["step"]) for row in rows] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [row["reward"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["action"] for row in rows] == [0, 1, 0, 1, 0, 1]
    assert [row["terminated"] for row in rows] == [False, False, True, False, False, False]


def test_an_observation_of_several_arrays_has_their_columns(tmp_path):
    parts = (OBSERVATIONS[:3], OBSERVATIONS[:3, :1] + 0.5)
    path = buffer(tmp_path / "buffer.h5", [episode(0, 3, terminated=True, observations=parts)])
    assert mixope.read(path).schema.observation == ("observation.0.0", "observation.0.1", "observation.1.0")


def test_an_mdp_dataset_of_d3rlpy_1_has_ends_and_cuts(tmp_path):
    rows = rows_of(mixope.read(stored(tmp_path / "mdp.h5", MDP)))
    assert [row["action"] for row in rows] == [0, 1, 0, 1, 0, 1]
    assert [row["terminated"] for row in rows] == [False, False, True, False, False, False]
    assert [row["step"] for row in rows] == [0, 1, 2, 0, 1, 2]


def test_rewards_that_lie_one_row_late_are_refused(tmp_path):
    path = stored(tmp_path / "mdp.h5", MDP, without=["version"])
    with pytest.raises(DataError, match=r"before 1\.0.*one row after its action"):
        mixope.read(path)


def test_the_episodes_of_several_files_are_kept_apart(tmp_path):
    stored(tmp_path / "a.h5", D4RL)
    stored(tmp_path / "b.h5", D4RL, rewards=REWARDS + 1)
    rows = rows_of(mixope.read(tmp_path))
    assert [row["episode_id"] for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert sum(row["start"] for row in rows) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"data/demo_0/obs": OBSERVATIONS}, "of an unknown kind"),
        ({"episode_0/rewards": REWARDS}, "storage of a Minari data set"),
        ({**D4RL, "observations": OBSERVATIONS[:4]}, "missing or not whole"),
        ({**D4RL, "observations": np.zeros((6, 8, 8))}, "pictures or tables"),
        ({**D4RL, "terminals": np.array([b"no"] * 6)}, "does not hold flags"),
        ({name: value for name, value in D4RL.items() if name != "terminals"}, "Nothing marks the steps that end"),
        ({"columns": ["observations"], "num_episodes": 1}, "has other columns"),
        ({"columns": ["observations", "actions", "rewards", "terminated"], "num_episodes": 0}, "has no episodes"),
        ({**MDP, "actions": ACTIONS}, "actions are classes, and some are not"),
    ],
)
def test_what_cannot_be_read_is_said_with_status_3(tmp_path, content, said):
    result = run("inspect", stored(tmp_path / "log.h5", content))
    assert result.exit_code == 3
    assert said in " ".join(result.stderr.split())


def test_a_file_that_is_no_hdf5_is_said_with_status_3(tmp_path):
    (tmp_path / "log.h5").write_bytes(b"no hdf5")
    result = run("inspect", tmp_path / "log.h5")
    assert result.exit_code == 3
    assert "log.h5" in result.stderr


def test_without_h5py_the_error_is_the_line_that_installs_it(tmp_path, monkeypatch):
    path = stored(tmp_path / "hopper.h5", D4RL)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"reading an hdf5 file .* pip install 'mixope\[minari\]'"):
        mixope.read(path)
