"""Folders that hold somebody's files: nothing that we did not write is ever replaced or removed.

A case is what lies in the folder before the command; the command may refuse or go on, the files must be there after.
"""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import run
from mixope.base.errors import UsageError
from mixope.base.folders import RECORD, STAGING, claim
from mixope.worlds import datasets

SIMULATE = ("simulate", "walk", "--loggers", "2", "--episodes", "8", "--horizon", "10", "-o")
DEMO = ("demo", "--episodes", "8", "--horizon", "10", "-o")
FOREIGN = ["logs.parquet", "target.csv", "truth.json", "report.html", "thesis.tex", "evaluate.json", ".hidden"]
PRECIOUS = "precious"


@pytest.mark.parametrize("command", [SIMULATE, DEMO], ids=["simulate", "demo"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_with_a_file_of_somebody_is_refused(command, name, tmp_path):
    (tmp_path / name).write_text(PRECIOUS)
    result = run(*command, tmp_path)
    assert result.exit_code == 2
    assert name in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == PRECIOUS


@pytest.mark.parametrize("name", FOREIGN)
def test_not_even_force_replaces_a_file_of_somebody(name, tmp_path):
    (tmp_path / name).write_text(PRECIOUS)
    result = run(*SIMULATE, tmp_path, "--force")
    ours = name in datasets.OURS
    assert result.exit_code == (2 if ours else 0)
    assert ("did not write" in result.stderr) == ours
    assert (tmp_path / name).read_text() == PRECIOUS
    assert (tmp_path / "logs.parquet").exists() == (not ours or name == "logs.parquet")


@pytest.mark.parametrize("make", ["link", "folder"])
def test_a_link_or_a_folder_under_a_name_of_ours_stays(make, tmp_path):
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "data"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "logs").write_text(PRECIOUS)
    if make == "link":
        (folder / "logs.parquet").symlink_to(elsewhere / "logs")
    else:
        (folder / "logs.parquet").mkdir()
    assert run(*SIMULATE, folder, "--force").exit_code == 2
    assert (elsewhere / "logs").read_text() == PRECIOUS
    assert (folder / "logs.parquet").is_symlink() == (make == "link")


def test_what_is_written_into_the_folder_meanwhile_survives(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    assert run(*SIMULATE, folder).exit_code == 0
    truth = datasets._exact_truth

    def meanwhile(*given):
        (folder / "notes.txt").write_text(PRECIOUS)
        return truth(*given)

    monkeypatch.setattr(datasets, "_exact_truth", meanwhile)
    assert run(*SIMULATE, folder, "--force").exit_code == 0
    assert (folder / "notes.txt").read_text() == PRECIOUS


def test_a_file_that_takes_one_of_our_names_meanwhile_survives(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    truth = datasets._exact_truth

    def meanwhile(*given):
        (folder / "target.csv").write_text(PRECIOUS)
        return truth(*given)

    monkeypatch.setattr(datasets, "_exact_truth", meanwhile)
    result = run(*SIMULATE, folder)
    assert result.exit_code == 2
    assert "target.csv" in result.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"target.csv": PRECIOUS}


def test_a_dataset_of_another_format_leaves_no_old_logs_beside_the_new(tmp_path):
    run(*SIMULATE, tmp_path, "--format", "csv")
    assert run(*SIMULATE, tmp_path, "--force").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        *("logs.parquet", "target.csv", "loggers.csv", "truth.json", RECORD)
    }


def test_own_files_are_renewed_without_force_where_that_is_usual_but_not_changed_ones(tmp_path):
    for content in ("first", "second"):
        with claim(tmp_path, ["report.html"], again=True) as place, place.writing() as fresh:
            (fresh / "report.html").write_text(content)
    assert (tmp_path / "report.html").read_text() == "second"
    (tmp_path / "report.html").write_text(PRECIOUS)
    with pytest.raises(UsageError, match="changed since"), claim(tmp_path, ["report.html"], again=True):
        pass
    assert (tmp_path / "report.html").read_text() == PRECIOUS


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"files": 3}', '{"files": {"../thesis.tex": "0"}}'])
def test_a_broken_record_makes_nothing_ours(record, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "thesis.tex").write_text(PRECIOUS)
    (folder / RECORD).write_text(record)
    (folder / "logs.parquet").write_text(PRECIOUS)
    assert run(*SIMULATE, folder, "--force").exit_code == 2
    assert (folder / "logs.parquet").read_text() == (tmp_path / "thesis.tex").read_text() == PRECIOUS


