"""A table of a stranger: whatever it names, nothing outside of its folder is opened, called or asked."""

import json
import os
import signal
import sqlite3
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from mixope.base import files
from mixope.base.errors import DataError, MixopeError
from mixope.logs.sources import patience
from mixope.logs.sources.gate import Gate

ROWS = {
    "policy_id": ["a"] * 4,
    "episode_id": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "observation": [0, 1, 0, 1],
    "action": [0, 1, 1, 0],
    "reward": [0.0, 1.0, 2.0, 3.0],
    "next_observation": [1, 0, 1, 0],
}
SECRET = {**ROWS, "policy_id": ["SECRET"] * 4}


@pytest.fixture
def lake(tmp_path):
    """A catalog, a table of four rows in it, and a file beside the table that is nobody's business."""
    pytest.importorskip("pyiceberg", reason="pip install 'mixope[iceberg]'")
    pytest.importorskip("sqlalchemy", reason="the test keeps its catalog in SQLite: pip install sqlalchemy")
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "warehouse").mkdir()
    pq.write_table(pa.table(SECRET), tmp_path / "secret.parquet")
    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with SqlCatalog("lake", **where) as made:
        made.create_namespace("web")
        table = made.create_table("web.visits", schema=pa.table(ROWS).schema)
        table.append(pa.table(ROWS))
        yield made, table


def folder_of(table):
    return table.location().removeprefix("file://")


def newest(table):
    return table.metadata_location.removeprefix("file://")


def edited(table, change):
    """The metadata file of the table after a change of its text."""
    path = newest(table)
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    change(said)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(said, file)


def with_properties(table, **properties):
    edited(table, lambda said: said["properties"].update(properties))


def rewards(logs):
    return sorted(logs.table(["reward"]).column("reward").to_pylist())


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A module that says that it was imported, on the path of this process."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "strangers_io.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Io:\n    def __init__(self, properties): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    monkeypatch.delitem(sys.modules, "strangers_io", raising=False)
    return tmp_path / "ran"


@pytest.mark.parametrize("way", ["folder", "file", "catalog"])
def test_a_table_does_not_choose_the_class_that_opens_its_files(way, lake, watched, monkeypatch):
    made, table = lake
    with_properties(table, **{"py-io-impl": "strangers_io.Io"})
    if way == "catalog":
        monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
        named = "iceberg:lake.web.visits"
    else:
        named = folder_of(table) if way == "folder" else f"iceberg:{newest(table)}"
    assert rewards(mixope.read(named)) == [0.0, 1.0, 2.0, 3.0]
    assert not watched.exists()
    assert "strangers_io" not in sys.modules


def test_a_table_does_not_choose_the_server_that_is_asked(lake):
    _, table = lake
    with_properties(table, **{"s3.endpoint": "http://127.0.0.1:9", "s3.proxy-uri": "http://127.0.0.1:9"})
    assert rewards(mixope.read(folder_of(table))) == [0.0, 1.0, 2.0, 3.0]
    edited(table, lambda said: said["snapshots"][-1].update({"manifest-list": "s3://bucket/list.avro"}))
    with pytest.raises(DataError) as refused:
        mixope.read(folder_of(table))
    assert "outside" in refused.value.problem
    assert refused.value.got == "s3://bucket/list.avro"


