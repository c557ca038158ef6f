"""What a log is, in a hash: computed once, and never by loading data."""

from __future__ import annotations

import builtins
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from mixope import logs as lib
from mixope.base.errors import DataError

ROWS = 20_000


def log(rows: int = ROWS, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    episode = np.arange(rows) // 10
    return pa.table(
        {
            "episode_id": episode,
            "step": np.arange(rows) % 10,
            "observation.x": pa.array(rng.normal(size=rows)),
            "action": rng.integers(0, 2, size=rows),
            "reward": rng.normal(size=rows),
            "next_observation.x": pa.array(rng.normal(size=rows)),
            "terminated": rng.random(size=rows) < 0.1,
        }
    )


class Remote(fs.FileSystemHandler):
    """A local folder that pyarrow takes for a remote store, with a count of what is read from it."""

    def __init__(self) -> None:
        self.local, self.bytes, self.opened = fs.LocalFileSystem(), 0, 0

    def get_type_name(self) -> str:
        return "remote"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self.local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self.local.get_file_info(selector)

    def open_input_file(self, path: str) -> pa.PythonFile:
        self.opened += 1
        return pa.PythonFile(_Counted(io.BytesIO(Path(path).read_bytes()), self), mode="r")

    open_input_stream = open_input_file

    def _refuse(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


class _Counted:
    def __init__(self, file: Any, store: Remote) -> None:
        self.file, self.store = file, store

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(size)
        self.store.bytes += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def remote(folder: Path) -> tuple[Remote, ds.Dataset]:
    store = Remote()
    return store, ds.dataset(str(folder), format="parquet", filesystem=fs.PyFileSystem(store))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        pq.write_table(log(seed=number), tmp_path / f"{number}.parquet", row_group_size=4_096)
    return tmp_path


def test_a_remote_dataset_is_known_by_its_footers(folder: Path) -> None:
    store, dataset = remote(folder)
    logs = lib.read(dataset)
    records, mark = logs.inputs(), logs.fingerprint()
    tail = 65_536  # what pyarrow reads at the end of a file; of the first file once more, for the schema
    assert store.bytes <= 5 * tail < sum(path.stat().st_size for path in folder.iterdir()) / 6
    assert [(Path(r["path"]).name, r["rows"]) for r in records] == [(f"{n}.parquet", ROWS) for n in range(4)]
    assert len({record["sha256"] for record in records}) == 4
    assert lib.read(remote(folder)[1]).fingerprint() == mark


@pytest.mark.parametrize("change", ["content", "time"])
def test_another_version_of_a_remote_file_has_another_fingerprint(folder: Path, change: str) -> None:
    before = lib.read(remote(folder)[1]).fingerprint()
    path = folder / "2.parquet"
    if change == "content":
        pq.write_table(log(seed=9), path, row_group_size=4_096)
    else:
        os.utime(path, ns=(0, 1))
    assert lib.read(remote(folder)[1]).fingerprint() != before


def test_provenance_pulls_no_rows_of_any_dataset(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mixope.logs.sources.arrow import ArrowDataset

    pulled = []
    monkeypatch.setattr(ArrowDataset, "table", lambda self, columns: pulled.append(self.files))
    for dataset in (
        remote(folder)[1],
        ds.dataset(str(folder)),
        ds.dataset([ds.dataset(str(folder)), remote(folder)[1]]),
    ):
        logs = lib.read(dataset)
        assert len(logs.inputs()[0]["sha256"]) == 64
        assert logs.fingerprint() == logs.fingerprint()
    assert pulled == []


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "npz"])
def test_a_local_file_is_hashed_once(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = tmp_path / f"log.{ending}", log(50)
    if ending == "npz":
        np.savez(path, **{name: table.column(name).to_numpy() for name in table.column_names})
    else:
        writers = {
            "parquet": pq.write_table,
            "csv": pyarrow.csv.write_csv,
            "arrow": pyarrow.feather.write_feather,
        }
        writers[ending](table, path)
    logs = lib.read(path)
    opened, plain = [], builtins.open
    monkeypatch.setattr(builtins, "open", lambda name, *args, **more: opened.append(name) or plain(name, *args, **more))
    first, mark = logs.inputs(), logs.fingerprint()
    once = len(opened)
    assert once <= 2  # the content, and the ends once more: is it still the file that was read?
    assert (logs.inputs(), logs.fingerprint()) == (first, mark)
    assert len(opened) == once


def test_what_is_handed_out_is_a_copy() -> None:
    logs = lib.read(log(20))
    mark = logs.fingerprint()
    logs.inputs()[0]["sha256"] = "forged"
    assert (logs.inputs()[0]["sha256"] != "forged", logs.fingerprint()) == (True, mark)


def test_a_table_is_its_rows_however_they_are_stored() -> None:
    rows = 150_003
    strings = pa.array([None if i % 7 == 0 else f"s{i % 5}" for i in range(rows)])
    table = log(rows).append_column("policy_id", strings)
    mark = lib.read(table).fingerprint()
    pieces = [table.slice(0, 13), table.slice(13, 70_001), table.slice(70_014)]
    inside = pa.concat_tables([log(11).append_column("policy_id", strings.slice(0, 11)), table]).combine_chunks()
    views = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["b", "a"], pa.string_view()))
    last = table.num_columns - 1
    coded = table.set_column(last, "policy_id", strings.dictionary_encode())
    for same in (pa.concat_tables(pieces), table.combine_chunks(), inside.slice(11)):
        assert lib.read(same).fingerprint() == mark
    assert lib.read(coded).fingerprint() == mark
    assert lib.read(table.slice(0, 2).set_column(last, "policy_id", views)).fingerprint() == (
        lib.read(table.slice(0, 2).set_column(last, "policy_id", pa.array(["b", "a"]))).fingerprint()
    )
    assert lib.read(table.slice(1)).fingerprint() != mark
    reward = table.column("reward").to_numpy().copy()
    reward[100_000] += 1e-9
    changed = table.set_column(table.schema.get_field_index("reward"), "reward", pa.array(reward))
    assert lib.read(changed).fingerprint() != mark


