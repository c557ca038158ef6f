"""Whatever is wrong with logs or a policy: exit 3, a message of its own, no traceback, nothing on stdout."""

import numpy as np
import pytest

from .running import LOG, POLICY, check_refusal, run, write

HEAD, _, BODY = LOG.partition("\n")


def edit(old: str, new: str) -> str:
    assert old in LOG
    return LOG.replace(old, new)


def with_column(name: str, values: list[object]) -> str:
    return "\n".join([f"{HEAD},{name}", *(f"{r},{v}" for r, v in zip(BODY.splitlines(), values, strict=True))])


ROW = "a,0,1,1,1,0.0,0"
LOGS = {
    "empty file": ("", "file is empty"),
    "header only": (HEAD + "\n", "header and no rows"),
    "no observation": (edit("observation", "place"), "no column for the observation"),
    "no action": (edit(",action,", ",act_,"), "no column for the action"),
    "no reward": (edit(",reward,", ",rewrd,"), "did you mean 'rewrd'"),
    "two states": (with_column("state", [1] * 6).replace(",observation", ",s", 1), "Two columns could be"),
    "lone done": (with_column("done", [0, 0, 1, 0, 0, 1]), "ambiguous"),
    "reward in words": (edit(ROW, "a,0,1,1,1,much,0"), "much"),
    "reward nan": (edit(ROW, "a,0,1,1,1,nan,0"), "reward is not a finite number"),
    "reward infinite": (edit(ROW, "a,0,1,1,1,inf,0"), "inf"),
    "reward missing": (edit(ROW, "a,0,1,1,1,,0"), "column 'reward'"),
    "observation missing": (edit(ROW, "a,0,1,,1,0.0,0"), "column 'observation'"),
    "action missing": (edit(ROW, "a,0,1,1,,0.0,0"), "column 'action'"),
    "step twice": (edit(ROW, "a,0,0,1,1,0.0,0"), "repeat a step"),
    "rows after the end": (with_column("terminated", [1, 0, 0, 0, 0, 0]), "after the end of their episode"),
    "ragged row": (edit(ROW, "a,0,1,1,1,0.0,0,7,7"), "cannot be read"),
    "propensity zero": (with_column("action_prob", [0.5, 0, 0.5, 0.5, 0.5, 0.5]), "outside (0, 1]"),
    "propensity above one": (with_column("action_prob", [0.5, 1.5, 0.5, 0.5, 0.5, 0.5]), "1.5"),
    "logarithms as propensities": (with_column("pscore", [-0.5] * 6), "--column action_logp=pscore"),
    "log-probability above zero": (with_column("logp", [0.5] * 6), "log-probability of a discrete action is above 0"),
    "flag in words": (with_column("terminated", ["no"] * 5 + ["perhaps"]), "terminated"),
    "vector states": (edit(ROW, "a,0,1,1.5,1,0.0,0.25"), "store them as integers"),
    "policy file as log": (POLICY, "no column for the reward"),
}
POLICIES = {
    "empty file": ("", "t.csv"),
    "header only": ("observation,action,prob\n", "header and no rows"),
    "no prob": ("observation,action,p_new\n0,0,1\n", "no column for the prob"),
    "logarithms": ("observation,action,logp\n0,0,0\n", "write its exponential"),
    "sum below one": (POLICY.replace("0.75", "0.5"), "sum"),
    "negative": (POLICY.replace("0.25", "-0.25").replace("0.75", "1.25"), "-0.25"),
    "nan": (POLICY.replace("0.25", "nan"), "nan"),
    "words": (POLICY.replace("0.25", "often"), "often"),
    "pair twice": (POLICY + "1,1,0.75\n", "twice"),
    "unknown state": ("observation,action,prob\n0,0,1\n0,1,0\n", "does not know 1 of the states"),
    "unknown action": ("observation,action,prob\n0,0,1\n1,0,1\n", "--unknown-actions zero"),
    "several policies": (
        "policy_id," + POLICY.replace("\n", "\nx,", 4).replace("x,1,1", "y,1,1"),
        "give it with --loggers",
    ),
    "states in words": (POLICY.replace("\n0,", "\nzero,").replace("\n1,", "\none,"), "state"),
}


def refused(arguments, words, folder):
    before = sorted(folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    check_refusal(arguments, result.stdout, 3)
    assert result.stderr.splitlines()[-1] != ""
    assert words in result.stderr
    assert result.stderr.count("error: ") == 1
    assert "Traceback" not in result.stderr
    assert sorted(folder.iterdir()) == before
    return result.stderr


@pytest.mark.parametrize("name", LOGS)
def test_a_malformed_log(name, tmp_path):
    text, words = LOGS[name]
    log, target = write(tmp_path / "log.csv", text), write(tmp_path / "t.csv", POLICY)
    refused(("evaluate", log, "--target", target, "--json"), words, tmp_path)


@pytest.mark.parametrize(
    ("row", "words"), [("a,0,,1,1,0.0,0", "column 'step'"), ("a,0,-1,1,1,0.0,0", "A step is negative")]
)
def test_a_malformed_step_is_found_by_inspect(row, words, tmp_path):
    result = run("inspect", write(tmp_path / "log.csv", edit(ROW, row)))
    assert result.exit_code == 3
    assert words in result.stderr


@pytest.mark.parametrize("name", POLICIES)
def test_a_malformed_policy(name, tmp_path):
    text, words = POLICIES[name]
    log, target = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", text)
    refused(("evaluate", log, "--target", target, "--json"), words, tmp_path)


@pytest.mark.parametrize(
    ("log", "words"),
    [("logg.csv", "did you mean"), ("nowhere/log.csv", "does not exist"), ("*.parquet", "No such file")],
)
def test_a_log_that_is_not_there(log, words, tmp_path):
    write(tmp_path / "log.csv", LOG)
    target = write(tmp_path / "t.csv", POLICY)
    refused(("evaluate", tmp_path / log, "--target", target), words, tmp_path)


def test_a_policy_that_is_not_there(tmp_path):
    write(tmp_path / "t.csv", POLICY)
    arguments = ("evaluate", write(tmp_path / "log.csv", LOG), "--target", tmp_path / "tt.csv")
    refused(arguments, "did you mean", tmp_path)


def test_a_broken_parquet_file(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"nonsense" * 9)
    arguments = ("compare", tmp_path / "log.parquet", "--target", write(tmp_path / "t.csv", POLICY))
    refused(arguments, "cannot be read", tmp_path)


def test_a_pickled_policy_needs_trust(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[0.5, 0.5], [0.25, 0.75]], dtype=object), allow_pickle=True)
    arguments = ("evaluate", write(tmp_path / "log.csv", LOG), "--target", tmp_path / "t.npy")
    refused(arguments, "--trust", tmp_path)
    assert run(*arguments, "--trust").exit_code == 0


def test_logs_that_disagree(tmp_path):
    one = write(tmp_path / "one.csv", LOG)
    two = write(tmp_path / "two.csv", LOG.replace("observation", "observation.x"))
    refused(("inspect", one, two), "disagree on the observation", tmp_path)
