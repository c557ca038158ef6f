"""``mixope backtest``: one table or one JSON object, and the exit codes of the other commands."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mixope import LinearGaussianPolicy, worlds
from mixope.cli import app
from mixope.logs import write
from mixope.worlds import continuous, linear_quadratic

pytestmark = pytest.mark.long


def run(*arguments):
    return CliRunner().invoke(app, ["backtest", *map(str, arguments)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    model = worlds.make("singlepath")
    columns = worlds.simulate(model, worlds.stages(model, 2, seed=0), 40, 20, seed=0)
    path = tmp_path_factory.mktemp("logs") / "logs.parquet"
    write(columns, path)
    return path


def test_a_table_names_every_logger_and_ends_in_a_summary(logs):
    result = run(logs)
    assert result.exit_code == 0, result.stderr
    assert "logger-0" in result.stdout
    assert "logger-1" in result.stdout
    assert "predictions agree with what was earned" in result.stdout


def test_json_is_one_object_with_a_row_a_logger(logs):
    result = run(logs, "--json", "--level", "0.9")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["level"] == 0.9
    assert [row["label"] for row in record["rows"]] == ["logger-0", "logger-1"]
    assert {"predicted", "low", "high", "earned", "earned_low", "earned_high", "covered", "verdict"} <= set(
        record["rows"][0]
    )
    assert run(logs, "--json", "--level", "0.9").stdout == result.stdout


def test_one_logger_is_a_mistake_of_usage(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("episode_id,step,observation,action,reward,next_observation\n0,0,0,0,1,1\n0,1,1,0,1,0\n")
    result = run(path)
    assert result.exit_code == 2
    assert "at least two labelled loggers" in result.stderr


def test_a_missing_column_is_bad_data(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("policy_id,observation,action\na,0,0\n")
    assert run(path).exit_code == 3


def test_strict_says_that_no_logger_can_be_predicted(tmp_path):
    model = worlds.make("singlepath")
    apart = [np.tile(law, (5, 1)) for law in ([1.0, 0.0], [0.0, 1.0])]
    path = tmp_path / "apart.csv"
    write(worlds.simulate(model, apart, 10, 10, seed=0), path)
    assert run(path).exit_code == 0
    result = run(path, "--strict", "--full")
    assert result.exit_code == 4
    assert "do not overlap" in result.stdout


def test_a_page_beside_the_result_and_where_it_is(logs, tmp_path):
    page = tmp_path / "backtest.html"
    result = run(logs, "--html", page, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rows"]
    assert result.stderr.splitlines()[-1] == f"report: {page}"
    assert "predictions agree with what was earned" in page.read_text(encoding="utf-8")
    assert run(logs, "--html", tmp_path / "logs.parquet").exit_code == 2


def test_an_evaluation_can_have_the_backtest_beside_it(logs, tmp_path):
    target, page = tmp_path / "target.npy", tmp_path / "page.html"
    np.save(target, np.full((5, 2), 0.5))
    arguments = ["evaluate", str(logs), "--target", str(target), "--backtest", "--html", str(page)]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert [row["label"] for row in record["backtest"]["rows"]] == ["logger-0", "logger-1"]
    assert record["diagnostics"][-1]["name"] == "backtest"
    assert "No backtest was made" not in page.read_text(encoding="utf-8")
    assert "every logger predicted from the others" in CliRunner().invoke(app, [*arguments, "--full"]).stdout


def test_vectors_are_backtested_too(tmp_path):
    path = tmp_path / "vectors.parquet"
    policies = [LinearGaussianPolicy([-0.3, -0.4], bias, 0.7) for bias in (0.0, 0.2)]
    write(continuous.simulate(linear_quadratic.linear_quadratic(), policies, 16, 20, seed=0), path)
    result = run(path, "--estimator", "emp", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert [row["policy"] for row in record["rows"]] == ["fitted", "fitted"]
    assert record["supported"] == 2