def test_a_table_is_not_the_file_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = lib.read(log(20)).fingerprint()
    monkeypatch.chdir(tmp_path)
    Path("table").write_text("something else")
    assert lib.read(log(20)).fingerprint() == mark


def test_tables_in_a_dataset_are_hashed_by_content() -> None:
    same = [lib.read(ds.dataset(log(30, seed))).fingerprint() for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


def test_a_filtered_dataset_is_refused_in_words(folder: Path) -> None:
    with pytest.raises(DataError, match="filter"):
        lib.read(ds.dataset(str(folder)).filter(ds.field("step") < 3))


@pytest.mark.parametrize("opened", [str, lambda folder: ds.dataset(str(folder), partitioning="hive")])
def test_columns_in_folder_names_are_content(tmp_path: Path, opened: Any) -> None:
    marks = []
    for name in ("old", "new"):
        folder = tmp_path / name / f"policy_id={name}"
        folder.mkdir(parents=True)
        pq.write_table(log(30), folder / "log.parquet")
        marks.append(lib.read(opened(tmp_path / name)).fingerprint())
    assert marks[0] != marks[1]


def test_some_row_groups_are_not_the_whole_file(folder: Path) -> None:
    whole = ds.dataset(str(folder / "0.parquet"))
    (fragment,) = whole.get_fragments()
    some = [
        ds.FileSystemDataset([fragment.subset(row_group_ids=ids)], whole.schema, whole.format, whole.filesystem)
        for ids in ([0, 1], [0, 2], [0, 1, 2, 3, 4])
    ]
    marks = [lib.read(dataset).fingerprint() for dataset in some]
    assert len(set(marks)) == 3
    assert marks[2] == lib.read(whole).fingerprint()
    assert sum(part.rows or 0 for part in lib.read(some[1]).fragments(10)) == 2 * 4_096
