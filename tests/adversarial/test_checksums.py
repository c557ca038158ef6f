"""Parquet pages that carry checksums are held against them, whoever reads the file: a flipped bit is no value."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import POLICY, run, write
from mixope.base.errors import DataError

N = 4_000


def table(seed=0):
    rng = np.random.default_rng(seed)
    numbers = np.arange(N)
    columns = {
        "episode_id": numbers // 10,
        "step": numbers % 10,
        "truncated": numbers % 10 == 9,
        "observation": rng.integers(0, 2, N),
    }
    return pa.table({**columns, "action": rng.integers(0, 2, N), "reward": rng.normal(size=N)})


def written(path, checksums=True, seed=0, **options):
    settings = {"compression": "none", "use_dictionary": False, "row_group_size": 1_000, **options}
    pq.write_table(table(seed), path, write_page_checksum=checksums, **settings)
    return path


def flipped(path, group=2, column="reward", back=900):
    """One bit of a value."""
    metadata = pq.read_metadata(path)
    chunk = metadata.row_group(group).column(table().schema.get_field_index(column))
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start + chunk.total_compressed_size - back] ^= 0x10
    path.write_bytes(content)
    return path


def answer(path, tmp_path, **options):
    write(tmp_path / "t.csv", POLICY)
    logs = mixope.read(str(path), **options)
    return mixope.evaluate(logs, mixope.read_policy(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": True}, {"compression": "zstd"}, {"data_page_version": "2.0"}]
)
def test_a_flipped_bit_is_an_error_that_names_the_file(options, tmp_path):
    path = written(tmp_path / "log.parquet", **options)
    whole = answer(path, tmp_path)
    flipped(path, back=200)
    with pytest.raises(DataError) as refused:
        answer(path, tmp_path)
    assert "log.parquet" in refused.value.where
    assert whole.n_rows == N


def test_the_words_say_what_it_is(tmp_path):
    path = flipped(written(tmp_path / "log.parquet"))
    done = run("evaluate", path, "--target", write(tmp_path / "t.csv", POLICY))
    assert done.exit_code == 3
    assert "checksum" in done.stderr
    assert str(path) in done.stderr


def test_one_file_of_a_folder_is_named(tmp_path):
    (tmp_path / "logs").mkdir()
    for seed, name in enumerate("abc"):
        written(tmp_path / "logs" / f"{name}.parquet", seed=seed)
    flipped(tmp_path / "logs" / "b.parquet")
    with pytest.raises(DataError) as refused:
        answer(tmp_path / "logs", tmp_path)
    assert refused.value.where.endswith("b.parquet")


def test_rows_read_by_the_window_are_checked(tmp_path):
    path = flipped(written(tmp_path / "log.parquet"))
    with pytest.raises(DataError) as refused:
        mixope.read(str(path)).table()
    assert "log.parquet" in refused.value.where


def test_workers_check_the_row_groups_that_they_read(tmp_path):
    path = flipped(written(tmp_path / "log.parquet"))
    policy = mixope.read_policy(write(tmp_path / "t.csv", POLICY))
    with pytest.raises(DataError) as refused:
        mixope.evaluate(mixope.read(str(path)), policy, engine="processes")
    assert "log.parquet" in refused.value.where


def test_a_file_that_is_mended_is_read(tmp_path):
    path = written(tmp_path / "log.parquet")
    whole, content = answer(path, tmp_path), path.read_bytes()
    flipped(path)
    with pytest.raises(DataError):
        answer(path, tmp_path)
    path.write_bytes(content)
    assert answer(path, tmp_path).value == whole.value


def test_a_policy_of_damaged_pages_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    rows = {"observation": np.repeat(np.arange(500), 2), "action": np.tile([0, 1], 500), "prob": np.full(1_000, 0.5)}
    pq.write_table(pa.table(rows), path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[200] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(DataError) as refused:
        mixope.read_policy(path)
    assert "t.parquet" in refused.value.text()


def test_files_without_checksums_are_not_read_twice(tmp_path, monkeypatch):
    path = written(tmp_path / "log.parquet", checksums=False)
    opened = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: opened.append(a) or batches(*a, **k))
    assert answer(path, tmp_path).n_rows == N
    assert not opened


def test_files_with_checksums_are_looked_through_once(tmp_path, monkeypatch):
    path = written(tmp_path / "log.parquet")
    opened = []
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: opened.append(a) or batches(*a, **k))
    first = answer(path, tmp_path)
    assert answer(path, tmp_path).value == first.value
    assert len(opened) == 1


def test_a_dataset_that_the_user_opened_keeps_its_own_settings(tmp_path):
    """Whoever opens a dataset says how it is read."""
    logs = mixope.read(ds.dataset(str(written(tmp_path / "log.parquet"))))
    assert logs.total_rows() == N
