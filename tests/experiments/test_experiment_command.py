"""mixope experiment on a command line."""

from __future__ import annotations

import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from tests.cli.running import json_of, run

from .tables import two_states

OPTIONS = ("--arm", "variant", "--control", "A", "--unit", "user", "--time", "day", "--metric", "revenue")


@pytest.fixture(scope="module")
def test_table(tmp_path_factory):
    path = tmp_path_factory.mktemp("trial") / "test.parquet"
    pq.write_table(two_states(users=200, days=6, effect=0.05), path)
    return path


def test_one_object_with_the_naive_and_the_long_run_difference(test_table):
    found = json_of("experiment", test_table, *OPTIONS, "--state", "tired")
    assert set(found["long_run"]) >= {"difference", "interval", "verdict"}
    assert set(found["naive"]["interval"]) >= {"low", "high", "level"}
    assert found["long_run"]["interval"]["low"] < found["long_run"]["difference"] < 0


def test_a_csv_gives_the_same(test_table, tmp_path):
    pv.write_csv(pq.read_table(test_table), tmp_path / "test.csv")
    first = json_of("experiment", test_table, *OPTIONS, "--state", "tired")
    again = json_of("experiment", tmp_path / "test.csv", *OPTIONS, "--state", "tired")
    assert again["long_run"]["difference"] == pytest.approx(first["long_run"]["difference"], rel=1e-9)


def test_the_terminal_says_the_decision_first(test_table):
    result = run("experiment", test_table, *OPTIONS, "--state", "tired", "--full")
    assert result.exit_code == 0, result.stderr
    first = next(line for line in result.stdout.splitlines() if line.strip())
    assert first.startswith("B earns less revenue than A in the long run: -0.1")
    assert "seen" in result.stdout


def test_a_missing_column_exits_with_3_and_names_those_there_are(test_table):
    result = run("experiment", test_table, *OPTIONS, "--state", "mood")
    assert result.exit_code == 3
    assert "no column 'mood'" in result.stderr
    assert "tired" in result.stderr


def test_the_same_command_gives_the_same_bytes(test_table):
    first, again = (run("experiment", test_table, *OPTIONS, "--state", "tired", "--json").stdout for _ in range(2))
    assert first == again


def test_units_that_stay_away_are_what_the_command_says(test_table, tmp_path):
    """Half of B's users are gone after three of six days."""
    table = pq.read_table(test_table)
    gone = [u % 4 == 1 and d > 2 for u, d in zip(table["user"].to_pylist(), table["day"].to_pylist(), strict=True)]
    sparse = tmp_path / "sparse.parquet"
    pq.write_table(table.filter([not away for away in gone]), sparse)
    asked = run("experiment", sparse, *OPTIONS, "--state", "tired", "--strict")
    assert asked.exit_code == 4
    assert "say --absent zero" in " ".join(asked.stdout.split())
    found = json_of("experiment", sparse, *OPTIONS, "--state", "tired", "--absent", "zero", "--less", "revenue")
    assert (found["rows"], found["arms"][0]["decision"]) == (len(table), "better")


def test_the_same_table_twice_is_refused(test_table, tmp_path):
    csv = tmp_path / "test.csv"
    pv.write_csv(pq.read_table(test_table), csv)
    copy = tmp_path / "copy.csv"
    copy.write_bytes(csv.read_bytes())
    for twice, words in (
        ((csv, csv), "The same file is given twice"),
        ((csv, copy), "Two inputs have the same content"),
    ):
        result = run("experiment", *twice, *OPTIONS, "--state", "tired")
        assert result.exit_code == 3
        assert words in result.stderr


def test_a_value_that_is_missing_is_shown_with_its_unit_and_time(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("user,day,variant,tired,revenue\na,2026-01-01,A,0,1\nb,2026-01-01,B,,1\nb,2026-01-02,B,0,much\n")
    state = run("experiment", path, *OPTIONS, "--state", "tired")
    assert state.exit_code == 3
    assert "'much' at user 'b', day '2026-01-02'" in " ".join(state.stderr.split())
    path.write_text(path.read_text().replace("much", "2"))
    state = run("experiment", path, *OPTIONS, "--state", "tired")
    assert "nothing at user 'b', day '2026-01-01'" in " ".join(state.stderr.split())
