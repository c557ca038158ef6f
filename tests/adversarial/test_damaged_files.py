"""A file that is cut short, damaged or not what its name says: exit 3 with words, by command and in Python."""

import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import DataError


def parquet() -> bytes:
    n, draw = 3000, np.random.default_rng(0)
    columns = {"episode_id": np.arange(n) // 10, "step": np.arange(n) % 10, "reward": draw.random(n)}
    ids = {name: draw.integers(0, 2, n) for name in ("observation", "action", "next_observation")}
    file = io.BytesIO()
    pq.write_table(pa.table({**columns, **ids}), file)
    return file.getvalue()


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    return bytes(changed)


def huge_header() -> bytes:
    """The header of eight terabytes, and 64 bytes."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    return file.getvalue() + bytes(64)


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)
    return file.getvalue()


PARQUET = parquet()
LOGS = {
    "Parquet without its first bytes": ("a.parquet", PARQUET[4:], "cannot be read"),
    "Parquet without its first half": ("a.parquet", PARQUET[len(PARQUET) // 2 :], "cannot be read"),
    "Parquet with a damaged page header": ("a.parquet", flipped(PARQUET, 4), "cannot be read"),
    "Parquet with a damaged page": ("a.parquet", flipped(PARQUET, 1136), "cannot be read"),
    "npz that claims 8 TB": ("a.npz", archive(reward=huge_header()), "7,629,395 MB"),
    "CSV in quotes that never end": ("a.csv", (LOG + '"').encode(), "cannot be read"),
    "CSV of one line of many megabytes": ("a.csv", b"observation," + b"x" * 3_000_000, "header"),
}
POLICIES = {
    "npy that claims 8 TB": ("t.npy", huge_header(), "7,629,395 MB"),
    "npz that claims 8 TB": ("t.npz", archive(probabilities=huge_header()), "7,629,395 MB"),
    "npz whose member is damaged": ("t.npz", flipped(archive(probabilities=huge_header()), 60), "damaged"),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_damaged_log(name, tmp_path):
    file, content, words = LOGS[name]
    log, target = tmp_path / file, write(tmp_path / "t.csv", POLICY)
    log.write_bytes(content)
    result = run("evaluate", log, "--target", target)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr
    assert log.name in result.stderr
    with pytest.raises(DataError, match=words):
        mixope.evaluate(str(log), str(target))


@pytest.mark.parametrize("name", POLICIES)
def test_a_damaged_policy(name, tmp_path):
    file, content, words = POLICIES[name]
    log, target = write(tmp_path / "log.csv", LOG), tmp_path / file
    target.write_bytes(content)
    result = run("evaluate", log, "--target", target)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr
    with pytest.raises(DataError, match=words):
        mixope.read_policy(target)


def test_lines_that_end_as_on_an_old_macintosh_are_lines(tmp_path):
    target = write(tmp_path / "t.csv", POLICY)
    new, old = write(tmp_path / "new.csv", LOG), tmp_path / "old.csv"
    old.write_bytes(LOG.replace("\n", "\r").encode())
    values = [mixope.evaluate(str(path), str(target)).value for path in (new, old)]
    assert values[0] == values[1]
