"""Files and tables that are given twice are refused, whatever way leads to them."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope import worlds
from mixope.base.errors import DataError

MODEL = worlds.make("singlepath")
LOGGERS = worlds.stages(MODEL, 2, seed=0)


def log(seed=0, episodes=10):
    return pa.table(worlds.simulate(MODEL, LOGGERS, episodes, 20, seed=seed))


def write(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    writers = {".parquet": pq.write_table, ".csv": pyarrow.csv.write_csv, ".arrow": pyarrow.feather.write_feather}
    if path.suffix == ".npz":
        arrays = {name: table.column(name).to_numpy() for name in table.column_names}
        np.savez(path, **{name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()})
    else:
        writers[path.suffix](table, path)
    return path


def by_two_paths(folder, one):
    os.link(one, folder / f"linked{one.suffix}")
    return one, folder / f"linked{one.suffix}"


def by_a_link(folder, one):
    (folder / f"pointer{one.suffix}").symlink_to(one)
    return one, folder / f"pointer{one.suffix}"


def copied(folder, one):
    shutil.copy(one, folder / f"copy{one.suffix}")
    return one, folder / f"copy{one.suffix}"


TWICE = {
    "the same path": (lambda folder, one: (one, one), "The same file is given twice"),
    "two labels": (lambda folder, one: (f"a={one}", f"b={one}"), "The same file is given twice"),
    "a pattern over a file": (lambda folder, one: (one, folder / "*"), "The same file is given twice"),
    "a folder over a file": (lambda folder, one: (folder, one), "The same file is given twice"),
    "another spelling": (lambda folder, one: (one, folder / ".." / folder.name / one.name), "The same file"),
    "a hard link": (by_two_paths, "The same file is given twice"),
    "a symbolic link": (by_a_link, "The same file is given twice"),
    "a copy": (copied, "have the same content"),
}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow", ".npz"])
@pytest.mark.parametrize("fault", TWICE)
def test_a_file_given_twice_is_refused_and_both_are_named(tmp_path, fault, ending):
    make, phrase = TWICE[fault]
    given = [str(path) for path in make(tmp_path, write(log(), tmp_path / f"one{ending}"))]
    with pytest.raises(DataError, match=phrase) as caught:
        mixope.read(*given)
    assert f"one{ending}" in caught.value.where
    assert caught.value.where.endswith(", twice") or " and " in caught.value.where
    assert caught.value.hint


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("fault", [fault for fault in TWICE if fault != "two labels"])
def test_a_list_with_a_file_twice_is_refused_too(tmp_path, fault, ending):
    make, phrase = TWICE[fault]
    given = [str(path) for path in make(tmp_path, write(log(), tmp_path / f"one{ending}"))]
    with pytest.raises(DataError, match=phrase):
        mixope.read(given)


@pytest.mark.parametrize("fault", TWICE)
def test_the_command_refuses_it_too(tmp_path, fault):
    make, phrase = TWICE[fault]
    given = make(tmp_path, write(log(), tmp_path / "one.parquet"))
    result = run("inspect", *given)
    assert result.exit_code == 3
    assert phrase in result.stderr


def test_a_table_given_twice_is_refused(tmp_path):
    table, arrays = log(), worlds.simulate(MODEL, LOGGERS, 10, 20, seed=0)
    write(table, tmp_path / "one.parquet")
    stored = ds.dataset(str(tmp_path / "one.parquet"))
    for given in [(table, table), (table, pa.concat_tables([table])), (arrays, arrays), (stored, stored)]:
        with pytest.raises(DataError, match=r"given twice|same content"):
            mixope.read(*given)
    with pytest.raises(DataError, match="given twice"):
        mixope.read(tmp_path / "one.parquet", stored)


def test_row_groups_of_one_file_may_come_apart(tmp_path):
    pq.write_table(log(), tmp_path / "one.parquet", row_group_size=50)
    (whole,) = ds.dataset(str(tmp_path / "one.parquet")).get_fragments()

    def some(*groups):
        part = whole.subset(row_group_ids=list(groups))
        return ds.FileSystemDataset([part], whole.physical_schema, whole.format, whole.filesystem)

    assert mixope.read(some(0, 1), some(2, 3)).total_rows() == log().num_rows
    with pytest.raises(DataError, match="given twice"):
        mixope.read(some(0, 1), some(1, 2))


def test_files_of_one_short_episode_may_be_alike(tmp_path):
    """A game with few outcomes, one file per game."""
    one = pa.table({"observation": [0, 1], "action": [1, 0], "reward": [0.0, 1.0], "terminated": [False, True]})
    for number in range(3):
        write(one, tmp_path / f"{number}.parquet")
    for given, rows in [((tmp_path,), 6), ((one, one.slice(0)), 4)]:
        with pytest.warns(mixope.base.errors.MixopeWarning):
            logs = mixope.read(*given)
        assert logs.total_rows() == rows


def test_files_that_differ_in_one_value_are_two_files(tmp_path):
    table = log()
    reward = table.column("reward").to_numpy().copy()
    reward[100] += 1.0
    other = table.set_column(table.column_names.index("reward"), "reward", pa.array(reward))
    paths = [write(table, tmp_path / "a.npz"), write(other, tmp_path / "b.npz")]
    assert paths[0].stat().st_size == paths[1].stat().st_size
    assert mixope.read(*paths).total_rows() == 2 * table.num_rows
    assert mixope.read(table, other).total_rows() == 2 * table.num_rows
