"""A file that is written between two scans: no answer is made of two versions of it, and the error names it."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import mixope
from mixope import worlds
from mixope.base.errors import DataError
from mixope.engines import EmbeddedEngine, MemoryEngine

MODEL = worlds.make("singlepath")
LOGGERS = worlds.stages(MODEL, 2, seed=0)
TARGET = mixope.TabularPolicy(worlds.target(MODEL, seed=0))


def log(seed=0):
    return pa.table(worlds.simulate(MODEL, LOGGERS, 30, 20, seed=seed))


def without(table, column):
    return table.drop_columns([column])


def as_text(table, column):
    words = pa.array([f"x{value}" for value in table.column(column).to_pylist()])
    return table.set_column(table.column_names.index(column), column, words)


WRITERS = {"parquet": pq.write_table, "csv": pyarrow.csv.write_csv, "arrow": pyarrow.feather.write_feather}
CHANGES = {
    "other rows, as many": lambda table: log(seed=1),
    "fewer rows": lambda table: table.slice(0, 400),
    "more rows": lambda table: pa.concat_tables([table, log(seed=1)]),
    "a column gone": lambda table: without(table, "action"),
    "rewards gone": lambda table: without(table, "reward"),
    "a column of another type": lambda table: as_text(table, "observation"),
    "rewards as words": lambda table: as_text(table, "reward"),
    "gone": None,
    "cut off": "cut",
}


class Interrupted:
    """An engine, and somebody who writes to the file after its first scan."""

    def __init__(self, inner, change):
        self.inner, self.change, self.name, self.scans = inner, change, inner.name, 0

    def group_sums(self, *given):
        return self._then(self.inner.group_sums(*given))

    def scan(self, *given):
        return self._then(self.inner.scan(*given))

    def _then(self, found):
        self.scans += 1
        if self.scans == 1:
            self.change()
        return found


def changed(path, ending, change):
    if change is None:
        path.unlink()
    elif change == "cut":
        os.truncate(path, path.stat().st_size // 2)
    else:
        WRITERS[ending](change(log()), path)


@pytest.mark.parametrize("engine", [EmbeddedEngine, MemoryEngine])
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("fault", CHANGES)
def test_a_file_that_changes_between_scans_is_named(tmp_path, fault, ending, engine):
    path = tmp_path / f"log.{ending}"
    WRITERS[ending](log(), path)
    logs = mixope.read(path)
    meddled = Interrupted(engine(), lambda: changed(path, ending, CHANGES[fault]))
    with pytest.raises(DataError, match="has changed since it was opened") as caught:
        mixope.evaluate(logs, TARGET, "emp", engine=meddled)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("fault", ["other rows, as many", "rewards gone", "gone"])
def test_a_file_of_vectors_that_changes_is_named(tmp_path, fault):
    path = tmp_path / "log.parquet"
    write_vectors(path, seed=0)

    def change():
        path.unlink()
        if fault != "gone":
            write_vectors(path, seed=1, without=("reward",) if fault == "rewards gone" else ())

    with pytest.raises(DataError, match="has changed since it was opened") as caught:
        mixope.evaluate(mixope.read(path), always, "emp", engine=Interrupted(EmbeddedEngine(), change))
    assert caught.value.where == str(path)


def always(observations):
    return np.full((len(observations), 2), 0.5)


def write_vectors(path, seed, without=()):
    generator = np.random.default_rng(seed)
    state = generator.normal(size=(40, 11, 2))
    columns = {
        "episode_id": np.repeat(np.arange(40), 10),
        "step": np.tile(np.arange(10), 40),
        **{f"observation.{k}": state[:, :-1, k].ravel() for k in range(2)},
        **{f"next_observation.{k}": state[:, 1:, k].ravel() for k in range(2)},
        "action": generator.integers(2, size=400),
        "reward": generator.normal(size=400),
    }
    table = pa.table({name: values for name, values in columns.items() if name not in without})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)


@pytest.mark.parametrize("kind", ["counts", "vectors"])
def test_sums_tell_where_stamps_do_not(tmp_path, kind, monkeypatch):
    """A file system that forgets times, and a file changed in the middle: the first scan's sums are not found again."""
    path = tmp_path / "log.parquet"

    def write(seed):
        if kind == "vectors":
            write_vectors(path, seed)
        else:
            pq.write_table(log(seed), path)

    write(0)
    logs = mixope.read(path)
    monkeypatch.setattr(mixope.logs.sources.stamps.Stamp, "difference", lambda self, now, thorough: None)
    target = TARGET if kind == "counts" else always
    with pytest.raises(DataError, match=r"not those of the one before|was not counted"):
        mixope.evaluate(logs, target, "emp", engine=Interrupted(EmbeddedEngine(), lambda: write(1)))


def test_the_fingerprint_is_of_what_was_read(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log(), path)
    logs = mixope.read(path)
    logs.table()
    pq.write_table(log(seed=1), path)
    with pytest.raises(DataError, match="has changed") as caught:
        logs.fingerprint()
    assert caught.value.where == str(path)
    assert "read it again" in caught.value.hint


def test_arrays_from_a_file_are_known_by_the_file_that_was_read(tmp_path):
    path, columns = tmp_path / "log.npz", worlds.simulate(MODEL, LOGGERS, 30, 20, seed=0)
    np.savez(path, **{name: np.asarray(values) for name, values in columns.items()})
    logs = mixope.read(path)
    before = mixope.read(path).fingerprint()
    path.unlink()
    assert logs.fingerprint() == before
    assert logs.table().num_rows == 600


@pytest.mark.parametrize("way", ["folder", "dataset"])
def test_the_one_that_changed_is_named_among_many(tmp_path, way):
    for number in range(5):
        pq.write_table(log(number), tmp_path / f"{number}.parquet")
    logs = mixope.read(tmp_path if way == "folder" else ds.dataset(str(tmp_path)))
    pq.write_table(log(9), tmp_path / "3.parquet")
    with pytest.raises(DataError, match="has changed") as caught:
        mixope.evaluate(logs, TARGET, "emp")
    assert caught.value.where.endswith("3.parquet")


def test_times_and_sizes_restored_do_not_hide_other_ends(tmp_path):
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(log(), path)
    logs, before = mixope.read(path), path.stat()
    text = path.read_bytes()
    path.write_bytes(text[:-2] + b"7\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match=r"has changed|not those of the one before"):
        mixope.evaluate(logs, TARGET, "emp")


def test_a_worker_looks_before_it_reads(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(log(), path)
    (fragment,) = mixope.read(path).fragments()
    assert fragment.table(["reward"]).num_rows == 600
    pq.write_table(log(1), path)
    with pytest.raises(DataError, match="has changed"):
        fragment.table(["reward"])
