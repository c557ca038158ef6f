"""Tables and views of DuckDB and SQLite files."""

import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError
from places.conftest import log

COUNT = "import pickle, sys; print(sum(f.table(['reward']).num_rows for f in pickle.load(sys.stdin.buffer)))"


@pytest.fixture(params=["duckdb", "sqlite"])
def made(request, tmp_path):
    """A file of one table, and a file with a second table and a view."""
    paths = [str(tmp_path / f"{name}.{request.param}") for name in ("one", "more")]
    for path in paths:
        fill(path, request.param, more=path == paths[1])
    return paths


def fill(path, kind, *, more):
    table = log()
    names = ", ".join(f'"{name}"' for name in table.column_names)
    view = f"CREATE VIEW few AS SELECT {names} FROM visits WHERE episode_id < 5"
    with closing(duckdb.connect(path) if kind == "duckdb" else sqlite3.connect(path)) as connection:
        if kind == "duckdb":
            connection.register("rows", table)
            connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
        else:
            connection.execute(f"CREATE TABLE visits ({names})")
            values = zip(*(column.to_pylist() for column in table.columns), strict=True)
            connection.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * table.num_columns)})", values)
        if more:
            connection.execute("CREATE TABLE other (x INTEGER)")
            connection.execute(view)
        connection.commit()


def same(logs, expected):
    assert logs.table(["episode_id", "step", "reward", "action"]).equals(
        mixope.read(expected).table(["episode_id", "step", "reward", "action"])
    )


def test_the_only_table_needs_no_name(made):
    same(mixope.read(made[0]), log())
    same(mixope.read(f"{made[0]}::visits"), log())


def test_a_table_and_a_view_are_named(made):
    same(mixope.read(f"{made[1]}::visits"), log())
    logs = mixope.read(f"{made[1]}::few")
    assert set(logs.table(["episode_id"]).column(0).to_pylist()) == set(range(5))
    assert logs.inputs()[0]["path"] == f"{made[1]}::few"


def test_the_rows_are_those_of_the_time_of_reading_and_go_with_the_logs(made, tmp_path, monkeypatch):
    monkeypatch.setenv("MIXOPE_SCRATCH", str(tmp_path / "scratch"))
    logs = mixope.read(f"a={made[0]}", columns={"policy_id": None})
    before = logs.table()
    with open(made[0], "r+b") as file:
        file.truncate(100)
    assert logs.table().equals(before)
    told = pickle.dumps(logs.fragments())
    done = subprocess.run([sys.executable, "-c", COUNT], input=told, capture_output=True, check=True)
    assert int(done.stdout) == log().num_rows
    assert list((tmp_path / "scratch").iterdir())
    del logs
    assert not list((tmp_path / "scratch").iterdir())


def test_what_is_wrong_is_said_with_status_3(made, tmp_path):
    wrong = {
        made[1]: "several tables",
        f"{made[1]}::visit": "no such table",
        f"{made[1]}::other": "The table has no rows",
    }
    for path, words in wrong.items():
        result = run("inspect", path)
        assert result.exit_code == 3, result.output
        assert words in result.stderr
    assert "Did you mean 'visits'" in run("inspect", f"{made[1]}::visit").stderr
    with open(made[0], "r+b") as file:
        file.seek(64)
        file.write(b"\xff" * 4000)
    result = run("inspect", made[0])
    assert result.exit_code == 3
    assert "The database cannot be read" in result.stderr
    (tmp_path / "text.db").write_text("no database")
    assert "neither a DuckDB nor an SQLite" in run("inspect", f"{tmp_path / 'text.db'}::visits").stderr


def test_a_column_of_several_kinds_is_refused_and_whole_numbers_beside_floats_are_floats(tmp_path):
    path = str(tmp_path / "mixed.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visits (episode_id, step, state, action, reward, terminated)")
        rows = [(0, 0, 1, "a", 1, 0), (0, 1, 2, "b", 0.5, 1), (1, 0, 1, "a", None, 0), (1, 1, "x", "b", 2.0, 1)]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
        with pytest.raises(DataError, match=r"several kinds(.|\n)*'state'(.|\n)*integer and text"):
            mixope.read(path)
        connection.execute("UPDATE visits SET state = 3, reward = coalesce(reward, 4) WHERE episode_id = 1")
        connection.commit()
    assert mixope.read(path).table(["reward"]).column(0).to_pylist() == [1.0, 0.5, 4.0, 2.0]


def test_large_whole_numbers_stay_exact(tmp_path):
    path = str(tmp_path / "large.duckdb")
    table = log().set_column(1, "episode_id", pa.array([2**60 + n // 10 for n in range(log().num_rows)]))
    with closing(duckdb.connect(path)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE visits AS SELECT * REPLACE (episode_id::HUGEINT AS episode_id) FROM rows")
    found = mixope.read(path, columns={"policy_id": None}).table(["episode_id"]).column(0).to_pylist()
    assert set(found) == set(table.column("episode_id").to_pylist())
