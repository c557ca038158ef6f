"""Files that are none, places that cannot be written to: words at once, never a wait and never a traceback."""

import errno
import os
import sys

import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import DataError

LONG = "x" * 300


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(tmp_path / "log.csv", LOG)
    write(tmp_path / "t.csv", POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize(("log", "target"), [("pipe.csv", "t.csv"), ("log.csv", "pipe.csv"), ("pip*.csv", "t.csv")])
def test_a_pipe_that_nobody_writes_is_not_waited_for(log, target, folder):
    os.mkfifo(folder / "pipe.csv")
    result = run("evaluate", log, "--target", target)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "is a pipe or a device, not a file" in result.stderr
    with pytest.raises(DataError, match="pipe"):
        mixope.evaluate(log, target)


PLACES = {
    "a page with a name of 300 letters": ("evaluate", "log.csv", "--target", "t.csv", "--html", f"{LONG}.html"),
    "a page inside a file": ("evaluate", "log.csv", "--target", "t.csv", "--html", "log.csv/page.html"),
    "a dataset with a name of 300 letters": ("simulate", "walk", "-o", LONG),
    "a dataset inside a file": ("simulate", "walk", "-o", "log.csv/data"),
    "a demonstration inside a file": ("demo", "-o", "log.csv/data"),
    "figures inside a file": ("reproduce", "figure1", "-o", "log.csv/figures"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_cannot_be_written_to(name, folder):
    result = run(*PLACES[name])
    assert result.exit_code == 2, result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert sorted(os.listdir(folder)) == ["log.csv", "t.csv"]


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "walk", "--episodes", "9", "-o", "data"),
        ("evaluate", "log.csv", "--target", "t.csv", "--html", "page.html"),
    ],
)
def test_a_disk_that_is_full_or_read_only(fault, command, folder, monkeypatch):
    def refuse(*_):
        raise OSError(fault, os.strerror(fault), "data")

    monkeypatch.setattr("os.fsync", refuse)
    result = run(*command)
    assert result.exit_code == 2
    assert os.strerror(fault) in result.stderr
    assert sorted(os.listdir(folder)) == ["log.csv", "t.csv"]


def test_a_page_may_have_the_longest_name_that_the_disk_allows(folder):
    page = folder / ("x" * 250 + ".html")
    result = run("evaluate", "log.csv", "--target", "t.csv", "--html", page)
    assert result.exit_code == 0, result.stderr
    assert page.stat().st_size > 1000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_output_that_nobody_can_take_is_an_error_in_words(folder):
    import subprocess

    for words in (("evaluate", "log.csv", "--target", "t.csv"), ("estimators", "--json")):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "mixope", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert "No space left on device" in done.stderr