ROOT = "/lake/visits"
OUTSIDE = {
    "an absolute path": "/etc/passwd",
    "a path that goes up": f"{ROOT}/../secret.parquet",
    "a relative path that goes up": "../secret.parquet",
    "many steps up": f"{ROOT}/data/../../../etc/passwd",
    "a folder with the same beginning": f"{ROOT}-other/a.parquet",
    "the folder itself": ROOT,
    "an address of this disk": "file:///etc/passwd",
    "the same, short": "file:/etc/passwd",
    "the same, with a capital": "FILE:///etc/passwd",
    "percent signs": f"file://{ROOT}/%2e%2e/secret.parquet",
    "percent signs for slashes": f"file://{ROOT}/data%2F..%2F..%2Fsecret.parquet",
    "a store": "s3://bucket/a.parquet",
    "the web": "https://example.org/a.parquet",
    "the web, below a folder of the same name": f"https://example.org{ROOT}/a.parquet",
    "a program of fsspec": "zip://a.parquet::file:///etc/passwd",
    "a null byte": f"{ROOT}/a\0.parquet",
    "nothing": "",
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_lies_outside_of_a_folder_is_refused(case):
    with pytest.raises(DataError) as refused:
        Gate(ROOT, None, "table").admit(OUTSIDE[case])
    assert refused.value.hint is not None


@pytest.mark.parametrize(
    "name", ["a.parquet", "data/a.parquet", f"{ROOT}/a.parquet", f"file://{ROOT}/data/../a.parquet"]
)
def test_what_lies_in_a_folder_is_admitted(name):
    assert Gate(ROOT, None, "table").admit(name).startswith(f"{ROOT}/")


def test_another_machine_is_refused():
    with pytest.raises(DataError, match="another machine"):
        Gate(ROOT, None, "table").admit(f"file://server{ROOT}/a.parquet")


def test_links_are_followed_before_they_are_judged(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "table" / "a.parquet").symlink_to(tmp_path / "secret")
    (tmp_path / "link").symlink_to(tmp_path / "table", target_is_directory=True)
    (tmp_path / "table" / "b.parquet").write_text("x")
    with pytest.raises(DataError):
        Gate(str(tmp_path / "table"), None, "table").admit("a.parquet")
    found = Gate(str(tmp_path / "link"), None, "table").admit(f"{tmp_path}/link/b.parquet")
    assert found == os.path.realpath(tmp_path / "table" / "b.parquet")


STORE = "s3://lake/visits"
OUTSIDE_OF_A_STORE = {
    "another bucket": "s3://other/visits/a.parquet",
    "another folder": "s3://lake/secrets/a.parquet",
    "the same beginning": "s3://lake/visits-2/a.parquet",
    "a path that goes up": "s3://lake/visits/../secrets/a.parquet",
    "percent signs": "s3://lake/visits/%2e%2e/secrets/a.parquet",
    "percent signs twice": "s3://lake/visits/%252e%252e/secrets/a.parquet",
    "backslashes": "s3://lake/visits/..\\..\\secrets/a.parquet",
    "options": "s3://lake/visits/a.parquet?endpoint_override=evil",
    "another store": "gs://lake/visits/a.parquet",
    "this disk": "file:///etc/passwd",
    "somebody before the bucket": "s3://user@lake/visits/a.parquet",
}


@pytest.mark.parametrize("case", OUTSIDE_OF_A_STORE)
def test_what_lies_outside_of_a_folder_of_a_store_is_refused(case):
    with pytest.raises(DataError):
        Gate(STORE, object(), "table").admit(OUTSIDE_OF_A_STORE[case])


@pytest.mark.parametrize(
    "name", ["s3://lake/visits/data/a.parquet", "s3a://lake/visits/data/a.parquet", "data/a.parquet"]
)
def test_what_lies_in_a_folder_of_a_store_is_admitted(name):
    assert Gate(STORE, object(), "table").admit(name) == "s3://lake/visits/data/a.parquet"


def test_an_iceberg_table_does_not_show_files_of_its_neighbours(lake, tmp_path):
    _, table = lake
    table.add_files([f"file://{tmp_path}/secret.parquet"])
    with pytest.raises(MixopeError) as refused:
        mixope.read(folder_of(table)).table(["policy_id"])
    assert "outside" in str(refused.value)
    assert "SECRET" not in str(refused.value)


VIEW = (
    "SELECT 'a' AS policy_id, 0 AS episode_id, i AS step, i % 2 AS observation, i % 2 AS action, 1.0 AS reward,"
    " (i + 1) % 2 AS next_observation FROM {}"
)
ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT (i + 1) % 7 FROM r) SELECT i AS step FROM r WHERE i > 100"


def duckdb_file(path, view):
    import duckdb

    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE numbers AS SELECT i FROM range(10) t(i)")
        made.execute(f"CREATE VIEW logs AS {view}")
    return f"{path}::logs"


def sqlite_file(path, view):
    with sqlite3.connect(path) as made:
        made.execute(f"CREATE VIEW logs AS {view}")
    made.close()
    return f"{path}::logs"


def test_a_view_of_tables_in_its_own_file_is_read(tmp_path):
    assert rewards(mixope.read(duckdb_file(tmp_path / "a.duckdb", VIEW.format("numbers")))) == [1.0] * 10


READING = {
    "text": "SELECT content AS policy_id FROM read_text('{}')",
    "a table of text": "SELECT * FROM read_csv('{}')",
    "a table by its name": "SELECT * FROM '{}'",
    "bytes": "SELECT * FROM read_blob('{}')",
    "lines": "SELECT * FROM read_json('{}')",
    "names of files": "SELECT * FROM glob('/etc/*')",
    "Parquet": "SELECT * FROM read_parquet('{}')",
    "within a value": VIEW.format("numbers").replace("'a'", "(SELECT content FROM read_text('{}'))"),
}


