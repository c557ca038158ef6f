"""``--json``: a failure is one object on stdout, the words for people stay on stderr, and so do the exit codes."""

import json

import pytest

from .running import LOG, POLICY, WALK, run, write

CASES = {
    "an unknown name": (("evaluate", *WALK, "--estimator", "nonsense"), "UnknownName", 2),
    "a file that is not there": (("inspect", "nowhere.csv"), "DataError", 3),
    "an option that does not exist": (("evaluate", *WALK, "--nonsense"), "UsageError", 2),
    "an option that is missing": (("evaluate", WALK[0]), "UsageError", 2),
    "a command that does not exist": (("evaluat", *WALK), "UsageError", 2),
    "a value that is out of range": (("evaluate", *WALK, "--level", "95"), "UsageError", 2),
}


@pytest.mark.parametrize("case", CASES)
def test_a_failure_is_one_object(case):
    arguments, kind, code = CASES[case]
    result = run(*arguments, "--json")
    error = json.loads(result.stdout)["error"]
    assert list(error) == ["type", "message", "hint", "exit_code"]
    assert (error["type"], error["exit_code"], result.exit_code) == (kind, code, code)
    assert error["message"].splitlines()[0] in " ".join(result.stderr.split())
    plain = run(*arguments)
    assert (plain.stdout, plain.exit_code, plain.stderr) == ("", code, result.stderr)


def test_what_to_do_next_stands_apart_in_the_words_of_the_command_line(tmp_path):
    result = run("inspect", write(tmp_path / "log.xyz", LOG), "--json")
    error = json.loads(result.stdout)["error"]
    assert error["hint"] == "--format FORMAT"
    assert "--format" not in error["message"]
    assert str(tmp_path / "log.xyz") in error["message"]


def test_inspect_shows_what_it_found_and_the_error_in_one_object(tmp_path):
    log = write(tmp_path / "log.csv", LOG.replace("2.0", "inf"))
    result = run("inspect", log, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == found["error"]["exit_code"] == 3
    assert found["usable"] is False
    assert found["error"]["type"] == "DataError"
    assert result.stderr.startswith("error: ")


def test_a_verdict_is_no_error(tmp_path):
    log, target = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", POLICY)
    result = run("evaluate", log, "--target", target, "--strict", "--json")
    assert "error" not in json.loads(result.stdout)


def test_an_interruption_is_told_to_programs_too(monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mixope.session.session.count", interrupted)
    result = run("evaluate", *WALK, "--json")
    assert json.loads(result.stdout)["error"]["exit_code"] == result.exit_code == 130
