"""``mixope plan``, ``mixope returns`` and ``--interval sequence`` on the command line."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.tables import WORDS, two_states
from mixope.logs import write
from uncertainty.logs import chain_log

from .running import run

ARM = (
    "--arm",
    "variant",
    "--control",
    "A",
    "--unit",
    "user",
    "--time",
    "day",
    "--metric",
    "revenue",
    "--state",
    "tired",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("plans")
    _, target, loggers, columns = chain_log(seed=3, episodes=40, horizon=6)
    write(columns, place / "pilot.parquet")
    state, action = (index.ravel() for index in np.indices(target.shape))
    for name, law in (("new", target), ("old", loggers[0])):
        write({"observation": state, "action": action, "prob": law.ravel()}, place / f"{name}.csv")
    pq.write_table(two_states(users=200, days=8), place / "test.parquet")
    return place


def test_a_plan_for_logs(folder):
    asked = ("plan", folder / "pilot.parquet", "--target", folder / "new.csv", "--precision", "0.05")
    found = run(*asked, "--json")
    assert found.exit_code == 0, found.stderr
    plan = json.loads(found.stdout)
    assert plan["needs"][0]["what"] == "episodes"
    watched = json.loads(run(*asked, "--json", "--sequential").stdout)
    assert watched["needs"][0]["need"] > 2 * plan["needs"][0]["need"]
    assert "takes" in run(*asked, "--against", folder / "old.csv").stdout


def test_a_plan_for_an_experiment(folder):
    found = run("plan", folder / "test.parquet", *ARM, "--precision", "0.005", "--full")
    assert found.exit_code == 0, found.stderr
    assert "users" in found.stdout
    assert "extrapolation" in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "--target for logs, or --arm"), (ARM[:4], "also needs --unit")],
)
def test_what_a_plan_lacks_is_said(folder, words, said):
    found = run("plan", folder / "test.parquet", *words, "--precision", "0.1")
    assert found.exit_code == 2
    assert said in found.stderr


def test_returns_and_their_picture(folder):
    targets = ("--target", f"new={folder / 'new.csv'}", "--target", f"old={folder / 'old.csv'}")
    asked = ("returns", folder / "pilot.parquet", *targets, "--estimand", "horizon", "--horizon", "6", "--alpha", "0.2")
    found = run(*asked, "--json", "--picture", folder / "risk.svg")
    assert found.exit_code == 0, found.stderr
    assert [each["target"] for each in json.loads(found.stdout)["targets"]] == ["new", "old"]
    assert (folder / "risk.svg").read_bytes().lstrip().startswith(b"<?xml")
    assert "mean of the worst 0.2" in run(*asked).stdout
    refused = run(*asked, "--picture", folder / "risk.doc")
    assert refused.exit_code == 2
    assert ".png, .svg, .pdf" in refused.stderr


def compared(folder, *words):
    targets = ("--target", f"new={folder / 'new.csv'}", "--target", f"old={folder / 'old.csv'}")
    return run("compare", folder / "pilot.parquet", *targets, *words)


def test_risk_against_return_in_a_comparison(folder):
    asked = ("--horizon", "6", "--risk", "0.2")
    found = compared(folder, *asked, "--json", "--picture", folder / "both.svg", "--html", folder / "both.html")
    assert found.exit_code == 0, found.stderr
    risk = json.loads(found.stdout)["risk"]
    assert [each["target"] for each in risk["targets"]] == ["new", "old"]
    assert risk["alpha"] == 0.2
    assert "worst 0.2" in (folder / "both.svg").read_text()
    assert 'id="risk"' in (folder / "both.html").read_text()
    assert {str(folder / name) for name in ("both.svg", "both.html")} <= set(found.stderr.split())
    assert "mean of the worst 0.2" in compared(folder, *asked, "--full").stdout


def test_a_picture_of_a_comparison_without_risk_has_its_values(folder):
    found = compared(folder, "--picture", folder / "values.svg")
    assert found.exit_code == 0, found.stderr
    assert "long-run average" in (folder / "values.svg").read_text()


def test_risk_that_cannot_be_told_leaves_the_comparison_as_it_is(folder):
    found = compared(folder, "--risk", "0.2", "--picture", folder / "none.svg", "--full")
    assert found.exit_code == 0, found.stderr
    said = " ".join(found.stdout.split())
    assert "no risk against return:" in said
    assert "--horizon" in said
    assert "none.svg was not written" in found.stderr
    assert not (folder / "none.svg").exists()
    wrong = compared(folder, "--risk", "5")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "risk is the share of the worst episodes" in wrong.stderr


def test_a_sequence_on_the_command_line(folder):
    asked = ("evaluate", folder / "pilot.parquet", "--target", folder / "new.csv", "--interval", "sequence", "--json")
    found = run(*asked, "--planned", "40")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["interval"]["method"] == "clustered score, anytime-valid"


def test_a_watched_experiment_on_the_command_line(folder):
    found = run("experiment", folder / "test.parquet", *ARM, "--sequential", "--planned", "1600", "--json")
    assert found.exit_code == 0, found.stderr
    record = json.loads(found.stdout)
    assert record["long_run"]["interval"]["method"].endswith("anytime-valid")
    assert record["long_run"]["interval"]["level"] == 0.95
    assert WORDS["control"] == record["control"]
