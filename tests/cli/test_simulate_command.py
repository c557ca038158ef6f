import json
from pathlib import Path

import pytest

import mixope
from mixope.base.folders import RECORD
from mixope.worlds import datasets

from .running import json_of, run

SMALL = ("--loggers", "2", "--episodes", "40", "--horizon", "25")
FILES = {"logs.parquet", "target.csv", "loggers.csv", "truth.json"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RECORD}


@pytest.mark.parametrize("environment", ["gridworld-slip", "singlepath", "walk", "gridworld"])
def test_what_is_simulated_can_be_evaluated_near_the_truth(environment, tmp_path):
    folder = tmp_path / "data"
    size = ("--loggers", "2", "--episodes", "200", "--horizon", "50")
    assert run("simulate", environment, *size, "-o", folder).exit_code == 0
    truth = json.loads((folder / "truth.json").read_text())
    record = json_of("evaluate", folder / "logs.parquet", "--target", folder / "target.csv")
    error = max(record["standard_error"], truth["efficiency_bound_mse"] ** 0.5)
    assert abs(record["value"] - truth["average"]) <= 4 * error + 1e-9
    assert record["n_rows"] == truth["rows"]


def test_where_episodes_end_they_are_logged_to_the_end_and_have_a_total(tmp_path):
    said = run("simulate", "sessions", "--loggers", "2", "--episodes", "40", "-o", tmp_path / "whole").stdout
    truth = json.loads((tmp_path / "whole" / "truth.json").read_text())
    assert f"{truth['episode']['1']:.6g} per episode of {truth['episode_length']:.3g} steps" in said
    assert truth["settings"]["horizon"] is None
    assert truth["average"] * truth["episode_length"] == pytest.approx(truth["episode"]["1"])
    assert truth["discounted"]["0.9"] == pytest.approx(0.1 * truth["episode"]["0.9"])
    assert mixope.read(str(tmp_path / "whole" / "logs.parquet")).total_rows() == truth["rows"]
    run("simulate", "sessions", "--loggers", "2", "--episodes", "40", "--horizon", "3", "-o", tmp_path / "cut")
    assert json.loads((tmp_path / "cut" / "truth.json").read_text())["rows"] < truth["rows"]


def test_episodes_without_an_end_are_truncated_after_200_steps(tmp_path):
    run("simulate", "singlepath", "--loggers", "1", "--episodes", "3", "-o", tmp_path / "data")
    truth = json.loads((tmp_path / "data" / "truth.json").read_text())
    assert (truth["settings"]["horizon"], truth["rows"], "episode" in truth) == (200, 600, False)


def test_cartpole_comes_with_its_controllers_and_simulated_truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.cartpole.truth, "__kwdefaults__", {"chains": 200, "seed": 0})
    said = run("simulate", "cartpole", "--episodes", "8", "-o", "poles").stdout
    truth = json.loads(Path("poles/truth.json").read_text())
    assert "simulated) per episode of" in said
    assert truth["average"] == 1.0
    assert truth["episode"]["0.99"] == pytest.approx(100 * truth["discounted"]["0.99"])
    assert 0 < truth["episode_standard_error"]["1"] < truth["episode"]["1"]
    scope: dict[str, object] = {}
    exec(Path("poles/policies.py").read_text(), scope)
    assert scope["target"].fingerprint() == datasets.cartpole.target().fingerprint()
    assert list(scope["loggers"]) == [f"logger-{j}" for j in range(4)]


def test_loggers_file_fits_the_logs(tmp_path):
    run("simulate", "singlepath", *SMALL, "-o", tmp_path / "data", "--format", "csv")
    record = json_of(
        "evaluate",
        tmp_path / "data" / "logs.csv",
        *("--target", tmp_path / "data" / "target.csv", "--loggers", tmp_path / "data" / "loggers.csv"),
        *("--estimator", "known-mixture"),
    )
    assert {logger["label"] for logger in record["loggers"]} == {"logger-0", "logger-1"}


@pytest.mark.long
@pytest.mark.parametrize("format", ["parquet", "csv", "arrow"])
def test_the_same_seed_gives_the_same_bytes(format, tmp_path):
    for name in ("one", "two"):
        run("simulate", "walk", *SMALL, "--seed", "3", "--format", format, "-o", tmp_path / name)
    run("simulate", "walk", *SMALL, "--seed", "4", "--format", format, "-o", tmp_path / "other")
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert set(one) == FILES - {"logs.parquet"} | {f"logs.{format}"}
    assert one == two
    assert one[f"logs.{format}"] != other[f"logs.{format}"]


def test_factors_are_columns_of_logs_and_policies(tmp_path):
    run("simulate", "walk", *SMALL, "--observed", "factors", "--format", "csv", "-o", tmp_path / "data")
    for name in ("logs.csv", "target.csv", "loggers.csv"):
        assert "observation.cell" in (tmp_path / "data" / name).read_text().partition("\n")[0]
    found = json_of("evaluate", tmp_path / "data" / "logs.csv", "--target", tmp_path / "data" / "target.csv")
    assert found["estimator"] == "dr"


def test_a_folder_that_is_not_empty_is_refused_unless_it_is_a_dataset_and_forced(tmp_path):
    folder = tmp_path / "data"
    run("simulate", "walk", *SMALL, "-o", folder)
    before = contents(folder)
    refused = run("simulate", "walk", *SMALL, "--seed", "9", "-o", folder)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert contents(folder) == before
    assert run("simulate", "walk", *SMALL, "--seed", "9", "-o", folder, "--force").exit_code == 0
    assert contents(folder) != before


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing_behind(failure, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(datasets, "_exact_truth", fail)
    interrupted = isinstance(failure, KeyboardInterrupt)
    result = run("simulate", "walk", *SMALL, "-o", tmp_path / "data")
    assert result.exit_code == (130 if interrupted else 2)
    assert result.stderr.startswith("interrupted: " if interrupted else "error: disk full")
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("taxxi",), "Did you mean 'taxi'"),
        (("walk", "--pickup-bonus"), "does not take these options"),
        (("walk", "--loggers", "0"), "loggers"),
        (("walk", "--loggers", "9", "--episodes", "3"), "an episode for each"),
        (("walk", "--format", "xlsx"), "format"),
    ],
)
def test_a_wrong_wish_exits_with_2_and_writes_nothing(arguments, words, tmp_path):
    result = run("simulate", *arguments, "-o", tmp_path / "data")
    assert result.exit_code == 2
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "data").write_text("")
    assert "is a file" in run("simulate", "walk", *SMALL, "-o", tmp_path / "data").stderr
