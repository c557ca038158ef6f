"""Every command prints sixteen lines at most unless more is asked for, and nothing is lost with ``--full``.

``mixope estimators`` and ``--help`` are lists, and show all of them.
"""

import pytest

from .running import GRIDWORLD, WALK, run

MOST = 16
COMMANDS = {
    "evaluate": ("evaluate", *GRIDWORLD),
    "evaluate-backtest": ("evaluate", *GRIDWORLD, "--backtest"),
    "evaluate-refused": ("evaluate", *GRIDWORLD, "--estimator", "is"),
    "evaluate-confounding": ("evaluate", *WALK, "--confounding", "1.5"),
    "compare": ("compare", *GRIDWORLD, "--estimator", "all"),
    "inspect": ("inspect", *GRIDWORLD),
    "backtest": ("backtest", GRIDWORLD[0]),
    "plan": ("plan", *WALK, "--precision", "0.05"),
    "returns": ("returns", *WALK, "--estimand", "horizon", "--horizon", "5"),
}


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_sixteen_lines_at_most(name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    done = run(*COMMANDS[name])
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= MOST, done.stdout
    assert max(map(len, lines)) <= int(columns)
    assert "--full" in lines[-1]


@pytest.mark.parametrize("name", ["evaluate", "compare", "inspect", "backtest", "plan", "returns"])
def test_full_shows_more(name):
    first, full = run(*COMMANDS[name]).stdout, run(*COMMANDS[name], "--full").stdout
    assert len(full) > len(first)
    assert "More: " not in full


def test_commands_that_make_logs_are_brief(tmp_path):
    made = run("simulate", "engagement", "--users", "200", "--days", "4", "-o", tmp_path / "test")
    assert made.exit_code == 0, made.stderr
    walk = run("simulate", "walk", "--episodes", "9", "-o", tmp_path / "walk")
    told = run("demo", "-o", tmp_path / "demo", "--episodes", "8", "--horizon", "20")
    for done in (made, walk, told):
        assert done.exit_code == 0, done.stderr
        assert len(done.stdout.splitlines()) <= MOST, done.stdout


def test_an_experiment_is_one_screen(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("simulate", "engagement", "--setting", "wear-out", "--users", "200", "--days", "6", "-o", tmp_path / "test")
    columns = ("--arm", "variant", "--control", "A", "--unit", "user", "--time", "day", "--metric", "revenue")
    states = ("--state", "level", "--state", "fatigue", "--state", "plan")
    done = run("experiment", tmp_path / "test" / "test.parquet", *columns, *states)
    assert done.exit_code == 0, done.stderr
    assert len(done.stdout.splitlines()) <= MOST, done.stdout
    assert "during the test" in done.stdout
    assert "in the long run" in done.stdout
