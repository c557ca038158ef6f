"""Targets on the command line: rules, softened and centred ones, columns under other names, files that need trust."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from .running import LOG, run, write

RULE = "state,choice\n0,1\n1,0\n"
LAWS = "observation,action,prob\n0,0,{0}\n0,1,{1}\n1,0,{1}\n1,1,{0}\n"
MODULE = """
def one(state):
    return 1 if state == 0 else 0
"""


def value(folder: Path, *words: str) -> float:
    found = run("evaluate", str(write(folder / "log.csv", LOG)), "--estimator", "emp", "--json", *words)
    assert found.exit_code == 0, found.output
    return float(json.loads(found.stdout)["value"])


def laws(folder: Path, chance: float) -> str:
    return str(write(folder / "laws.csv", LAWS.format(1 - chance, chance)))


def test_a_rule_in_every_form_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = value(tmp_path, "--target", laws(tmp_path, 1.0))
    rule = str(write(tmp_path / "rule.csv", RULE))
    write(tmp_path / "chooser_of_one.py", MODULE)
    (tmp_path / "rule.pkl").write_bytes(pickle.dumps({0: 1, 1: 0}))
    assert value(tmp_path, "--target", rule, "--target-column", "action=choice") == expected
    assert value(tmp_path, "--target", "chooser_of_one:one") == expected
    assert value(tmp_path, "--target", str(tmp_path / "rule.pkl"), "--trust") == expected


def test_epsilon_softens_over_the_actions_named(tmp_path: Path) -> None:
    expected = value(tmp_path, "--target", laws(tmp_path, 0.95))
    rule = ["--target", str(write(tmp_path / "rule.csv", RULE)), "--target-column", "action=choice"]
    assert value(tmp_path, *rule, "--target-epsilon", "0.1", "--target-actions", "0,1") == pytest.approx(expected)


REFUSED = {
    "no trust": (("--target", "rule.pkl"), 3, "--trust if you know who wrote the file"),
    "actions unknown": (("--target", "rule.csv", "--target-epsilon", "0.1"), 2, "--target-actions ACTION,ACTION"),
    "scale of a table": (("--target", "rule.csv", "--target-scale", "0.1"), 2, "scale is for policies that choose"),
    "columns of a module": (
        ("--target", "rule.pkl", "--trust", "--target-column", "prob=p"),
        2,
        "columns is for tables",
    ),
    "column twice": (
        ("--target", "rule.csv", "--target-column", "prob=p", "--target-column", "prob=q"),
        2,
        "--target-column prob is given twice",
    ),
    "no such column": (("--target", "column:target_prob"), 3, "target_prob"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_told_in_the_words_of_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "rule.csv", "observation,action\n0,1\n1,0\n")
    (tmp_path / "rule.pkl").write_bytes(pickle.dumps({0: 1, 1: 0}))
    words, code, said = REFUSED[name]
    found = run("evaluate", str(write(tmp_path / "log.csv", LOG)), "--estimator", "emp", *words)
    assert found.exit_code == code, found.output
    assert said in " ".join(found.output.split())


def test_a_column_of_the_log_is_a_target(tmp_path: Path) -> None:
    head, *rows = LOG.splitlines()
    names = head.split(",")
    state, action = (np.array([row.split(",")[names.index(n)] for row in rows], int) for n in ("observation", "action"))
    chances = np.where(state != action, 0.7, 0.3)
    text = "\n".join([f"{head},target_prob", *(f"{row},{p}" for row, p in zip(rows, chances, strict=True))]) + "\n"
    log = str(write(tmp_path / "with.csv", text))
    found = run("evaluate", log, "--estimator", "emp", "--json", "--target", "column:target_prob")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["value"] == pytest.approx(value(tmp_path, "--target", laws(tmp_path, 0.7)))


def test_a_target_may_call_its_columns_as_the_log_does(tmp_path):
    log, target, proper = (tmp_path / f"{name}.csv" for name in ("visits", "target", "proper"))
    rows = [f"{u},{t},{(u + t) % 3},{(u * t) % 2},{(u + 2 * t) % 5}" for u in range(40) for t in range(6)]
    log.write_text("\n".join(["visitor,n,page,offer,gain", *rows]))
    listed = [f"{page},{offer},{0.25 + 0.5 * offer}" for page in range(3) for offer in range(2)]
    target.write_text("\n".join(["page,offer,prob", *listed]))
    proper.write_text("\n".join(["observation,action,prob", *listed]))
    named = ("episode_id=visitor", "step=n", "observation=page", "action=offer", "reward=gain")
    said = [word for name in named for word in ("--column", name)]
    for command in (("evaluate",), ("compare",), ("inspect",), ("returns", "--estimand", "horizon", "--horizon", "3")):
        answers = []
        for path in (target, proper):
            found = run(*command, log, *said, "--ends", "truncated", "--target", f"{path}", "--json")
            assert found.exit_code == 0, found.stderr
            answers.append(found.stdout.replace("proper", "target"))
        assert len(answers[0]) == len(answers[1])
    refused = run("evaluate", log, *said, "--ends", "truncated", "--target", log, "--json")
    assert refused.exit_code == 3