@pytest.mark.parametrize("case", READING)
def test_a_view_reads_no_other_file(case, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("policy_id,observation\nSECRET,1\n")
    pq.write_table(pa.table(SECRET), tmp_path / "secret.parquet")
    (tmp_path / "secret.json").write_text('{"policy_id": "SECRET", "observation": 1}\n')
    where = {"Parquet": tmp_path / "secret.parquet", "lines": tmp_path / "secret.json"}.get(case, secret)
    try:
        named = duckdb_file(tmp_path / "a.duckdb", READING[case].format(where))
    except Exception as error:  # this DuckDB does not even make such a view
        pytest.skip(str(error))
    with pytest.raises(DataError) as refused:
        mixope.read(named)
    assert "SECRET" not in str(refused.value)
    assert "reads other files" in refused.value.problem


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_view_without_an_end_is_given_up(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.3)
    make = duckdb_file if kind == "duckdb" else sqlite_file
    with pytest.raises(DataError, match="does not come to an end"):
        mixope.read(make(tmp_path / f"a.{kind}", ENDLESS))


def test_a_view_may_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "BYTES", 1_000_000)
    monkeypatch.setattr(patience, "BYTES_PER_BYTE", 0)
    with pytest.raises(DataError, match="far more rows"):
        mixope.read(duckdb_file(tmp_path / "a.duckdb", VIEW.format("range(1000000000000000) t(i)")))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_an_interruption_reaches_a_query(kind, tmp_path):
    make = duckdb_file if kind == "duckdb" else sqlite_file
    named = make(tmp_path / f"a.{kind}", ENDLESS)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mixope.read(named)
    timer.join()
    assert time.monotonic() - begin < 30


def hdf5(path, change):
    h5py = pytest.importorskip("h5py", reason="pip install 'mixope[minari]'")
    with h5py.File(path, "w") as file:
        file["observations"] = np.zeros((4, 1))
        file["actions"] = np.array([[0.1], [0.2], [0.3], [0.4]])
        file["terminals"] = np.array([False, True, False, True])
        file["timeouts"] = np.zeros(4, bool)
        file["rewards"] = np.ones(4)
        change(h5py, file)
    return str(path)


def external_link(h5py, file):
    del file["rewards"]
    file["rewards"] = h5py.ExternalLink("other.hdf5", "rewards")


def soft_link(h5py, file):
    file["far"] = h5py.ExternalLink("other.hdf5", "/")
    del file["rewards"]
    file["rewards"] = h5py.SoftLink("/far/rewards")


def external_storage(h5py, file):
    del file["rewards"]
    file.create_dataset("rewards", (4,), "f8", external=[("secret.raw", 0, 32)])


def virtual(h5py, file):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.hdf5", "rewards", (4,))
    del file["rewards"]
    file.create_virtual_dataset("rewards", layout)


def enormous(h5py, file):
    del file["rewards"]
    file.create_dataset("rewards", (10**13,), "f8", chunks=(1024,))


@pytest.mark.parametrize("change", [external_link, soft_link, external_storage, virtual, enormous])
def test_an_hdf5_file_reads_itself_alone(change, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert rewards(mixope.read(hdf5(tmp_path / "other.hdf5", lambda h5py, file: None))) == [1.0] * 4
    (tmp_path / "secret.raw").write_bytes(np.arange(4.0).tobytes())
    with pytest.raises(DataError) as refused:
        mixope.read(hdf5(tmp_path / "a.hdf5", change))
    assert refused.value.column == "rewards"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_under_the_name_of_an_abandoned_file_is_left_alone(tmp_path):
    trap = tmp_path / ".mixope.4194000-0123abcd.part"
    os.mkfifo(trap)
    link = tmp_path / ".mixope.4194000-0123abce.part"
    link.symlink_to(tmp_path)
    with files.scratch_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert trap.exists()
    assert link.is_symlink()


def test_a_checkout_of_somebody_else_is_not_asked_for_its_commit(tmp_path, monkeypatch):
    from mixope.paper import reproduction

    other = tmp_path / "project" / "lib" / "mixope" / "experiments" / "reproduction.py"
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.setattr(reproduction, "__file__", str(other))
    monkeypatch.setattr(reproduction, "_git", lambda *words: pytest.fail("git was asked"))
    assert reproduction.commit() is None
