"""Disks that are full or read-only, limits on memory, clocks that jump, workers that die: nothing is lost, nothing is
half-written, and one sentence says what happened.

The matrix is commands × faults. Before each case the folder holds older outputs; after it they are as they were, beside
them lies nothing, the exit code is not 0, and the last line names the place, what was refused and what to do.
"""

import errno
import os
import subprocess
import sys
import time

import psutil
import pyarrow as pa
import pytest

from cli.running import run
from mixope.paper.reproduction import write_lines
from mixope.paper.style import save
from mixope.worlds.datasets import Settings, write_dataset

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")

LOGS = ("data/logs.parquet", "--target", "data/target.csv")
COMMANDS = {
    "evaluate": (("evaluate", *LOGS, "--html", "page.html"), "page.html"),
    "compare": (("compare", *LOGS, "--target", "data/other.csv", "--html", "page.html"), "page.html"),
    "backtest": (("backtest", "data/logs.parquet", "--html", "page.html"), "page.html"),
    "simulate": (("simulate", "walk", "--episodes", "9", "-o", "made", "--force"), "made"),
    "demo": (("demo", "--episodes", "8", "--horizon", "5", "-o", "made", "--force"), "made"),
}
SMALL = Settings("walk", 2, 40, 12)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_dataset(SMALL, folder / "data")
    write_dataset(Settings("walk", 2, 10, 8, seed=5), folder / "made")
    (folder / "data" / "other.csv").write_bytes((folder / "data" / "target.csv").read_bytes())
    (folder / "page.html").write_text("an older page")
    return folder


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    subprocess.run(["cp", "-r", f"{inputs}/.", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "made" / ".."))
    return tmp_path


