"""Whatever the encoding of the output, and whichever stream is closed: an answer or a clear error, no traceback."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mixope.cli import app
from mixope.cli.characters import in_ascii

from .running import LOG, POLICY, REFERENCE, WALK, write

ENCODINGS = ("ascii", "cp1252", "latin-1", "cp437", "utf-16")
posix = pytest.mark.skipif(os.name != "posix", reason="shells of POSIX")
COMMANDS = {
    "evaluate": ("evaluate", *WALK),
    "compare": ("compare", *WALK, "--estimators", "emp,bch,on-policy"),
    "inspect": ("inspect", *WALK),
    "backtest": ("backtest", WALK[0]),
    "plan": ("plan", *WALK, "--half-width", "0.05"),
    "returns": ("returns", *WALK),
    "estimators": ("estimators",),
    "help": ("--help",),
    "help of a command": ("evaluate", "--help"),
    "a wrong option": ("evaluate", "--nonsense"),
    "a wrong name": ("evaluate", *WALK, "--estimator", "emq…≤"),
    "a missing file": ("inspect", "näher–中.csv"),
    "bad data": ("evaluate", str(REFERENCE / "walk-target.csv"), "--target", WALK[2]),
}


def on(encoding, *arguments):
    """A command whose output has this encoding, with what it printed."""
    done = CliRunner(charset=encoding).invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_encoding_gets_the_same_answer(command, encoding):
    expected, got = on("utf-8", *command), on(encoding, *command)
    assert got.exit_code == expected.exit_code
    for stream in ("stdout_bytes", "stderr_bytes"):
        assert bool(getattr(got, stream)) == bool(getattr(expected, stream))
    if encoding != "utf-16":
        assert "?" not in got.stdout.replace("?", "", expected.stdout.count("?"))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_the_same_in_every_encoding(encoding, tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("a,", "größer 中,"))
    expected = json.loads(on("utf-8", "inspect", str(log), "--json").stdout_bytes)
    printed = on(encoding, "inspect", str(log), "--json").stdout_bytes
    assert json.loads(printed) == expected
    if not encoding.startswith("utf"):
        assert printed.isascii()


def test_names_that_an_encoding_lacks_stay_apart(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("a,", "中,").replace("b,", "文,"))
    shown = on("ascii", "inspect", str(log)).stdout_bytes
    assert rb"\u4e2d" in shown
    assert rb"\u6587" in shown


def test_what_an_encoding_lacks_has_a_plain_form():
    assert in_ascii("−1 ≤ x … ±2 → ∞ · 10²⁵ é") == r"-1 <= x ... +/-2 -> inf . 10^2^5 \xe9"


def shell(words, cwd, **surroundings):
    """A line of a shell, in which ``mixope`` is this one."""
    line = words.replace("mixope", f'"{sys.executable}" -m mixope')
    env = {**os.environ, **surroundings}
    return subprocess.run(["bash", "-c", line], cwd=cwd, env=env, capture_output=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "log.csv", LOG)
    return tmp_path


@posix
def test_a_c_locale_gets_an_answer(folder):
    done = shell("mixope inspect log.csv", folder, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout


@posix
def test_a_closed_standard_error_takes_nothing_from_the_answer(folder):
    closed, open_ = shell("mixope inspect log.csv 2>&-", folder), shell("mixope inspect log.csv", folder)
    assert closed.returncode == 0
    assert closed.stdout == open_.stdout


@posix
def test_a_closed_standard_output_is_told_in_words(folder):
    for words in ("mixope inspect log.csv", "mixope --help", "mixope inspect log.csv --json"):
        done = shell(f"{words} >&-", folder)
        assert done.returncode == 2
        assert b"standard output is closed" in done.stderr
        assert b"Traceback" not in done.stderr
    assert shell("mixope inspect log.csv >&- 2>&-", folder).returncode == 2


@posix
def test_a_file_that_is_written_does_not_become_the_closed_stream(folder):
    write(folder / "policy.csv", POLICY)
    words = "mixope evaluate log.csv --target policy.csv --ends truncated --html page.html"
    done = shell(f"{words} 2>&- <&-", folder)
    assert done.returncode == 0, done.stdout
    assert (folder / "page.html").read_bytes().startswith(b"<!")


@posix
def test_a_closed_standard_input_is_nothing_to_read(folder):
    done = shell("mixope inspect - --format csv <&-", folder)
    assert done.returncode == 3
    assert b"Nothing came from the stream" in done.stderr
    assert b"standard input" in done.stderr


@posix
@pytest.mark.parametrize("words", ["--help", "--version", "evaluate --help", "estimators", "inspect log.csv --json"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_full_disk_is_told_in_words(words, folder):
    done = shell(f"mixope {words} > /dev/full", folder)
    assert done.returncode == 2
    assert b"the output cannot be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("columns", ["0", "1", "5", "40", "nonsense", "100000"])
def test_nothing_is_lost_on_a_narrow_terminal(columns, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    shown = on("utf-8", "inspect", str(folder / "log.csv"), "--full").stdout
    assert "earned per step" in " ".join(shown.split())
    assert len(shown.splitlines()) > 10


def test_a_reader_that_leaves_is_no_error(folder):
    done = shell("mixope inspect log.csv | head -1; exit ${PIPESTATUS[1]}", folder)
    assert done.returncode == 0
    assert done.stderr == b""