def _hold(folder: Path, held, done) -> None:
    with claim(folder, ()):
        held.set()
        done.wait(60)


def test_a_second_run_is_told_that_the_first_one_is_writing(tmp_path):
    process = multiprocessing.get_context("spawn")
    held, done = process.Event(), process.Event()
    first = process.Process(target=_hold, args=(tmp_path / "data", held, done))
    first.start()
    try:
        assert held.wait(60)
        second = run(*SIMULATE, tmp_path / "data", "--force")
    finally:
        done.set()
        first.join()
    assert second.exit_code == 2
    assert "another run is writing" in second.stderr
    assert list(tmp_path.iterdir()) == []
    assert run(*SIMULATE, tmp_path / "data").exit_code == 0


def test_what_a_killed_run_left_hinders_nobody_and_is_cleared(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".{STAGING}.{gone.pid}-0123abcd.part"
    left.mkdir()
    (left / "logs.parquet").write_text("half")
    assert run(*SIMULATE, tmp_path).exit_code == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".") and path.name != RECORD]


def test_the_current_folder_can_be_written_into(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*SIMULATE, ".").exit_code == 0
    assert set(json.loads(Path(RECORD).read_text())["files"]) == set(os.listdir()) - {RECORD}


def test_python_has_the_same_words(tmp_path):
    (tmp_path / "logs.parquet").write_text(PRECIOUS)
    with pytest.raises(UsageError, match="did not write"):
        datasets.write_dataset(datasets.Settings("walk", 2, 8, 10), tmp_path, force=True)


@pytest.mark.parametrize("options", [(), ("--format", "csv"), ("--observed", "factors")])
def test_force_replaces_a_dataset_of_an_earlier_version_which_left_no_record(options, tmp_path):
    assert run(*SIMULATE, tmp_path, *options).exit_code == 0
    (tmp_path / RECORD).unlink()
    assert run(*SIMULATE, tmp_path).exit_code == 2
    result = run(*SIMULATE, tmp_path, "--seed", 7, "--force")
    assert result.exit_code == 0, result.stderr
    assert json.loads((tmp_path / "truth.json").read_text())["seed"] == 7
    assert {path.name for path in tmp_path.iterdir()} == {
        *("logs.parquet", "target.csv", "loggers.csv", "truth.json", RECORD)
    }


def test_the_same_holds_of_a_demonstration_and_of_vectors(tmp_path):
    demo, vectors = ("demo", "--episodes", 40, "--horizon", 20, "-o"), ("simulate", "linear-quadratic", "-o")
    for command, folder in ((demo, tmp_path / "demo"), (vectors, tmp_path / "vectors")):
        assert run(*command, folder).exit_code == 0
        (folder / RECORD).unlink()
        result = run(*command, folder, "--force")
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", PRECIOUS),
        ("report.html", "<p>my own page</p>"),
        ("evaluate.json", "{}"),
        ("target.csv", "state,action,weight\n1,2,0.5\n"),
        ("logs.parquet", PRECIOUS),
        ("truth.json", '{"average": 1.0}'),
        ("truth.json", "[1, 2]"),
        ("truth.json", "not JSON"),
    ],
)
def test_one_file_of_another_kind_and_nothing_without_a_record_is_ours(name, content, tmp_path):
    assert run(*SIMULATE, tmp_path).exit_code == 0
    (tmp_path / RECORD).unlink()
    (tmp_path / name).write_text(content)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*SIMULATE, tmp_path, "--force").exit_code == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_logs_that_grew_since_are_not_replaced(tmp_path):
    assert run(*SIMULATE, tmp_path, "--format", "csv").exit_code == 0
    (tmp_path / RECORD).unlink()
    text = (tmp_path / "logs.csv").read_text()
    (tmp_path / "logs.csv").write_text(text + text.splitlines()[-1] + "\n")
    assert run(*SIMULATE, tmp_path, "--force").exit_code == 2
