"""No cell of a CSV file that the tool writes is a formula to a spreadsheet, and what it writes it reads unharmed."""

import csv

import duckdb
import pytest

import mixope
from mixope.base.cells import bare, marked
from mixope.logs import write
from mixope.paper.reproduction import read_lines, write_lines

FORMULAS = ("=1+1", "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+x")
HARMLESS = ("a", "a=b", "'a", "", "-", "北京")
NUMBERS = ("-1", "+2.5", "-1e-3", "-.5", "-inf")


def columns(labels):
    n = len(labels)
    ids = {name: [0, 1] * (n // 2) + [0] * (n % 2) for name in ("observation", "action", "next_observation")}
    return {"policy_id": list(labels), "episode_id": list(range(n)), "step": [0] * n, "reward": [-1.5] * n, **ids}


@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
def test_labels_of_logs(name, tmp_path):
    write(columns(FORMULAS), tmp_path / name)
    with (tmp_path / name).open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file, delimiter="\t" if name.endswith("tsv") else ","))
    labels = [line[0] for line in lines[1:]]
    assert all(label.startswith("'") for label in labels)
    assert {line[3] for line in lines[1:]} == {"-1.5"}
    logs = mixope.read(tmp_path / name)
    assert logs.table(["policy_id"]).column("policy_id").to_pylist() == list(FORMULAS)
    with duckdb.connect() as connection:
        seen = connection.sql(f"SELECT policy_id FROM {logs.view(connection)}").fetchall()
    assert sorted(label for (label,) in seen) == sorted(FORMULAS)


def test_ids_of_policies(tmp_path):
    table = {"observation": ["=1+1", "=1+1"], "action": ["@x", "-y"], "prob": [0.5, 0.5]}
    write(table, tmp_path / "target.csv")
    assert "'=1+1" in (tmp_path / "target.csv").read_text()
    assert sorted(mixope.read_policy(tmp_path / "target.csv").actions) == ["-y", "@x"]


def test_results_of_experiments(tmp_path):
    rows = [{"name": text, "value": -0.5} for text in (*FORMULAS, "a") if "\r" not in text]
    write_lines(rows, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        assert all(line["name"].startswith("'") for line in list(csv.DictReader(file))[:-1])
    assert read_lines(tmp_path / "x.csv") == rows


@pytest.mark.parametrize("text", [*FORMULAS, *HARMLESS, *NUMBERS])
def test_marking_loses_nothing_and_leaves_numbers_alone(text):
    assert bare(marked(text)) == text
    assert (marked(text) != text) == (text in FORMULAS or text == "-")
