"""What is written is read back, and a failure leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from ragged_logs import rows_of

from mixope import logs as lib
from mixope.base.errors import DataError
from mixope.base.files import replacing
from mixope.logs import writing

COLUMNS = {
    "episode_id": np.repeat([0, 1], 3),
    "step": np.tile([0, 1, 2], 2),
    "observation": np.arange(12).reshape(6, 2),
    "action": np.array(["l", "r"] * 3),
    "reward": np.linspace(0, 1, 6),
    "next_observation": np.arange(12).reshape(6, 2) + 1,
    "terminated": np.array([False, False, True] * 2),
    "action_prob": np.array([0.5, np.nan, 0.25, 1.0, 0.5, 0.5]),
}


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv", "tsv", "arrow", "feather"])
def test_written_logs_read_back_the_same(tmp_path: Path, ending: str) -> None:
    path = lib.write(COLUMNS, tmp_path / "new" / f"log.{ending}")
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert rows_of(lib.read(path).table()) == rows_of(lib.Logs.from_arrays(**COLUMNS).table())


def test_row_groups_have_the_size_asked_for(tmp_path: Path) -> None:
    path = lib.write(COLUMNS, tmp_path / "log.parquet", row_group_size=2)
    assert pq.ParquetFile(path).metadata.num_row_groups == 3


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = tmp_path / f"log.{ending}"
    path.write_text("old")

    def fail(table: Any, name: str, size: int) -> None:
        Path(name).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setitem(writing.WRITERS, ending, fail)
    with pytest.raises(KeyboardInterrupt):
        lib.write(COLUMNS, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Unknown format to write"):
        lib.write(COLUMNS, tmp_path / "log.xlsx")
    with pytest.raises(DataError, match="different lengths"):
        lib.write(COLUMNS | {"reward": np.ones(2)}, tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_complete_parquet_log_is_a_plain_projection(tmp_path: Path) -> None:
    import duckdb

    path = lib.write(COLUMNS | {"terminated": np.zeros(6, bool)}, tmp_path / "log.parquet")
    with duckdb.connect() as connection:
        view = lib.read(path).view(connection)
        query = f'SELECT "observation.0", action, count(*) FROM {view} GROUP BY ALL'
        plan = "\n".join(row[1] for row in connection.execute(f"EXPLAIN {query}").fetchall())
    for costly in ("WINDOW", "FILTER", "ORDER_BY", "CASE", "COALESCE"):
        assert costly not in plan.upper().replace("FILTERS", "")


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").touch()

    def refuse(mask: int) -> int:
        raise AssertionError("the umask belongs to the whole process: other threads would see it change")

    monkeypatch.setattr("os.umask", refuse)
    path = lib.write(COLUMNS, tmp_path / "log.parquet")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_atomic_write_replaces_the_old_file_or_leaves_it(tmp_path: Path) -> None:
    target = tmp_path / "new" / "page.html"
    with replacing(target) as temporary:
        Path(temporary).write_text("first")
        assert not target.exists()
    with pytest.raises(FileNotFoundError), replacing(target) as temporary:
        Path(temporary).rename(tmp_path / "stolen")
    assert (target.read_text(), list(target.parent.iterdir())) == ("first", [target])
