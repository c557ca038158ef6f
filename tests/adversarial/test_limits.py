"""Too little memory, nowhere to spill to, too many threads: words, and nothing left behind."""

import os
import signal
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import UsageError
from mixope.base.files import scratch_folder
from mixope.engines import EmbeddedEngine
from mixope.logs import reading
from mixope.logs.database import connect

OPTIONS = {
    "a kilobyte": (("--memory-limit", "1KB"), "not enough memory"),
    "nothing": (("--memory-limit", "0MB"), "not enough memory"),
    "more than there is": (("--memory-limit", "99999999999TB"), "--memory-limit takes a size"),
    "too many threads": (("--threads", "100000"), "--threads is a number from 1 to"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_limit_that_cannot_be_kept(name, tmp_path, monkeypatch):
    options, words = OPTIONS[name]
    log, target = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", POLICY)
    monkeypatch.chdir(tmp_path)
    result = run("evaluate", log, "--target", target, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["log.csv", "t.csv"]


def test_the_library_says_it_in_its_own_words():
    with pytest.raises(UsageError, match="threads=… is a number from 1 to"):
        EmbeddedEngine(threads=0)
    with pytest.raises(UsageError, match="memory_limit=… takes a size"), connect("much"):
        pass


def test_what_does_not_fit_goes_to_a_private_folder_that_is_gone_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with connect("30MB", 1) as connection:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        ordered = "SELECT hash(i) AS h, i FROM range(3000000) AS r(i) ORDER BY h"
        connection.execute(f"SELECT sum(i) FROM ({ordered} OFFSET 1)")
        assert connection.fetchall()[0][0] > 0
        assert connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0] == str(folder)
    assert list(tmp_path.iterdir()) == []


def test_with_nowhere_to_spill_to_small_logs_are_still_read(tmp_path, monkeypatch):
    log = write(tmp_path / "log.csv", LOG)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert mixope.read(str(log)).total_rows() == 6


HOLDS = """
import sys
from mixope.base.files import scratch_folder
with scratch_folder() as folder:
    (folder / "large").write_bytes(b"x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(tmp_path):
    surroundings = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": surroundings}
    with subprocess.Popen([sys.executable, "-c", HOLDS], **pipes) as killed:
        left = killed.stdout.readline().strip()
        killed.send_signal(signal.SIGKILL)
    assert os.path.exists(left)
    mine = tmp_path / ".mixope.thesis.part"
    mine.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDS], **pipes) as working:
        held = working.stdout.readline().strip()
        with scratch_folder(tmp_path):
            assert not os.path.exists(left)
            assert os.path.exists(held)
        working.communicate()
    assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_machine_without_memory_is_told_in_words(tmp_path):
    n = 400_000
    table = pa.table({"episode_id": np.arange(n), "observation": np.arange(n), "action": np.zeros(n, np.int64)})
    pq.write_table(table.append_column("reward", pa.array(np.ones(n))), tmp_path / "log.parquet")
    write(tmp_path / "t.csv", POLICY)
    words = ["evaluate", "log.parquet", "--target", "t.csv", "--memory-limit", "4MB", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "mixope", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert sorted(os.listdir(tmp_path)) == ["log.parquet", "t.csv"]


def test_a_long_query_draws_nothing_on_standard_output():
    """In a notebook, or with ``python -c``, DuckDB takes the reader to be watching, and would draw how far it is."""
    script = """
from mixope.logs import reading
from mixope.logs.database import connect
with connect() as connection:
    print(connection.execute("SELECT current_setting('enable_progress_bar')").fetchall())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"


FULL = """
import errno
from mixope.base.errors import UsageError
from mixope.logs.sources.stores import reaching
try:
    with reaching("standard input"):
        raise OSError(errno.ENOSPC, "No space left on device")
except UsageError as error:
    print(error)
"""


def test_no_room_for_a_copy_is_no_wrong_address(tmp_path):
    surroundings = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FULL], env=surroundings, capture_output=True, text=True, check=True)
    assert "no room" in done.stdout
    assert str(tmp_path) in done.stdout
    assert "address" not in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.parametrize("limit", [900_000, 1_100_000])
def test_few_addresses_are_told_in_words(limit, tmp_path):
    """DuckDB and its threads would end the process, or blame the file."""
    write(tmp_path / "log.csv", LOG)
    line = f'ulimit -v {limit}; "{sys.executable}" -m mixope inspect log.csv --ends truncated'
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "ulimit -v" in done.stderr or "memory" in done.stderr
    assert "csv" not in done.stderr


@pytest.mark.parametrize("said", ["Failed to launch worker thread", "can't start new thread"])
def test_no_threads_is_no_fault_of_the_file(said):
    with pytest.raises(UsageError, match="memory"), reading("log.csv"):
        raise duckdb.IOException(said)
