"""``--memory``: several steps counted together."""

import numpy as np
import pytest

from mixope.logs import write
from uncertainty.logs import chain_log

from .running import json_of, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("memory")
    _, target, _, columns = chain_log(seed=3, episodes=40, horizon=6)
    write(columns, place / "log.parquet")
    state, action = (index.ravel() for index in np.indices(target.shape))
    write({"observation": state, "action": action, "prob": target.ravel()}, place / "new.csv")
    return place


def test_commands_take_a_number_of_steps_or_auto(folder):
    logs, target = folder / "log.parquet", ("--target", folder / "new.csv")
    two = json_of("evaluate", logs, *target, "--memory", "2")
    assert (two["estimator"], two["memory"]["used"], two["memory"]["automatic"]) == ("emp, memory 2", 2, False)
    assert json_of("evaluate", logs, *target, "--memory", "auto")["memory"]["automatic"]
    (compared,) = json_of("compare", logs, *target, "--memory", "2")["estimates"]
    assert compared["value"] == two["value"]
    plain, with_two = (json_of("backtest", logs, *more)["rows"] for more in ((), ("--memory", "2")))
    assert plain[0]["predicted"] != with_two[0]["predicted"]


def test_anything_else_is_refused_with_what_it_takes(folder):
    for given in ("0", "-1", "long", "2.5"):
        found = run("evaluate", folder / "log.parquet", "--target", folder / "new.csv", f"--memory={given}")
        assert found.exit_code == 2
        assert "auto" in found.stderr
