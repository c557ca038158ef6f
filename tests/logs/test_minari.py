"""Minari data sets, as minari itself wrote them: every step is a row, and no row is anything else."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError, MissingExtra
from mixope.logs.sources.spaces import leaves_of

SETS = Path(__file__).parents[1] / "data" / "minari"
EXPECTED = json.loads((SETS / "expected.json").read_text())
STORAGES = ["parquet", "arrow", "hdf5"]


def stored(storage):
    if storage == "hdf5":
        pytest.importorskip("h5py")
    return SETS / f"{storage}-v0"


def copied(tmp_path, storage="parquet"):
    return Path(shutil.copytree(stored(storage), tmp_path / "set"))


def edit(folder, **changes):
    path = folder / "data" / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def space(**said):
    return json.dumps(said)


@pytest.mark.parametrize("storage", STORAGES)
def test_rows_are_the_steps_that_minari_iterates_over(storage):
    logs = mixope.read(str(stored(storage)))
    rows = logs.table().to_pylist()
    assert [row["reward"] for row in rows] == [reward for episode in EXPECTED for reward in episode["rewards"]]
    assert logs.schema.observation == ("observation.cell", "observation.pos.0", "observation.pos.1", "observation.word")
    for number, episode in enumerate(EXPECTED):
        for step, action in enumerate(episode["act"]):
            row = rows.pop(0)
            assert (row["episode_id"], row["step"], row["action"]) == (number, step, action)
            assert (row["terminated"], row["truncated"]) == (episode["term"][step], episode["trunc"][step])
            assert state(row, "observation") == episode["obs"][step]
            if not row["terminated"]:
                assert state(row, "next_observation") == episode["obs"][step + 1]
    assert not rows


def state(row, name):
    position = [row[f"{name}.pos.0"], row[f"{name}.pos.1"]]
    return {"cell": row[f"{name}.cell"], "pos": position, "word": row[f"{name}.word"]}


@pytest.mark.parametrize("storage", STORAGES)
def test_infos_belong_to_the_step_before_them_and_prob_is_nobodys(storage):
    rows = mixope.read(str(stored(storage))).table().to_pylist()
    assert [row["propensity"] for row in rows] == [(row["step"] + 1) / 16 for row in rows]
    assert [row["policy_id"] for row in rows] == [f"p{row['episode_id'] + 1}" for row in rows]


def test_sql_and_arrow_see_the_same_rows():
    logs = mixope.read(str(stored("parquet")))
    with logs.connect() as connection:
        view = logs.view(connection)
        found = connection.execute(f"SELECT sum(reward), count(*), count(*) FILTER (start) FROM {view}").fetchall()
    assert found == [(165.0, 9, 2)]


def test_classes_beside_numbers_are_categories_and_the_user_may_say_otherwise():
    logs = mixope.read(str(stored("parquet")))
    assert logs.schema.roles == ("category", "number", "number", "category")
    assert mixope.read(str(stored("parquet")), roles={"cell": "number"}).schema.roles[0] == "number"


def test_the_algorithm_is_the_logger_where_nothing_else_names_it(tmp_path):
    folder = copied(tmp_path)
    without_infos(folder)
    assert loggers(mixope.read(str(folder))) == {"coin"}
    assert loggers(mixope.read(f"mine={folder}")) == {"mine"}


def loggers(logs):
    return set(logs.table(["policy_id"]).column("policy_id").to_pylist())


def without_infos(folder):
    for path in folder.glob("data/*/*.parquet"):
        table = pq.ParquetFile(path).read()
        pq.write_table(table.drop_columns(["infos"]), path)


@pytest.mark.parametrize("ending", ["", "data", "data/"])
def test_the_folder_or_its_data_folder_is_the_data_set(ending):
    assert mixope.read(f"{stored('parquet')}/{ending}").total_rows() == 9


def test_minari_names_a_path_or_a_set_in_the_folder_of_minari(monkeypatch, tmp_path):
    assert mixope.read(f"minari:{stored('parquet')}").total_rows() == 9
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(SETS))
    assert mixope.read("minari:parquet-v0").total_rows() == 9
    monkeypatch.delenv("MINARI_DATASETS_PATH")
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(SETS / "arrow-v0", tmp_path / ".minari" / "datasets" / "walk" / "coin-v0")
    assert mixope.read("minari:walk/coin-v0").total_rows() == 9
    with pytest.raises(DataError, match="minari download walk/dice-v0"):
        mixope.read("minari:walk/dice-v0")


def test_a_list_of_data_sets_keeps_their_episodes_apart(tmp_path):
    other = copied(tmp_path, "arrow")
    for path in other.glob("data/*/*.arrow"):
        path.unlink()
        table = pq.ParquetFile(SETS / "parquet-v0/data" / path.parent.name / "part-0.parquet").read()
        rewards = pa.array(np.asarray(table.column("rewards")) + 1)
        table = table.set_column(table.column_names.index("rewards"), "rewards", rewards)
        ds.write_dataset(table, path.parent, format="arrow", existing_data_behavior="overwrite_or_ignore")
    logs = mixope.read([str(stored("parquet")), str(other)])
    assert logs.total_rows() == 18
    assert len(logs.sources) == 2


def test_a_discrete_action_of_several_parts_is_one_id(tmp_path):
    folder = copied(tmp_path)
    edit(folder, action_space=space(type="MultiDiscrete", dtype="int64", nvec=[3, 4], start=[0, 0]))
    for path in folder.glob("data/*/*.parquet"):
        table = pq.ParquetFile(path).read()
        pairs = [[a, 3 - a] for a in table.column("actions").to_pylist()]
        column = pa.array(pairs, pa.list_(pa.int64(), 2))
        pq.write_table(table.set_column(table.column_names.index("actions"), "actions", column), path)
    with pytest.warns(mixope.MixopeWarning, match="several classes; together they are one id"):
        logs = mixope.read(str(folder))
    wanted = [f"{a},{3 - a}" for episode in EXPECTED for a in episode["act"]]
    assert logs.table(["action"]).column("action").to_pylist() == wanted


def test_without_h5py_the_error_is_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"pip install 'mixope\[minari\]'"):
        mixope.read(str(SETS / "hdf5-v0"))


def test_a_set_that_is_not_whole_is_still_known(tmp_path):
    folder = copied(tmp_path)
    (folder / "data" / "metadata.json").unlink()
    with pytest.raises(DataError, match=r"no metadata\.json"):
        mixope.read(str(folder))


def drop_an_episode(folder):
    shutil.rmtree(folder / "data" / "1")


def cut_an_episode(folder):
    path = folder / "data" / "1" / "part-0.parquet"
    pq.write_table(pq.ParquetFile(path).read().slice(0, 3), path)


def cut_a_file(folder):
    path = folder / "data" / "1" / "part-0.parquet"
    path.write_bytes(path.read_bytes()[:400])


def drop_the_flags(folder):
    path = folder / "data" / "1" / "part-0.parquet"
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["terminations"]), path)


PICTURE = space(type="Box", dtype="uint8", shape=[64, 64, 3], low=0, high=255)
MIXED = space(
    type="Dict", subspaces={"a": {"type": "Discrete", "n": 2}, "b": {"type": "Box", "shape": [1], "dtype": "f4"}}
)
BROKEN = {
    "no JSON": (lambda folder: (folder / "data/metadata.json").write_text("{"), "not JSON"),
    "a list": (lambda folder: (folder / "data/metadata.json").write_text("[]"), "no JSON object"),
    "more steps": (lambda folder: edit(folder, total_steps=11), "total_steps: 11"),
    "no steps": (lambda folder: edit(folder, total_steps=0), "has no steps"),
    "more episodes": (lambda folder: edit(folder, total_episodes=3), "not whole"),
    "an episode is gone": (drop_an_episode, "not whole"),
    "rows are gone": (cut_an_episode, "another number of steps"),
    "bytes are gone": (cut_a_file, "cannot be read"),
    "no flags": (drop_the_flags, "terminations"),
    "other storage": (lambda folder: edit(folder, data_format="zarr"), "'zarr'"),
    "no space": (lambda folder: edit(folder, observation_space=None), "cannot be understood"),
    "another space": (lambda folder: edit(folder, observation_space=space(type="Discrete", n=3)), "not whole"),
    "a graph": (lambda folder: edit(folder, observation_space=space(type="Graph")), "'Graph'"),
    "pictures": (lambda folder: edit(folder, observation_space=PICTURE), "pictures"),
    "half a discrete action": (lambda folder: edit(folder, action_space=MIXED), "do not make one action"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_set_is_refused_by_the_command(case, tmp_path):
    folder = copied(tmp_path)
    damage, words = BROKEN[case]
    damage(folder)
    result = run("inspect", folder)
    assert result.exit_code == 3, result.output
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize("size", [0, 100, 5000, 30_000])
def test_a_damaged_hdf5_file_is_refused_by_the_command(size, tmp_path):
    folder = copied(tmp_path, "hdf5")
    path = folder / "data" / "main_data.hdf5"
    path.write_bytes(path.read_bytes()[:size])
    result = run("inspect", folder)
    assert result.exit_code == 3, result.output
    assert "main_data.hdf5" in result.stderr


@pytest.mark.parametrize("inner", ["data/1", "data/1/part-0.parquet", "data/*/*.parquet"])
def test_a_part_of_a_set_is_no_log(inner):
    with pytest.raises(DataError, match="a part of a Minari data set"):
        mixope.read(str(stored("parquet") / inner))


def test_a_folder_of_sets_asks_for_them_one_by_one():
    with pytest.raises(DataError, match=r"give .* as a source of its own"):
        mixope.read(str(SETS))


def test_two_parts_of_one_name_are_refused():
    inner = {"type": "Dict", "subspaces": {"b": {"type": "Discrete", "n": 2}}}
    both = space(type="Dict", subspaces={"a": inner, "a.b": {"type": "Discrete", "n": 2}})
    with pytest.raises(DataError, match="no names of their own"):
        leaves_of(both, "here", "observation")
