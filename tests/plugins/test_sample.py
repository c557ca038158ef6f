"""A package of others, built and installed: all that it adds is found by its name."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "episode_id  step  observation  action  reward"
SAMPLE = Path(__file__).parent / "sample"
TARGET = "observation,action,prob\n0,0,0.5\n0,1,0.5\n1,0,0.5\n1,1,0.5\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package in it, as pip puts it there."""
    folder = tmp_path_factory.mktemp("sample")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site"), str(SAMPLE)],
        check=True,
        env={**os.environ, "TMPDIR": str(folder)},
        timeout=120,
    )
    return folder / "site"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Rows in columns of fixed width, and a policy."""
    folder = tmp_path_factory.mktemp("logs")
    draw = random.Random(0).randrange
    rows = [f"{i // 10:<12}{i % 10:<6}{draw(2):<13}{draw(2):<8}{i % 3:<6}" for i in range(400)]
    (folder / "rows.fwf").write_text("\n".join([HEAD, *rows]) + "\n")
    (folder / "rows.csv").write_text("\n".join(",".join(row.split()) for row in [HEAD, *rows]) + "\n")
    (folder / "target.csv").write_text(TARGET)
    return folder


def mixope(installed, *words, code=0):
    """What the command prints, and what it says beside."""
    done = subprocess.run(
        [sys.executable, "-m", "mixope", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])},
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_its_estimator_is_listed_and_answers_on_files_of_its_format(installed, logs):
    listed = json.loads(mixope(installed, "estimators", "--json")[0])["estimators"]
    assert [each["name"] for each in listed][-2:] == ["logged-mean", "plain-mean"]
    words = ("evaluate", logs / "rows.fwf", "--target", logs / "target.csv", "--ends", "truncated", "--json")
    found = [json.loads(mixope(installed, *words, "--estimator", name)[0]) for name in ("plain-mean", "logged-mean")]
    assert found[0]["estimator"] == "plain-mean"
    assert [found[0][key] for key in ("value", "interval")] == [found[1][key] for key in ("value", "interval")]
    assert found[0]["value"] == pytest.approx(sum(i % 3 for i in range(400)) / 400)


def test_its_format_can_be_named(installed, logs):
    (logs / "rows.txt").write_text((logs / "rows.fwf").read_text())
    code = f"import mixope; print(mixope.read({str(logs / 'rows.txt')!r}, format='fixed-width').total_rows())"
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "400\n"


def test_its_policy_is_evaluated_as_the_table_that_it_stands_for(installed, logs):
    (logs / "always.csv").write_text("observation,action,prob\n0,0,0.0\n0,1,1.0\n1,0,0.0\n1,1,1.0\n")
    words = ("evaluate", logs / "rows.fwf", "--ends", "truncated", "--json", "--target")
    word, table = (json.loads(mixope(installed, *words, each)[0]) for each in ("always:1", logs / "always.csv"))
    assert word["value"] == table["value"]


def test_its_check_asks_for_what_it_needs_and_judges(installed, logs):
    words = ("evaluate", logs / "rows.fwf", "--target", logs / "target.csv", "--ends", "truncated", "--json")
    ours = json.loads(mixope("", *words[:1], logs / "rows.csv", *words[2:])[0])
    *others, last = json.loads(mixope(installed, *words)[0])["diagnostics"]
    assert [each["name"] for each in others] == [each["name"] for each in ours["diagnostics"]]
    rows = [int(line.split()[3]) for line in (logs / "rows.fwf").read_text().splitlines()[1:]]
    share = max(rows.count(0), rows.count(1)) / len(rows)
    assert last["name"] == "one action"
    assert last["value"] == pytest.approx(share)
    assert last["status"] == "pass"


def test_its_command_stands_in_the_help_and_runs(installed, logs):
    assert "  count" in mixope(installed, "--help")[0]
    assert mixope(installed, "count", logs / "rows.fwf")[0] == "400 rows\n"


def test_what_cannot_be_used_is_said_and_stops_nothing(installed, logs):
    _, beside = mixope(installed, "inspect", logs / "rows.fwf")
    said = " ".join(beside.split())
    assert "mixope-sample 1.0 adds 'csv' to the formats, and that is the name of one of ours" in said
    assert "'broken' of the package mixope-sample 1.0 cannot be loaded (mixope_sample.absent:FORMAT)" in said


def test_a_check_that_cannot_be_used_is_said_and_stops_nothing(installed, logs):
    words = ("evaluate", logs / "rows.fwf", "--target", logs / "target.csv", "--ends", "truncated")
    said = " ".join(mixope(installed, *words)[1].split())
    assert "mixope-sample 1.0 adds 'interval' to the checks, and that is the name of one of ours" in said
    assert "'broken' of the package mixope-sample 1.0 cannot be loaded (mixope_sample.absent:CHECK)" in said
