"""The coverage experiment: its intervals are those that users get, and its figures are what the rows say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mixope
from mixope.estimand import Estimand
from mixope.experiments.coverage import SIZES, draw, plan, show, summarise
from mixope.experiments.coverage_logs import NEAR, TARGET, CoveredLog, policies, truths
from mixope.experiments.reproduction import read_lines
from mixope.experiments.style import style

SMALL = CoveredLog("gridworld-slip", 4, 12, 50, "emp,dr,wis-step", "scores", 0, seed=0, repetition=7)
PATH = CoveredLog("singlepath", 2, 10, 20, "emp,wis-step", "refits", 30, seed=0, repetition=3)

DOCS = Path(__file__).parents[2] / "docs"


def _estimand(name):
    return {"estimand": "horizon", "horizon": 50} if name == "wis-step" else {}


def _same(row, found):
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (found.value, found.interval.low, found.interval.high), rel=1e-9
    )


@pytest.mark.parametrize("name", ["emp", "dr", "wis-step"])
def test_intervals_from_scores_are_those_of_evaluate(name):
    logs, target = SMALL._simulate(), policies("gridworld-slip", 4)[TARGET]
    rows = [row for row in replace(SMALL, estimators=name).measure() if row["interval"] != "pair"]
    assert [row["interval"] for row in rows] == ["t", "normal", "likelihood"]
    for row in rows:
        found = mixope.evaluate(logs, target, name, interval=row["interval"], **_estimand(name))
        _same(row, found)
        assert row["error"] == pytest.approx(found.standard_error)
        assert row["verdict"] == found.verdict.value


def test_what_dr_predicts_widens_the_measured_interval():
    found = mixope.evaluate(SMALL._simulate(), policies("gridworld-slip", 4)[TARGET], "dr")
    assert found.measures.approximation > 0
    assert found.interval.method.endswith("+ approximation")
    row = replace(SMALL, estimators="dr").measure()[0]
    alone = 2 * 2.200985 * np.sqrt(np.sum(found.scores**2))  # t of 11 degrees of freedom
    assert row["high"] - row["low"] > 1.01 * alone


def test_refits_are_those_of_evaluate():
    logs, target = PATH._simulate(), policies("singlepath", 2)[TARGET]
    rows = replace(PATH, estimators="emp").measure()
    assert {row["interval"] for row in rows} == {"bca", "percentile"}
    for row in rows:
        found = mixope.evaluate(logs, target, "emp", interval=row["interval"], replicates=30, jobs=1, seed=3)
        _same(row, found)


def test_blocks_are_those_of_evaluate_on_one_long_episode():
    log = replace(PATH, source="blocks", episodes=40, estimators="emp", replicates=0)
    logs = log._simulate()
    found = mixope.evaluate(logs, policies("singlepath", 2)[TARGET], "emp", interval="blocks")
    assert (found.n_episodes, found.n_rows) == (1, 800)
    (row,) = log.measure()
    _same(row, found)


def test_a_pair_is_that_of_compare():
    logs = SMALL._simulate()
    found = mixope.compare_targets(logs, policies("gridworld-slip", 4), "emp").pairs[0]
    row = next(row for row in replace(SMALL, estimators="emp").measure() if row["interval"] == "pair")
    _same(row, found)
    true = truths("gridworld-slip", 4, Estimand("average"))
    assert row["truth"] == true[TARGET] - true[NEAR] > 0


def test_all_sources_see_the_same_log_and_repetitions_others():
    scores = replace(PATH, source="scores", estimators="emp", replicates=0)
    assert scores.simulation_seed() == PATH.simulation_seed()
    assert len({replace(PATH, repetition=k).simulation_seed() for k in range(100)}) == 100


def _row(repetition, low, high, value, verdict="trustworthy", interval="t", error=0.5):
    cell = {"environment": "walk", "loggers": 2, "episodes": 10, "horizon": 30, "estimator": "emp"}
    said = {"verdict": verdict, "uncovered": 0.25}
    made = {"interval": interval, "truth": 1.0, "value": value, "error": error, "low": low, "high": high, **said}
    return {**cell, "repetition": repetition, **made}


ROWS = [
    _row(0, 0.0, 2.0, 1.0),
    _row(1, 0.5, 2.5, 1.5),
    _row(2, 1.5, 3.5, 2.5, "caution"),
    _row(3, 1.1, 3.1, 2.1),
    _row(4, None, None, None),
]


def test_a_line_says_how_often_and_why():
    (line,) = summarise(None, ROWS)
    values = np.array([1.0, 1.5, 2.5, 2.1])
    assert (line["logs"], line["without"]) == (4, 1)
    assert line["coverage"] == 0.5
    assert line["coverage_error"] == pytest.approx(0.25)
    assert line["width"] == pytest.approx(2.0)
    assert line["bias"] == pytest.approx(0.775)
    assert line["bias_over_error"] == pytest.approx(1.55)
    assert line["error_ratio"] == pytest.approx(0.5 / values.std())
    assert (line["warned"], line["missed"], line["missed_warned"]) == (0.25, 2, 0.5)


def test_errors_that_follow_the_values_are_told():
    """The mark of heavy tails: a log without the rare large weight is low and sure of it."""
    (line,) = summarise(None, [_row(k, 0.0, 2.0, value, error=value / 2) for k, value in enumerate((1.0, 2.0, 3.0))])
    assert line["error_follows"] == pytest.approx(1.0)
    assert line["error_variation"] == pytest.approx(np.sqrt(2 / 3) / 2)


def test_lines_do_not_depend_on_the_order_of_the_run():
    rows = [*ROWS, *(_row(k, 0.0, 2.0, 1.0, interval="normal") for k in range(3))]
    mixed = [rows[k] for k in np.random.default_rng(0).permutation(len(rows))]
    assert repr(summarise(None, mixed)) == repr(summarise(None, rows))


def test_where_there_is_no_interval_the_table_has_a_dash():
    lines = summarise(None, [_row(0, None, None, None), *(_row(k, 0.0, 2.0, 1.0, interval="normal") for k in (0, 1))])
    (shown,) = show(lines)
    assert shown["t"] == "–"
    assert shown["normal"] == "100.0±25.0"


def test_a_run_cut_short_has_some_of_everything():
    asked = plan(SIZES["full"], 0)
    kinds = {(r.environment, r.loggers, r.episodes, r.source) for r in asked}
    early = {(r.environment, r.loggers, r.episodes, r.source) for r in asked[: len(asked) // 20]}
    assert early == kinds
    assert len(set(asked)) == len(asked)


def test_a_share_below_the_axis_is_an_arrow_with_its_number():
    lines = summarise(None, [_row(k, 5.0, 6.0, 5.5) for k in range(4)])
    with style():
        figure = draw(lines)
    assert [text.get_text() for text in figure.axes[0].texts] == ["0%"]


def test_the_published_table_is_what_the_published_lines_say():
    """docs/coverage.md against docs/paper/coverage.csv: every line of every environment."""
    page = (DOCS / "coverage.md").read_text(encoding="utf-8")
    written = {tuple(c.strip(" `") for c in line.strip("| ").split(" | ")) for line in page.splitlines() if "|" in line}
    rows = read_lines(DOCS / "paper" / "coverage.csv")
    assert {row["environment"] for row in rows} == {batch.environment for batch in SIZES["full"].batches}
    for key in dict.fromkeys((row["environment"], row["loggers"]) for row in rows):
        for shown in show([row for row in rows if (row["environment"], row["loggers"]) == key]):
            assert tuple(map(str, list(shown.values())[2:])) in written, shown


def test_the_published_lines_have_as_many_logs_as_the_full_size():
    rows = read_lines(DOCS / "paper" / "coverage.csv")
    for batch in SIZES["full"].batches:
        kinds = {"scores": {"t", "pair"}, "refits": {"bca"}, "blocks": {"blocks"}}[batch.source]
        mine = [
            row
            for row in rows
            if (row["environment"], row["loggers"]) == (batch.environment, batch.loggers) and row["interval"] in kinds
        ]
        assert {row["logs"] + row["without"] for row in mine} == {batch.logs}, batch
