"""Logs can be looked at: printed, counted, shown as a table, described."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError


def _clinic(stays=6, days=4):
    rng = np.random.default_rng(0)
    n = stays * days
    return {
        "stay": np.repeat(np.arange(stays), days),
        "patient": np.repeat(np.arange(stays) // 2, days).astype(str),
        "date": [f"2026-{9 + stay % 2:02d}-{1 + day:02d}" for stay in range(stays) for day in range(days)],
        "ward": rng.integers(0, 3, n),
        "drug": rng.integers(0, 2, n),
        "cost": -rng.random(n),
        "last": np.tile(np.arange(days) == days - 1, stays),
    }


COLUMNS = {"episode_id": "stay", "observation": "ward", "action": "drug", "reward": "cost", "terminated": "last"}


@pytest.fixture
def logs():
    import pyarrow as pa

    with pytest.warns(mixope.MixopeWarning):
        return mixope.read(pa.table(_clinic()), columns=COLUMNS)


def test_print_says_rows_columns_and_what_was_assumed(logs):
    lines = str(logs).splitlines()
    assert "24 rows" in lines[0]
    assert len(lines) <= 16
    assert any(line.split() == ["reward", "←", "cost"] for line in lines)
    assert sum(line.startswith("assumed:") for line in lines) == len(logs.assumed)


def test_length_is_rows_and_columns_are_those_of_the_table(logs):
    assert len(logs) == 24
    assert list(logs.columns) == logs.to_arrow().column_names == list(logs.to_frame().columns)
    assert logs.to_frame()["reward"].tolist() == _clinic()["cost"].tolist()


def test_head_is_the_first_rows(logs):
    assert logs.head(3).equals(logs.to_arrow().slice(0, 3).to_pandas())
    assert [len(logs.head()), len(logs.head(0)), len(logs.head(100))] == [5, 0, 24]
    with pytest.raises(UsageError, match="how many rows"):
        logs.head(-1)


def test_describe_is_inspect(logs):
    assert logs.describe() == mixope.inspect(logs)


def test_completion_offers_only_what_is_of_use(logs):
    public = [name for name in dir(logs) if not name.startswith("__")]
    assert not [name for name in public if name.startswith("_")]
    assert {"head", "describe", "columns", "schema", "with_unit"} <= set(public)
    assert not {"fragments", "keep", "recall", "plans", "sources", "bounds"} & set(public)
    assert all(hasattr(logs, name) for name in public)


def test_a_card_is_html(logs):
    assert "24 rows" in logs._repr_html_()
