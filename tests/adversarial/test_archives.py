"""Small files that unpack to much: refused, or read within a bound of memory, in words and in a short time."""

import gzip
import io
import os
import resource
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.running import LOG, POLICY, write

GIGABYTES = 3
"""Of address space; the program itself takes about one."""


def zeros(size: int) -> bytes:
    """A deflated stream of so many zeros, made without holding them."""
    squeeze, block = zlib.compressobj(1, zlib.DEFLATED, 31), bytes(1 << 20)
    return b"".join(squeeze.compress(block) for _ in range(size >> 20)) + squeeze.flush()


def npz_bomb(size: int) -> bytes:
    """An array of zeros as its header claims, a thousandth of that in the file."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)})
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made,
        made.open("reward.npy", "w", force_zip64=True) as out,
    ):
        out.write(header.getvalue())
        for _ in range(size >> 20):
            out.write(bytes(1 << 20))
    return file.getvalue()


def long_text() -> bytes:
    """Rows and rows of the same."""
    head = LOG.partition("\n")[0]
    return gzip.compress((head + "\n" + "a,0,0,0,0,1.0,0\n" * 500_000).encode())


def claiming_parquet() -> bytes:
    """A footer that claims 128 times the rows that there are."""
    n = 1 << 20
    columns = {name: np.zeros(n, np.int64) for name in ("observation", "action", "next_observation", "step")}
    file = io.BytesIO()
    table = pa.table({**columns, "episode_id": np.arange(n), "reward": np.ones(n)})
    pq.write_table(table, file, row_group_size=n)
    content = file.getvalue()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    true, false = varint(2 * n), varint(2 * 127 * n)
    assert len(true) == len(false)
    return content[:-footer] + content[-footer:].replace(true, false)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


BOMBS = {
    "npz of more than two gigabytes": ("log.npz", lambda: npz_bomb(2100 << 20), "unpacks to far more than it holds"),
    "gzip of zeros": ("log.csv.gz", lambda: zeros(256 << 20), "not UTF-8"),
    "gzip of one endless line": ("log.csv.gz", lambda: gzip.compress(b"x" * (64 << 20)), "header"),
    "gzip of a row half a million times": ("log.csv.gz", long_text, "repeat a step"),
    "Parquet that claims rows": ("log.parquet", claiming_parquet, "log.parquet"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_a_bound_of_memory(name, tmp_path):
    file, make, words = BOMBS[name]
    (tmp_path / file).write_bytes(make())
    write(tmp_path / "t.csv", POLICY)
    assert os.path.getsize(tmp_path / file) < 64 << 20
    done = subprocess.run(
        [sys.executable, "-m", "mixope", "evaluate", file, "--target", "t.csv", "--threads", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30,) * 2),
    )
    assert done.returncode in {2, 3}, done.stderr[-1500:]
    assert "Traceback" not in done.stderr
    assert words in done.stderr
