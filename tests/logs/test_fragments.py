"""The fragments of logs are their rows, each once and in order, and each can be opened by another process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragged_logs import arrow, ragged, read, without
from test_logs_parity import SMALL, SUBSETS

from mixope import logs as lib
from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.logs.fragments import apart

pytestmark = pytest.mark.long

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def shipped(logs: lib.Logs, rows: int) -> list[lib.Fragment]:
    return [pickle.loads(pickle.dumps(fragment)) for fragment in logs.fragments(rows)]


def assert_whole(logs: lib.Logs, rows: int) -> list[lib.Fragment]:
    """The fragments, after a journey, make up the table; each knows how many rows it has, or says that it does not."""
    fragments = shipped(logs, rows)
    together = pa.concat_tables([fragment.table() for fragment in fragments])
    assert together.combine_chunks().equals(logs.table().combine_chunks())
    for name in ("start", "step", "reward", *logs.schema.next_observation):
        alone = pa.concat_tables([fragment.table([name]) for fragment in fragments])
        assert alone.column(name).equals(together.column(name))
    keys = [fragment.key for fragment in fragments]
    assert len(set(keys)) == len(keys)
    assert keys == [fragment.key for fragment in logs.fragments(rows)]
    if all(fragment.rows is not None for fragment in fragments):
        assert sum(fragment.rows or 0 for fragment in fragments) == logs.total_rows()
    for fragment in fragments:
        assert not fragment.keeps_all or fragment.rows in {None, fragment.table(["reward"]).num_rows}
    batches = list(logs.batches(rows=7))
    assert all(0 < batch.num_rows <= 7 for batch in batches)
    assert not batches or pa.concat_tables(batches).combine_chunks().equals(logs.table().combine_chunks())
    return fragments


@QUICK
@given(ragged(), st.sampled_from(SUBSETS), st.integers(1, 9))
def test_tables_in_slices(log: dict[str, list[Any]], absent: tuple[str, ...], rows: int) -> None:
    assert_whole(read(arrow(without(log, *absent))), rows)


FORMATS = ["parquet", "csv", "arrow", "stream", "labelled", "dataset", "union"]


@settings(QUICK, max_examples=20)
@given(ragged(), st.sampled_from(SUBSETS), st.sampled_from(FORMATS), st.integers(0, 99), st.integers(1, 5))
def test_files_in_row_groups(
    tmp_path_factory: Any, log: dict[str, list[Any]], absent: tuple[str, ...], format: str, cut: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("fragments")
    table = arrow(without(log, *absent))
    cut = 1 + cut % max(1, table.num_rows - 1)
    for name, part in (("1", table.slice(0, cut)), ("2", table.slice(cut))):
        if part.num_rows:
            save(part, folder / name, format, size)
    assert_whole(opened(folder, format), 2 * size)


def save(table: pa.Table, stem: Path, format: str, size: int) -> None:
    if format == "csv":
        pyarrow.csv.write_csv(table, f"{stem}.csv")
    elif format == "arrow":
        pyarrow.feather.write_feather(table, f"{stem}.arrow", chunksize=size)
    elif format == "stream":
        with pa.OSFile(f"{stem}.arrow", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=size)
    else:
        pq.write_table(table, f"{stem}.parquet", row_group_size=size)


def opened(folder: Path, format: str) -> lib.Logs:
    if format == "labelled":
        return read({path.stem: path for path in sorted(folder.iterdir())})
    if format == "dataset":
        return read(ds.dataset(str(folder)))
    if format == "union":
        return read(ds.dataset([ds.dataset(str(path)) for path in sorted(folder.iterdir())]))
    return read(str(folder))


def complete(rows: int, episode: Any = None, more: float = 0.0) -> pa.Table:
    number = np.arange(rows)
    return pa.table(
        {
            "episode_id": number // 10 if episode is None else episode,
            "step": number % 10,
            "observation": number % 7,
            "action": number % 2,
            "reward": number * 0.5 + more,
            "next_observation": (number + 1) % 7,
            "policy_id": np.where(number < rows // 2, "a", "b"),
        }
    )


def test_complete_parquet_files_fall_apart_by_row_groups(tmp_path: Path) -> None:
    for more, name in enumerate(("a", "b")):
        pq.write_table(complete(1_000, more=more), tmp_path / f"{name}.parquet", row_group_size=100)
    fragments = assert_whole(lib.read(str(tmp_path)), 350)
    assert [fragment.rows for fragment in fragments] == [300, 300, 300, 100] * 2
    assert all(fragment.keeps_all for fragment in fragments)
    assert [fragment.key for fragment in fragments[:2]] == [
        f"0.{number}:{tmp_path / 'a.parquet'}[{3 * number}:{3 * number + 3}]" for number in (0, 1)
    ]
    (small,) = assert_whole(lib.read(str(tmp_path)), 2_000)  # small files go together
    assert small.rows == 2_000
    assert small.key == f"0.0:{tmp_path / 'a.parquet'} … {tmp_path / 'b.parquet'}"
    assert [fragment.rows for fragment in assert_whole(lib.read(str(tmp_path)), 1_500)] == [1_000, 1_000]


def test_a_fragment_reads_only_its_own_row_groups_and_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(complete(1_000), tmp_path / "a.parquet", row_group_size=100)
    fragment = lib.read(tmp_path / "a.parquet").fragments(200)[2]
    asked, plain = [], pq.ParquetFile.read_row_groups

    def watched(self: Any, groups: Any, columns: Any = None, **more: Any) -> Any:
        asked.append((groups, sorted(columns)))
        return plain(self, groups, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", watched)
    assert fragment.table(["reward"]).num_rows == 200
    assert asked == [([4, 5], ["reward"])]


def test_a_slice_travels_without_the_rest_of_its_table() -> None:
    logs = lib.read(complete(100_000))
    fragments = logs.fragments(1_000)
    assert len(fragments) == 100
    assert max(len(pickle.dumps(fragment)) for fragment in fragments) < len(pickle.dumps(logs)) / 50


def test_another_process_opens_a_fragment_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    pq.write_table(complete(100), tmp_path / "logs" / "a.parquet")
    pyarrow.csv.write_csv(complete(100), tmp_path / "logs" / "b.csv")
    pyarrow.feather.write_feather(complete(100), tmp_path / "logs" / "c.arrow")
    monkeypatch.chdir(tmp_path / "logs")
    pq.write_table(complete(100, more=1.0), "d.parquet")
    pyarrow.csv.write_csv(complete(100, more=1.0), "e.csv")
    stored = [ds.dataset("d.parquet"), ds.dataset("e.csv", format="csv")]
    fragments = lib.read("a.parquet", "b.csv", "c.arrow", *stored).fragments()
    code = "import pickle, sys; print([f.table(['reward']).num_rows for f in pickle.load(sys.stdin.buffer)])"
    command, elsewhere = [sys.executable, "-c", code], tmp_path / "elsewhere"
    done = subprocess.run(command, input=pickle.dumps(fragments), capture_output=True, cwd=elsewhere, check=True)
    assert done.stdout.decode().strip() == "[100, 100, 100, 100, 100]"


@pytest.mark.parametrize("absent", [("next_observation",), ("step",), ("step", "next_observation")])
@pytest.mark.parametrize("ids", ["numbers", "words"])
def test_files_that_share_no_episode_are_apart_though_next_rows_are_needed(
    tmp_path: Path, absent: tuple[str, ...], ids: str
) -> None:
    episode = np.arange(1_000) // 10
    table = complete(1_000, episode if ids == "numbers" else [f"e{number:04}" for number in episode])
    table = table.drop_columns(list(absent))
    pq.write_table(table.slice(0, 400), tmp_path / "a.parquet", row_group_size=100)
    pq.write_table(table.slice(400), tmp_path / "b.parquet", row_group_size=155)
    fragments = assert_whole(read(str(tmp_path)), 100)
    assert [len(fragment.plan.source.pieces) for fragment in fragments] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert [fragment.rows for fragment in fragments] == [100, 100, 100, 100, 155, 155, 155, 135]
    same = assert_whole(read(ds.dataset(str(tmp_path))), 100)
    assert [fragment.rows for fragment in same] == [fragment.rows for fragment in fragments]


def test_a_fragment_looks_into_its_neighbours_for_the_rest_of_its_episodes(tmp_path: Path) -> None:
    table = complete(1_000).drop_columns(["next_observation"])
    pq.write_table(table.slice(0, 405), tmp_path / "a.parquet", row_group_size=93)
    pq.write_table(table.slice(405), tmp_path / "b.parquet", row_group_size=93)
    fragments = assert_whole(lib.read(str(tmp_path)), 100)
    assert [fragment.rows for fragment in fragments] == [*[93] * 4, 33, *[93] * 6, 37]
    assert max(len(fragment.plan.source.pieces) for fragment in fragments) == 3


def test_episodes_in_disorder_stay_together(tmp_path: Path) -> None:
    table = complete(1_000).drop_columns(["next_observation"])
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(1_000)))
    pq.write_table(shuffled.slice(0, 500), tmp_path / "a.parquet", row_group_size=100)
    pq.write_table(shuffled.slice(500), tmp_path / "b.parquet", row_group_size=100)
    assert [fragment.rows for fragment in assert_whole(lib.read(str(tmp_path)), 100)] == [1_000]
    one = complete(1_000, np.zeros(1_000, dtype=int)).drop_columns(["next_observation", "step"])
    pq.write_table(one, tmp_path / "one.parquet", row_group_size=100)
    assert [fragment.rows for fragment in assert_whole(read(tmp_path / "one.parquet"), 100)] == [1_000]


def test_episodes_cut_at_their_ends_need_the_whole_source(tmp_path: Path) -> None:
    table = complete(100).drop_columns(["episode_id", "step"])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    other = complete(100, more=1.0).drop_columns(["episode_id", "step"])
    pq.write_table(other, tmp_path / "b.parquet", row_group_size=10)
    assert [fragment.rows for fragment in assert_whole(read(str(tmp_path)), 10)] == [200]
    assert [fragment.rows for fragment in assert_whole(read(tmp_path / "a.parquet", tmp_path / "b.parquet"), 10)] == [
        *[100, 100]
    ]


def test_loggers_in_folders_are_apart(tmp_path: Path) -> None:
    tables = {
        name: complete(100, more=more).drop_columns(["policy_id", "next_observation"])
        for more, name in enumerate(("old", "new"))
    }
    for name, table in tables.items():
        (tmp_path / f"policy_id={name}").mkdir()
        pyarrow.csv.write_csv(table, tmp_path / f"policy_id={name}" / "log.csv")
    fragments = assert_whole(lib.read(str(tmp_path)), 10)
    assert [fragment.rows for fragment in fragments] == [None, None]
    assert [set(fragment.table(["policy_id"]).column(0).to_pylist()) for fragment in fragments] == [{"new"}, {"old"}]
    for name, table in tables.items():
        cut = table.drop_columns(["episode_id", "step"])
        pyarrow.csv.write_csv(cut, tmp_path / f"policy_id={name}" / "log.csv")
    assert len(assert_whole(read(str(tmp_path)), 10)) == 1


def test_runs_of_neighbours_that_share_no_range() -> None:
    def lengths(*spans: Any) -> list[int]:
        return [len(run) for run in apart([(None, span) for span in spans])]

    assert lengths((0, 1), (2, 3), (4, 9)) == [1, 1, 1]
    assert lengths((4, 9), (0, 1), (2, 3)) == [1, 1, 1]
    assert lengths((0, 2), (2, 3), (4, 9)) == [2, 1]
    assert lengths((0, 1), (5, 6), (1, 2), (7, 8)) == [3, 1]
    assert lengths((0, 9), (1, 2), (3, 4)) == [3]
    assert lengths((0, 1), None, (2, 3)) == [3]
    by_logger = [("a", (0, 9)), ("a", (5, 9)), ("b", (0, 9)), ("c", None), ("c", (1, 2))]
    assert [len(run) for run in apart(by_logger)] == [2, 1, 2]
    assert [len(run) for run in apart([("a", (0, 1)), ("b", (0, 1)), ("a", (1, 2))])] == [3]


def test_a_fragment_speaks_as_its_logs_do(tmp_path: Path) -> None:
    pq.write_table(arrow(SMALL), tmp_path / "a.parquet")
    (fragment,) = lib.read(tmp_path / "a.parquet").fragments()
    with pytest.raises(UnknownName, match="Did you mean 'reward'"):
        fragment.table(["rewards"])
    with pytest.raises(UsageError, match="at least one row"):
        lib.read(tmp_path / "a.parquet").fragments(0)
    assert "a.parquet" in repr(fragment)
    assert len(repr(fragment)) < 300
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(DataError, match="the file is gone"):
        fragment.table()


def test_both_ways_in_find_the_same_first_step() -> None:
    """The row of the smallest step is dropped: it has no next observation."""
    import duckdb

    table = complete(10)
    following = pa.array([None, *range(9)], pa.int64())
    table = table.set_column(table.schema.get_field_index("next_observation"), "next_observation", following)
    first, second = lib.read(table), lib.read(table)
    with duckdb.connect() as connection:
        second.view(connection)
    assert first.step_base == second.step_base == 0


def test_frames_with_categories_travel() -> None:
    import polars as pl

    frame = pl.DataFrame(SMALL).with_columns(pl.col("action").cast(pl.Categorical))
    assert len(assert_whole(read(frame), 2)) == 3
    assert len(read(frame).fingerprint()) == 16
