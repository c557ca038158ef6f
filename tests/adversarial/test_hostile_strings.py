"""Labels, columns and names of files may hold anything: a terminal is never told what to do by them."""

import json
import re

import pytest

import mixope
from cli.running import LOG, POLICY, run, write
from mixope.base.errors import UNSHOWABLE, DataError, MixopeWarning, UsageError

HOSTILE = {
    "colours": "\x1b[31mred\x1b[0m",
    "clear the screen": "\x1b[2J\x1b[H",
    "a title": "\x1b]0;owned\x07",
    "control sequences of eight bits": "\x9b31m",
    "a bell and a backspace": "\x07\x08\x08",
    "right to left": "\u202egnp.exe",
    "isolates": "\u2066\u2069",
    "marks": "\u200f\u200e\u061c",
    "line separators": "\u2028\u2029",
}


@pytest.fixture(params=HOSTILE)
def hostile(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", POLICY)
    return HOSTILE[request.param]


def log_of(label):
    return LOG.replace("\na,", f'\n"{label}",')


def shown(result):
    """What reached the screen, without anything that it would obey."""
    assert not UNSHOWABLE.search(result.stdout + result.stderr), repr(result.output)
    return result


@pytest.mark.parametrize("command", ["evaluate", "inspect", "backtest", "compare"])
def test_labels_of_loggers(command, hostile, tmp_path):
    write(tmp_path / "log.csv", log_of(hostile))
    target = () if command == "backtest" else ("--target", "t.csv")
    assert shown(run(command, "log.csv", *target)).exit_code == 0
    result = shown(run(command, "log.csv", *target, "--json"))
    assert json.dumps(hostile)[1:-1] in json.dumps(json.loads(result.stdout))


def test_names_of_files_and_columns(hostile, tmp_path):
    write(tmp_path / f"{hostile}.csv", LOG.replace("reward", f"re{hostile}ward"))
    assert shown(run("inspect", f"{hostile}.csv")).exit_code == 3
    write(tmp_path / f"{hostile}.csv", LOG.replace("reward", f"x{hostile}x"))
    assert shown(run("inspect", f"{hostile}.csv", "--column", f"reward=x{hostile}x")).exit_code == 0
    assert shown(run("inspect", f"missing {hostile}.csv")).exit_code == 3
    with pytest.raises(DataError) as caught:
        mixope.read(f"missing {hostile}.csv")
    assert not UNSHOWABLE.search(str(caught.value))


def test_words_of_the_command_line(hostile, tmp_path):
    write(tmp_path / "log.csv", LOG)
    for words in (
        (hostile,),
        ("evaluate", "log.csv", "--target", "t.csv", hostile),
        ("evaluate", "log.csv", "--target", "t.csv", f"--{hostile}"),
        ("evaluate", "log.csv", "--target", "t.csv", "--estimator", hostile),
        ("evaluate", "log.csv", "--target", "t.csv", "--level", hostile),
        ("evaluate", "log.csv", "--target", hostile),
        ("simulate", hostile, "-o", "data"),
    ):
        assert shown(run(*words)).exit_code in {2, 3}
    page = run("evaluate", "log.csv", "--target", "t.csv", "--html", f"{hostile}.html")
    assert shown(page).exit_code == 0
    assert shown(run("simulate", "walk", "--episodes", "9", "-o", f"data {hostile}")).exit_code == 0


def test_what_python_prints(hostile):
    assert not UNSHOWABLE.search(str(UsageError(f"unknown {hostile}")))
    assert not UNSHOWABLE.search(str(MixopeWarning(f"unknown {hostile}")))


def test_words_of_other_languages_are_left_alone(tmp_path):
    label = "Größe 北京 שלום مرحبا 👩‍🔬"
    log, target = write(tmp_path / "log.csv", log_of(label)), write(tmp_path / "t.csv", POLICY)
    result = run("inspect", log, "--target", target)
    assert label in re.sub(r"\s+", " ", result.stdout)
