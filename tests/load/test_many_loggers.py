"""Many loggers: a backtest holds the scores of a few of them at a time, and finds the same."""

import pytest

import mixope
from mixope.backtesting import from_counts

from .logs import chain_log


@pytest.fixture(scope="module")
def log():
    return chain_log(0, episodes=60, horizon=20, n_loggers=4)[2]


@pytest.mark.parametrize("cells", [0, 10**9], ids=["by scans", "from counts by episode"])
def test_loggers_in_turn_are_predicted_like_all_at_once(log, cells, monkeypatch):
    at_once = mixope.backtest(log, seed=1)
    monkeypatch.setattr(from_counts, "MOST_SCORES", 1)
    monkeypatch.setattr(from_counts, "MOST_CELLS", cells)
    in_turn = mixope.backtest(log, seed=1)
    assert (in_turn.notes, in_turn.agree) == (at_once.notes, at_once.agree)
    assert in_turn.degrees == pytest.approx(at_once.degrees)
    for row, same in zip(in_turn.rows, at_once.rows, strict=True):
        assert (row.label, row.verdict, row.predicted) == (same.label, same.verdict, same.predicted)
        assert row.z == pytest.approx(same.z)


def test_so_many_tables_are_held_as_fit(monkeypatch):
    monkeypatch.setattr(from_counts, "MOST_SCORES", 1000)
    assert [from_counts.loggers_at_a_time(groups) for groups in (0, 10, 300, 5000)] == [1000, 100, 3, 1]
