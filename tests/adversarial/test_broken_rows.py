"""Rows that were lost, renumbered or written twice bear on the verdict, or are put right and said to be."""

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.backtesting import backtest
from mixope.inspection import inspect
from mixope.worlds import continuous, linear_quadratic

MODEL = worlds.make("sessions")
TARGET = mixope.TabularPolicy(worlds.target(MODEL, seed=0))


def sessions(seed=0):
    return worlds.simulate(MODEL, worlds.stages(MODEL, 3, seed=0), 150, seed=seed)


def vectors(seed=0):
    system = linear_quadratic.linear_quadratic()
    return continuous.simulate(system, linear_quadratic.loggers(4), 40, 20, seed=seed)


def from_one(columns):
    return {**columns, "step": columns["step"] + (columns["policy_id"] == "logger-1")}


def taken(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


def flags(estimate):
    return {check.name: check.status for check in estimate.diagnostics if check.status != "pass"}


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("estimand", [{"estimand": "episode"}, {"estimand": "discounted", "gamma": 0.9}])
def test_a_logger_that_counts_from_one_is_worth_what_it_is_when_it_counts_from_zero(engine, estimand):
    known, moved = (
        mixope.evaluate(columns, TARGET, engine=engine, **estimand) for columns in (sessions(), from_one(sessions()))
    )
    assert (moved.value, moved.interval) == (known.value, known.interval)
    assert moved.verdict == known.verdict
    assert [a for a in moved.alerts if a not in known.alerts] == [
        "'logger-1' counts steps from 1 and others from 0: the first step of each episode is taken as its start"
    ]


def test_the_same_holds_on_vectors_and_in_files(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = mixope.evaluate(vectors(), linear_quadratic.target(), "lstdq", estimand="discounted", gamma=0.9)
    columns = from_one(vectors())
    pq.write_table(pa.table({n: list(v) if v.ndim > 1 else v for n, v in columns.items()}), tmp_path / "log.parquet")
    logs = mixope.read(str(tmp_path / "log.parquet"))
    moved = mixope.evaluate(logs, linear_quadratic.target(), "lstdq", estimand="discounted", gamma=0.9)
    assert moved.value == pytest.approx(known.value, rel=1e-12)
    assert any("'logger-1' counts steps from 1" in alert for alert in moved.alerts)


@pytest.mark.parametrize("make", [sessions, vectors])
def test_inspect_and_backtest_take_its_starts_too(make):
    found = inspect(from_one(make()))
    assert found.contents.known_starts == found.contents.episodes
    assert any("'logger-1' counts steps from 1" in note for note in found.notes)
    assert not found.remarks
    if make is sessions:
        known, moved = backtest(make()), backtest(from_one(make()))
        assert [row.predicted for row in moved.rows] == [row.predicted for row in known.rows]


def test_an_episode_that_begins_later_than_its_logger_s_others_is_no_start():
    columns = sessions()
    late = (columns["episode_id"] == columns["episode_id"][0]) & (columns["policy_id"] == columns["policy_id"][0])
    found = inspect({**columns, "step": columns["step"] + late})
    assert found.contents.known_starts == found.contents.episodes - 1


@pytest.mark.parametrize("world", ["gridworld-slip", "linear-quadratic"])
def test_rows_that_are_missing_inside_episodes_ask_for_caution(world):
    if world == "linear-quadratic":
        columns, target = vectors(), linear_quadratic.target()
    else:
        model = worlds.make(world)
        target = mixope.TabularPolicy(worlds.target(model, seed=0))
        columns = worlds.simulate(model, worlds.stages(model, 3, seed=0), 60, 50, seed=0)
    whole = mixope.evaluate(columns, target)
    inner = (columns["step"] > 0) & (columns["step"] < columns["step"].max())
    best = inner & (columns["reward"] >= np.quantile(columns["reward"], 0.95))
    torn = mixope.evaluate(taken(columns, ~best), target)
    assert "missing rows" not in flags(whole)
    assert flags(torn)["missing rows"] == "warn"
    assert any("rows are missing" in alert for alert in torn.alerts)


def test_steps_that_skip_numbers_without_a_missing_row_are_only_noted():
    columns = sessions()
    twice = {**columns, "step": 2 * columns["step"]}
    found = mixope.evaluate(twice, TARGET, estimand="episode")
    assert "missing rows" not in flags(found)
    assert any("hole in the steps" in alert for alert in found.alerts)


@pytest.mark.parametrize("make", [sessions, vectors])
def test_episodes_that_are_copies_are_shown_by_inspect_and_backtest(make):
    columns = make()
    copies = {**columns, "episode_id": columns["episode_id"] + 10_000}
    twice = {name: np.concatenate([columns[name], copies[name]]) for name in columns}
    (remark,) = [r for r in inspect(twice).remarks if r.name == "repeated-episodes"]
    assert remark.status == "warning"
    assert "exact copies of others" in remark.sentence
    assert not inspect(columns).remarks
    if make is sessions:
        assert any("exact copies of others" in note for note in backtest(twice).notes)
        assert not any("exact copies" in note for note in backtest(columns).notes)


def test_inspect_without_checks_looks_for_no_copies():
    columns = sessions()
    copies = {**columns, "episode_id": columns["episode_id"] + 10_000}
    twice = {name: np.concatenate([columns[name], copies[name]]) for name in columns}
    assert not inspect(twice, check=False).remarks
