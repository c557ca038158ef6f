"""Run the command line in this process, and small logs to run it on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mixope.cli import app

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
WALK = (str(REFERENCE / "walk.csv"), "--target", str(REFERENCE / "walk-target.csv"))
GRIDWORLD = (str(REFERENCE / "gridworld.csv"), "--target", str(REFERENCE / "gridworld-target.csv"))
EXPECTED = json.loads((REFERENCE / "expected.json").read_text())


def run(*arguments: object) -> Any:
    """The result of a command; an exception that is not an exit is a failure of ours."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def json_of(*arguments: object) -> Any:
    """The one object on stdout."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def check_refusal(arguments: Sequence[object], stdout: str, code: int) -> None:
    """Nothing on stdout; with ``--json`` one object that holds the error."""
    if "--json" in arguments:
        assert json.loads(stdout)["error"]["exit_code"] == code
    else:
        assert stdout == ""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


LOG = """policy_id,episode_id,step,observation,action,reward,next_observation
a,0,0,0,0,1.0,1
a,0,1,1,1,0.0,0
a,0,2,0,1,2.0,0
b,1,0,0,0,1.0,1
b,1,1,1,0,0.5,1
b,1,2,1,1,0.0,0
"""
POLICY = """observation,action,prob
0,0,0.5
0,1,0.5
1,0,0.25
1,1,0.75
"""
