"""The application as a whole: help, version, start-up, interruption."""

import re
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from mixope.cli import demo
from mixope.version import __version__

from .running import WALK, json_of, run

COMMANDS = ("evaluate", "compare", "backtest", "inspect", "simulate", "estimators", "demo")
LONG = ("evaluate", "compare", "backtest", "inspect")


def test_version():
    assert run("--version").stdout == f"mixope {__version__}\n"


def test_help_names_every_command():
    page = run("--help").stdout
    assert all(f"  {name} " in page for name in COMMANDS)
    assert "..." not in page.partition("Commands:")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text(command):
    page = run(command, "--help-all" if command in LONG else "--help").stdout
    assert page.startswith("Usage: ")
    for option in re.findall(r"^  (--\S+.*)$", page, re.MULTILINE):
        assert re.search(r"\s{2,}\S|^--\S+( \S+)?$", option), option


def test_no_command_shows_the_help():
    assert "Commands:" in run().output


def test_the_start_is_light():
    code = "import sys, mixope.cli; print([m for m in ('scipy', 'duckdb', 'pyarrow', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_module_runs_as_a_program():
    command = [sys.executable, "-m", "mixope", "evaluate", *WALK, "--estimator", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown estimator 'nonsense'")


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_an_interruption_is_one_line_and_130(failure, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise failure

    import_module("mixope.inspection")  # it keeps the function that it finds when it is first imported
    monkeypatch.setattr("mixope.session.session.count", interrupted)
    result = run("evaluate", *WALK)
    assert result.exit_code == 130
    assert result.stderr == "interrupted: stopped before the end; no file is left half-written\n"


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    import_module("mixope.inspection")
    monkeypatch.setattr("mixope.session.session.count", broken)
    with pytest.raises(ZeroDivisionError):
        run("evaluate", *WALK)


def test_estimators_lists_the_registry():
    from mixope.estimators import REGISTRY

    page = run("estimators").stdout
    assert all(f" {name} " in page for name in REGISTRY)
    assert [entry["name"] for entry in json_of("estimators")["estimators"]] == list(REGISTRY)


def test_the_demo_tells_the_whole_story_and_opens_with_the_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "shown"
    result = run("demo", "--output", folder, "--episodes", "24", "--horizon", "40", "--full")
    assert result.exit_code == 0
    page = result.stdout
    for words in ("verdict", "interval", "the target really earns", "holds it", "What happened", "efficiency bound"):
        assert words in page
    assert all(name in page for name in demo.RIVALS)
    prose = [line for line in page.splitlines() if not line.startswith("$ ") and str(tmp_path) not in line]
    assert max(map(len, prose)) <= 80
    assert {path.name for path in folder.iterdir()} >= {*demo.RESULTS, "logs.parquet", "truth.json"}
    opening = page.split("── 1.")[0]
    assert len(opening.splitlines()) <= 16
    for words in ("What would it earn", "the target", "no conclusion", "the verdict", "the truth", "report.html"):
        assert words in opening


def test_every_engine_can_be_chosen_and_is_named_in_the_help():
    from engine_list import IN_PROCESS
    from mixope.engines import ENGINES

    page = " ".join(run("evaluate", "--help-all").stdout.split())
    for name in ENGINES:
        assert name in page.partition("--engine")[2].partition("--memory-limit")[0]
    for name in IN_PROCESS:
        assert json_of("evaluate", *WALK, "--engine", name)["provenance"]["engine"] == name


def test_an_unknown_engine_is_told_before_anything_is_read():
    result = run("evaluate", "nowhere.csv", "--target", "nowhere.csv", "--engine", "emory")
    assert result.exit_code == 2
    assert "Did you mean 'memory'?" in result.stderr


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_gpu_that_is_not_there_is_told_before_anything_is_read(command, monkeypatch):
    none = SimpleNamespace(devices=lambda: [SimpleNamespace(platform="cpu")])
    monkeypatch.setitem(sys.modules, "jax", none)
    result = run(command, "nowhere.csv", "--target", "nowhere.csv", "--device", "gpu")
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert "JAX sees none here" in words
    assert "--device cpu" in words


def test_the_device_is_said_to_the_library():
    assert json_of("evaluate", *WALK, "--device", "cpu")["provenance"]["trained_on"] is None
