"""Databases are used again only when nothing of the last question is left in them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

from mixope.logs import database
from mixope.logs.database import connect


@pytest.fixture(autouse=True)
def none_idle():
    database._close_idle()
    yield
    database._close_idle()


def _setting(connection, name):
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def test_the_next_question_gets_the_same_database_without_its_tables_and_settings():
    with connect() as connection:
        before = {name: _setting(connection, name) for name in ("memory_limit", "threads", "preserve_insertion_order")}
    (kept,) = database._idle
    with connect("2GB", 1) as connection:
        assert database._idle == []
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("CREATE TEMP TABLE left_over AS SELECT 1 AS x")
        connection.execute("CREATE TEMP VIEW looked_at AS SELECT 1 AS x")
        connection.register("lent", pa.table({"x": [1]}))
        assert _setting(connection, "threads") == 1
    assert database._idle == [kept]
    with connect() as connection:
        assert {name: _setting(connection, name) for name in before} == before
        for gone in ("left_over", "looked_at", "lent"):
            with pytest.raises(Exception, match="does not exist"):
                connection.execute(f"SELECT * FROM {gone}")


def test_who_asks_at_the_same_time_has_a_database_of_his_own():
    with connect() as first, connect() as second:
        first.execute("CREATE TABLE mine AS SELECT 1")
        with pytest.raises(Exception, match="does not exist"):
            second.execute("SELECT * FROM mine")


def test_threads_do_not_share_one():
    seen = []

    def ask():
        with connect() as connection:
            connection.execute("CREATE TEMP TABLE own AS SELECT 1 AS x")
            seen.append(connection.execute("SELECT count(*) FROM own").fetchall()[0][0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8
    assert len(database._idle) <= database.MOST_IDLE


def test_after_an_error_nothing_is_kept():
    with pytest.raises(RuntimeError), connect():
        raise RuntimeError
    assert database._idle == []


def test_a_database_that_holds_memory_tables_or_files_is_not_kept(tmp_path):
    with connect() as connection:
        connection.execute("CREATE TABLE much AS SELECT random() AS x FROM range(5_000_000)")
    assert database._idle == []
    for made in ("TABLE t AS SELECT 1 AS x", "VIEW v AS SELECT 1 AS x", "TYPE e AS ENUM ('a')"):
        with connect() as connection:
            connection.execute(f"CREATE {made}")
        assert database._idle == []
    with connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS other")
    assert database._idle == []


def test_a_limit_below_what_a_used_one_may_hold_is_for_a_new_one():
    with connect() as connection:
        connection.execute("SELECT sum(range) FROM range(1000)").fetchall()
    with connect("1KB") as connection, pytest.raises(Exception, match=r"(?i)memory"):
        connection.execute("CREATE TEMP TABLE t AS SELECT range FROM range(100_000)")


def test_files_are_read_anew(tmp_path):
    path = tmp_path / "log.csv"
    for value in (1, 2):
        path.write_text(f"x\n{value}\n")
        with connect() as connection:
            assert connection.execute(f"SELECT x FROM read_csv('{path}')").fetchall() == [(value,)]


def test_no_folder_to_spill_to_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with connect():
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == []


FORKED = """
import os
from mixope.logs import database
from mixope.logs.database import connect

with connect():
    pass
assert len(database._idle) == 1
child = os.fork()
if child == 0:
    with connect() as connection:
        right = connection.execute("SELECT sum(range) FROM range(1000)").fetchall() == [(499500,)]
    os._exit(0 if right else 1)
assert os.waitpid(child, 0)[1] == 0
assert database._idle == []
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")
def test_a_forked_process_has_databases_of_its_own():
    """In an interpreter of its own: a library that other tests have loaded may warn of every fork."""
    subprocess.run([sys.executable, "-c", FORKED], check=True)
