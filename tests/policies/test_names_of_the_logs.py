"""A policy table may call its columns as the logs do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixope
from mixope.base.errors import DataError

N = 600
PAGES, DEVICES, OFFERS = ("home", "item"), ("phone", "desk"), ("none", "sale")


def visits() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    page, device, offer = (rng.choice(names, N) for names in (PAGES, DEVICES, OFFERS))
    reward = (offer == "sale") * (page == "item") + 0.1 * rng.normal(size=N)
    frame = {"user": np.arange(N) // 10, "t": np.arange(N) % 10, "page": page, "device": device, "offer": offer}
    return pd.DataFrame({**frame, "reward": reward})


NAMED = {"episode_id": "user", "step": "t", "observation": ["page", "device"], "action": "offer"}


@pytest.fixture
def logs() -> mixope.Logs:
    return mixope.read(visits(), columns=NAMED, ends="truncated")


def table(*names: str, chance: float = 0.8) -> pd.DataFrame:
    """On an item the sale is offered with some chance, else never."""
    rows = []
    for page in PAGES:
        for device in DEVICES:
            sale = chance if page == "item" else 0.0
            rows += [(page, device, "sale", sale), (page, device, "none", 1 - sale)]
    return pd.DataFrame(rows, columns=[*names, "prob"])


PROPER = ("observation.page", "observation.device", "action")


@pytest.mark.parametrize("ending", [".csv", ".parquet", "frame"])
def test_names_of_the_logs_are_the_proper_ones(logs: mixope.Logs, ending: str, tmp_path: Path) -> None:
    own = table("page", "device", "offer")
    path = tmp_path / f"target{ending}"
    if ending != "frame":
        (own.to_csv if ending == ".csv" else own.to_parquet)(path, index=False)
    found = mixope.evaluate(logs, own if ending == "frame" else path)
    assert found.value == mixope.evaluate(logs, table(*PROPER)).value
    assert mixope.read_policy(own, logs=logs).factors == ("page", "device")


def test_the_order_of_columns_does_not_matter_and_a_rule_needs_no_prob(logs: mixope.Logs) -> None:
    turned = table("page", "device", "offer")[["offer", "prob", "device", "page"]]
    assert mixope.evaluate(logs, turned).value == mixope.evaluate(logs, table(*PROPER)).value
    rule = pd.DataFrame([(p, d, "sale") for p in PAGES for d in DEVICES], columns=["page", "device", "offer"])
    with pytest.warns(mixope.MixopeWarning, match="read as a rule"):
        always = mixope.evaluate(logs, rule)
    assert always.value == pytest.approx(np.mean(visits().query("offer == 'sale'").reward), abs=0.05)


def test_what_is_said_goes_first_then_the_proper_names_then_those_of_the_logs(logs: mixope.Logs) -> None:
    both = table(*PROPER).assign(page="home", device="desk", offer="none")
    assert mixope.read_policy(both, logs=logs).factors == ("page", "device")
    assert mixope.evaluate(logs, both).value == mixope.evaluate(logs, table(*PROPER)).value
    said = table("page", "device", "offer").rename(columns={"page": "place"})
    found = mixope.read_policy(said, columns={"observation": ["place", "device"]}, logs=logs)
    assert found.factors == ("place", "device")


def test_without_the_logs_and_with_only_some_of_their_names_it_is_refused(logs: mixope.Logs) -> None:
    with pytest.raises(DataError, match="no column for the observation"):
        mixope.read_policy(table("page", "device", "offer"))
    with pytest.raises(DataError, match="no column for the observation") as caught:
        mixope.read_policy(table("page", "tool", "offer"), logs=logs)
    assert "or page, device, as in the logs" in str(caught.value)


def test_a_name_of_the_logs_is_no_other_state(tmp_path: Path) -> None:
    """In a log whose factors are a state of the country and an age group, a column ``state`` is one of two."""
    frame = visits().rename(columns={"page": "state", "device": "age"})
    logs = mixope.read(frame, columns={**NAMED, "observation": ["state", "age"]}, ends="truncated")
    found = mixope.evaluate(logs, table("state", "age", "offer"))
    proper = mixope.evaluate(logs, table("observation.state", "observation.age", "action"))
    assert found.value == proper.value


def test_loggers_in_one_table_may_have_the_names_of_the_logs(logs: mixope.Logs) -> None:
    several = pd.concat([table("page", "device", "offer", chance=c).assign(policy_id=f"p{c}") for c in (0.2, 0.6)])
    found = mixope.read_policies(several, logs=logs)
    assert [policy.factors for policy in found.values()] == [("page", "device")] * 2
