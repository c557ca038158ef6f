"""A limit of memory is for the process: DuckDB gets what Python leaves, and every reading by SQL keeps to it."""

import sys

import pytest

import mixope
from mixope.engines import EmbeddedEngine
from mixope.logs import database
from mixope.logs.jumps import jumps
from mixope.logs.logs import Logs

from .logs import chain_log


@pytest.fixture
def files(tmp_path):
    target, _, columns = chain_log(0, episodes=30, horizon=10)
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: columns[name] for name in ("policy_id", "episode_id", "observation", "action", "reward")})
    pq.write_table(table, tmp_path / "log.parquet")
    return str(tmp_path / "log.parquet"), mixope.TabularPolicy(target)


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [("1GB", 10**9), ("1.5 MB", 1_500_000), ("2GiB", 2 << 30), ("7b", 7), ("50%", None), ("much", None)],
)
def test_sizes_are_read_as_duckdb_reads_them(size, bytes_):
    assert database.bytes_of(size) == bytes_


def test_duckdb_gets_a_part_of_what_is_left():
    assert database.share_of(10**9, 3 * 10**8) == pytest.approx(database.SHARE * 7 * 10**8)
    assert database.share_of(4 * 10**8, 3 * 10**8) == database.LEAST
    assert database.share_of(5 * 10**7, 3 * 10**8) == 5 * 10**7


def test_a_process_holds_some_memory():
    assert 10**7 < database.resident_bytes() < 10**11


def test_the_limit_of_a_connection_is_below_what_was_asked_for():
    with database.connect("1GB") as connection:
        said = connection.execute("SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'").fetchall()[0][0]
    number, unit = said.split()
    assert unit == "MiB"
    assert float(number) * 2**20 < 10**9 * database.SHARE


def test_everything_that_is_read_of_limited_logs_keeps_to_the_limit(files, monkeypatch):
    path, target = files
    asked, connect = [], database.connect
    monkeypatch.setattr("mixope.logs.logs.connect", lambda *given: asked.append(given) or connect(*given))
    engine = EmbeddedEngine(memory_limit="1GB", threads=1)
    with pytest.warns(mixope.base.errors.MixopeWarning):
        logs = mixope.read(path, ends="truncated")
    mixope.evaluate(logs, target, engine=engine)
    assert asked
    assert set(asked) == {("1GB", 1)}


def test_logs_without_a_limit_are_themselves(files):
    with pytest.warns(mixope.base.errors.MixopeWarning):
        logs = mixope.read(files[0], ends="truncated")
    assert logs.within(None, None) is logs
    assert isinstance(logs.within("1GB", None), Logs)
    assert logs.within("1GB", None).schema is logs.schema


def test_jumps_of_long_logs_are_found_in_parts(files, monkeypatch):
    with pytest.warns(mixope.base.errors.MixopeWarning):
        logs = mixope.read(files[0], ends="truncated")
    whole = jumps(logs)
    monkeypatch.setattr(sys.modules["mixope.logs.jumps"], "ROWS", 40)
    parts = jumps(logs)
    assert list(parts) == list(whole)
    for label, found in whole.items():
        assert (parts[label].lost, parts[label].onto.count) == (found.lost, found.onto.count)
        assert parts[label].onto.total == pytest.approx(found.onto.total)
        assert [n.count for n in parts[label].usual] == [n.count for n in found.usual]
