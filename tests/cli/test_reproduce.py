"""``mixope reproduce``: names, folders, what it says."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mixope.cli.app import app
from mixope.paper import experiment
from mixope.paper.mean_squared_errors import ErrorSettings, Sweep


def run(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path):
    result = run("figur2", "-o", tmp_path)
    assert result.exit_code == 2
    assert "Did you mean 'figure2'?" in result.stderr
    assert "all" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_way_is_said(tmp_path, small):
    (tmp_path / "taken").write_text("")
    result = run("figure4", "-o", tmp_path / "taken")
    assert result.exit_code == 2
    assert "--output" in result.stderr


@pytest.fixture
def small(monkeypatch):
    """What the command takes for quick and full is tiny here."""
    tiny = ErrorSettings(1, (Sweep("singlepath", (8,), (10,), 8, 10, 3, 2),))
    given = replace(experiment.get("figure4"), sizes=dict.fromkeys(("quick", "full"), tiny))
    monkeypatch.setattr(experiment, "get", lambda _: given)


def test_it_says_the_cost_first_and_the_files_last_and_resumes(tmp_path, small):
    first = run("figure4", "-o", tmp_path, "--jobs", "1", "--full")
    assert first.exit_code == 0, first.output
    assert "full size: 5 repetitions; about" in first.stderr
    assert str(tmp_path / "figure4.html") in first.stdout
    again = run("figure4", "-o", tmp_path, "--jobs", "1", "--full")
    assert "5 of them done before; nothing to run" in again.stderr
