"""``--unit``: the column that says to whom an episode belongs."""

import numpy as np
import pytest

from mixope.logs import write
from uncertainty.logs import chain_log

from .running import json_of, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("units")
    _, target, _, columns = chain_log(seed=3, episodes=40, horizon=6)
    write({**columns, "patient_id": columns["episode_id"] // 4}, place / "log.parquet")
    state, action = (index.ravel() for index in np.indices(target.shape))
    write({"observation": state, "action": action, "prob": target.ravel()}, place / "new.csv")
    return place


def test_commands_count_units(folder):
    logs, target, unit = folder / "log.parquet", ("--target", folder / "new.csv"), ("--unit", "patient_id")
    assert json_of("evaluate", logs, *target, *unit)["n_units"] == 10
    assert json_of("inspect", logs, *unit)["contents"]["units"] == 10
    assert json_of("plan", logs, *target, *unit, "--precision", "0.05")["needs"][0]["what"] == "units"
    (row, _) = json_of("backtest", logs, *unit)["rows"]
    (plain, _) = json_of("backtest", logs)["rows"]
    assert (row["predicted"], row["n_episodes"]) == (plain["predicted"], plain["n_episodes"])
    assert row["high"] != plain["high"]


def test_a_column_that_may_be_the_unit_is_named_with_what_to_type(folder):
    found = run("evaluate", folder / "log.parquet", "--target", folder / "new.csv")
    assert "--unit patient_id" in " ".join((found.stdout + found.stderr).split())
    assert "of 10 units" in run("inspect", folder / "log.parquet", "--unit", "patient_id").stdout


def test_the_unit_is_named_once(folder):
    found = run("inspect", folder / "log.parquet", "--unit", "patient_id", "--column", "unit=step")
    assert found.exit_code == 2
