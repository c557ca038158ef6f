"""Completion: a shell asks the program itself for the names that can follow."""

import os
import subprocess
import sys

import pytest

from mixope.cli.options import EstimandName, FormatName
from mixope.engines import CLUSTERS, ENGINES
from mixope.estimators import REGISTRY
from mixope.logs.sources.endings import FORMATS
from mixope.uncertainty import INTERVALS
from mixope.worlds import BUILDERS

from .running import run


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell is offered after a line; its last word may be cut."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": line}
    asked = {**os.environ, **words, "_MIXOPE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run([sys.executable, "-m", "mixope"], env=asked, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("mixope evaluate --estimator ", ["auto", *REGISTRY]),
        ("mixope compare --estimator ", ["auto", *REGISTRY, "all"]),
        ("mixope evaluate --engine ", [*ENGINES, *(f"{kind}://" for kind in CLUSTERS)]),
        ("mixope evaluate --estimand ", list(EstimandName)),
        ("mixope evaluate --interval ", list(INTERVALS)),
        ("mixope inspect --format ", list(FORMATS)),
        ("mixope backtest --estimator bch-", ["bch-pooled", "bch-kl-pooled"]),
        ("mixope simulate frozen", [name for name in BUILDERS if name.startswith("frozen")]),
        ("mixope est", ["estimators"]),
    ],
)
def test_names_are_completed(line, names):
    assert completed(line) == names


def test_a_shell_that_shows_help_is_told_when_to_use_an_estimator():
    offered = completed("mixope evaluate --estimator known-m", "fish")
    assert offered == [f"known-mixture\t{REGISTRY['known-mixture'].when}"]


def test_completion_can_be_installed():
    assert "--install-completion" in run("--help").stdout
    asked = {**os.environ, "_MIXOPE_COMPLETE": "source_bash"}
    done = subprocess.run([sys.executable, "-m", "mixope"], env=asked, capture_output=True, text=True, check=True)
    assert "_MIXOPE_COMPLETE=complete_bash" in done.stdout


def test_the_formats_of_the_command_line_are_those_of_the_readers():
    assert list(FormatName) == list(FORMATS)