def content(folder):
    """All that lies in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusing(number, real, picks):
    """A call to the system that refuses what it picks."""

    def call(*given, **more):
        if picks(*given):
            raise OSError(number, os.strerror(number), *(given[:1] if isinstance(given[0], str | os.PathLike) else ()))
        return real(*given, **more)

    return call


def makes_a_file(path, flags=0, *_):
    return bool(flags & os.O_CREAT) and ".mixope." not in str(path)


def for_output(path, *_):
    return ".mixope." not in str(path)


FAULTS = {
    "a read-only folder": ("os.open", errno.EROFS, makes_a_file),
    "a folder of somebody else": ("os.open", errno.EACCES, makes_a_file),
    "a full disk, at the last byte": ("os.fsync", errno.ENOSPC, lambda *_: True),
    "a quota, at the last byte": ("os.fsync", errno.EDQUOT, lambda *_: True),
    "a rename that is refused": ("os.replace", errno.EROFS, for_output),
    "a rename without room": ("os.replace", errno.ENOSPC, for_output),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_was_there_stays_and_nothing_else_does(command, fault, folder, monkeypatch):
    words, place = COMMANDS[command]
    name, number, picks = FAULTS[fault]
    before = content(folder)
    module, function = name.split(".")
    monkeypatch.setattr(name, refusing(number, getattr(sys.modules[module], function), picks))
    result = run(*words)
    monkeypatch.undo()
    assert result.exit_code == 2, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert os.strerror(number) in last
    assert place in last
    assert "ame a place" in last
    assert content(folder) == before


@pytest.mark.parametrize("how", [KeyboardInterrupt, InterruptedError])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interruption_while_files_take_their_places(command, how, folder, monkeypatch):
    def interrupted(*_):
        raise how

    before = content(folder)
    monkeypatch.setattr("os.replace", interrupted)
    result = run(*COMMANDS[command][0])
    assert result.exit_code == 130
    assert content(folder) == before


def child(*words, folder, limit=None, **more):
    """The command in a process of its own, under a limit."""
    import resource

    def hold():
        if limit is not None:
            resource.setrlimit(limit[0], (limit[1], limit[1]))

    surroundings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = [sys.executable, "-m", "mixope", *words]
    settings = {"cwd": folder, "env": {**surroundings, "TMPDIR": str(folder)}, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, preexec_fn=hold, **{"stdout": subprocess.DEVNULL, **settings, **more})  # noqa: PLW1509


@pytest.mark.parametrize("command", ["evaluate", "simulate", "demo"])
def test_a_disk_that_is_full_in_the_middle_of_a_file(command, folder):
    import resource

    before = content(folder)
    running = child(*COMMANDS[command][0], folder=folder, limit=(resource.RLIMIT_FSIZE, 600))
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 2, said
    assert "Traceback" not in said
    assert "File too large" in said
    assert content(folder) == before


@pytest.mark.parametrize("megabytes", [270, 350])
def test_a_process_without_memory_ends_in_words_and_leaves_nothing(megabytes, folder):
    """Memory ends while libraries are loaded; with a little more or less, these end the process (or wait) themselves:
    with 200 MB, the linear algebra of SciPy waits for ever."""
    import resource

    before = content(folder)
    running = child(*COMMANDS["evaluate"][0], folder=folder, limit=(resource.RLIMIT_AS, megabytes << 20))
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 2, said
    assert "not enough memory" in said
    assert "Traceback" not in said
    assert content(folder) == before


@pytest.mark.parametrize("words", ["MemoryError", "ArrowMemoryError", "can't start new thread"])
def test_memory_that_ends_in_the_middle_is_told_in_words(words, folder, monkeypatch):
    raised = {"MemoryError": MemoryError(), "ArrowMemoryError": pa.ArrowMemoryError("malloc of size 64 failed")}

    def refuse(*_, **__):
        raise raised.get(words, RuntimeError(words))

    before = content(folder)
    monkeypatch.setattr("mixope.engines.embedded.EmbeddedEngine.scan", refuse)
    result = run(*COMMANDS["evaluate"][0])
    assert result.exit_code == 2
    assert "not enough memory" in result.stderr.splitlines()[-1]
    assert content(folder) == before


@pytest.mark.parametrize("jump", [-40 * 365 * 86400.0, 100 * 365 * 86400.0])
def test_a_clock_that_jumps_changes_no_answer(jump, folder, monkeypatch):
    asked = [("evaluate", *LOGS, "--json"), ("backtest", "data/logs.parquet", "--json")]
    wanted = [run(*words).stdout for words in asked]
    real, ticks = time.time, iter(range(10**9))
    monkeypatch.setattr("time.time", lambda: real() + jump * (next(ticks) % 2))
    monkeypatch.setattr("time.perf_counter", lambda: -float(next(ticks)))
    assert [run(*words).stdout for words in asked] == wanted


@pytest.mark.parametrize("year", [-0.5e9, 4e9])
def test_a_file_from_another_time_is_read_like_any_other(year, folder):
    wanted = run("evaluate", *LOGS, "--json").stdout
    os.utime(folder / "data" / "logs.parquet", (year, year))
    assert run("evaluate", *LOGS, "--json").stdout == wanted


WORKERS = {
    "evaluate": ("evaluate", *LOGS, "--interval", "bca", "--replicates", "4000", "--jobs", "2", "--html", "page.html"),
    "reproduce": ("reproduce", "figure1", "--full", "--jobs", "2", "-o", "figures"),
}


@pytest.mark.parametrize("command", WORKERS)
def test_a_worker_that_is_killed_is_told_of_and_nothing_is_left(command, folder):
    before = content(folder)
    running = child(*WORKERS[command], folder=folder)
    found, until = [], time.monotonic() + 60
    while len(found) < 2 and time.monotonic() < until and running.poll() is None:
        time.sleep(0.05)
        processes = psutil.Process(running.pid).children()
        found = [one for one in processes if "mixope.base.pool" in " ".join(one.cmdline())]
    time.sleep(2.0)
    found[0].kill()
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 2, said
    assert "ended from outside" in said
    assert "--jobs 1" in said
    assert "Traceback" not in said
    left = {name: text for name, text in content(folder).items() if name != "figures/figure1.jsonl"}
    assert left == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("evaluate", *LOGS), ("evaluate", "nothing.csv", "--target", "t.csv")])
def test_an_error_that_nobody_can_hear_still_has_its_exit_code(words, unbuffered, folder, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        running = child(*words, folder=folder, stdout=full, stderr=full)
        assert running.wait(timeout=120) in (2, 3)


def test_results_of_a_reproduction_are_replaced_whole(tmp_path, monkeypatch):
    def draw(rows):
        from matplotlib.figure import Figure

        return Figure()

    (tmp_path / "a.csv").write_text("old")
    (tmp_path / "a.png").write_text("old")
    monkeypatch.setattr("os.fsync", refusing(errno.ENOSPC, os.fsync, lambda *_: True))
    with pytest.raises(OSError, match="No space"):
        write_lines([{"x": 1}], tmp_path / "a.csv")
    with pytest.raises(OSError, match="No space"):
        save(draw, [], tmp_path / "a")
    assert content(tmp_path) == {"a.csv": b"old", "a.png": b"old"}
