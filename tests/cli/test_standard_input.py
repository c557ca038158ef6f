"""``-`` is standard input, ``--format`` says what comes or what a file is whose name does not say it."""

import io
import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import mixope
from mixope.base.errors import DataError
from mixope.cli import app

from .running import LOG, POLICY, REFERENCE, json_of, run, write

WALK, TARGET = REFERENCE / "walk.csv", REFERENCE / "walk-target.csv"


def piped(content: bytes, *arguments: object):
    """A command with something on its standard input."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=content)


def without_places(result: dict) -> dict:
    """What is found, without what the inputs are called."""
    return {key: value for key, value in result.items() if key not in ("provenance", "target", "notes")}


def test_a_log_from_standard_input_gives_the_same_result_as_the_file():
    result = piped(WALK.read_bytes(), "evaluate", "-", "--format", "csv", "--target", TARGET, "--json")
    assert result.exit_code == 0, result.stderr
    found, expected = json.loads(result.stdout), json_of("evaluate", WALK, "--target", TARGET)
    assert without_places(found) == without_places(expected)


def test_a_pipe_of_a_shell_is_called_standard_input():
    command = [sys.executable, "-m", "mixope", "inspect", "-", "--format", "csv", "--json"]
    done = subprocess.run(command, input=WALK.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "standard input"


def test_a_label_names_the_logger_of_standard_input():
    text = "\n".join(line.partition(",")[2] for line in LOG.splitlines()) + "\n"
    result = piped(text.encode(), "inspect", "old=-", "--format", "csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert [logger["label"] for logger in json.loads(result.stdout)["contents"]["loggers"]] == ["old"]


def test_standard_input_needs_a_format():
    result = piped(WALK.read_bytes(), "inspect", "-")
    assert result.exit_code == 3
    assert "Unknown format" in result.stderr
    assert "--format" in result.stderr


def test_standard_input_is_named_once():
    result = piped(WALK.read_bytes(), "inspect", "a=-", "b=-", "--format", "csv")
    assert result.exit_code == 2
    assert "standard input can be read once" in result.stderr


def test_nothing_on_standard_input_is_an_error():
    result = piped(b"", "inspect", "-", "--format", "csv")
    assert result.exit_code == 3
    assert "Nothing came from the stream" in result.stderr


def test_a_terminal_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("mixope.cli.inputs.sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())
    from mixope.base.errors import UsageError
    from mixope.cli.inputs import read_logs
    from mixope.cli.options import ColumnOptions, Files

    with pytest.raises(UsageError, match="nothing is piped into it"):
        read_logs(["-"], ColumnOptions(), Files())


@pytest.mark.parametrize("command", ["evaluate", "compare", "inspect", "backtest"])
def test_a_file_whose_name_says_nothing_is_read_with_a_format(command, tmp_path):
    log = write(tmp_path / "log.txt", LOG)
    target = () if command == "backtest" else ("--target", write(tmp_path / "t.csv", POLICY))
    refused = run(command, log, *target)
    assert refused.exit_code == 3
    assert "--format" in refused.stderr
    assert run(command, log, *target, "--format", "csv").exit_code == 0


def test_a_format_that_does_not_exist_is_refused_with_those_that_do():
    result = run("inspect", WALK, "--format", "xlsx")
    assert result.exit_code == 2
    assert "parquet" in result.stderr


def test_a_format_that_is_not_that_of_the_file_is_an_error(tmp_path):
    shutil.copy(WALK, tmp_path / "walk")
    result = run("inspect", tmp_path / "walk", "--format", "parquet")
    assert result.exit_code == 3


# --- the library


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "npz"])
def test_the_library_reads_open_files_by_their_names(ending, tmp_path):
    path = tmp_path / f"walk.{ending}"
    table = mixope.read(REFERENCE / "gridworld.csv").table()
    if ending == "csv":
        shutil.copy(WALK, path)
    elif ending == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
    elif ending == "arrow":
        import pyarrow.feather as feather

        feather.write_feather(table, path, compression="uncompressed")
    else:
        import numpy as np

        names = ("episode_id", "step", "observation", "action", "reward", "next_observation")
        np.savez(path, **{name: table[name].to_numpy() for name in names})
    expected = mixope.read(path).table()
    with path.open("rb") as file:
        assert mixope.read(file).table().equals(expected)
    assert mixope.read(io.BytesIO(path.read_bytes()), format=ending).table().equals(expected)


def test_a_packed_stream_is_unpacked_if_its_name_says_so(tmp_path):
    import gzip

    path = tmp_path / "walk.csv.gz"
    path.write_bytes(gzip.compress(WALK.read_bytes()))
    with path.open("rb") as file:
        assert mixope.read(file).total_rows() == mixope.read(WALK).total_rows()


def test_text_is_refused_in_words():
    with pytest.raises(DataError, match="gives text"):
        mixope.read(io.StringIO(LOG), format="csv")
