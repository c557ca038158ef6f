"""The coverage experiment: its intervals are those that users get, and its figures are what the rows say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.base.estimand import Estimand
from mixope.paper.coverage import SIZES, draw, plan, show, summarise
from mixope.paper.coverage_logs import NEAR, TARGET, CoveredLog, asked, called, policies, truths
from mixope.paper.reproduction import read_lines
from mixope.paper.style import style

pytestmark = pytest.mark.long

SMALL = CoveredLog("gridworld-slip", 4, 12, 50, "emp,dr,wis-step", "scores", 0, 0, 7, "factors")
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
    logs, target = SMALL._simulate(), policies("gridworld-slip", 4, "factors")[TARGET]
    rows = [row for row in replace(SMALL, estimators=name).measure() if row["interval"] != "pair"]
    assert [row["interval"] for row in rows] == ["t", "normal", "likelihood"]
    for row in rows:
        found = mixope.evaluate(logs, target, name, interval=row["interval"], **_estimand(name))
        _same(row, found)
        assert row["error"] == pytest.approx(found.standard_error)
        assert row["verdict"] == found.verdict.value


def test_what_dr_predicts_widens_the_measured_interval():
    found = mixope.evaluate(SMALL._simulate(), policies("gridworld-slip", 4, "factors")[TARGET], "dr")
    assert found.measures.approximation > 0
    assert found.interval.method.endswith("+ approximation")
    row = replace(SMALL, estimators="dr").measure()[0]
    alone = 2 * 2.200985 * np.sqrt(12 / 11 * np.sum(found.scores**2))  # t of 11 degrees of freedom
    assert row["high"] - row["low"] > 1.01 * alone


def test_refits_are_those_of_evaluate():
    logs, target = PATH._simulate(), policies("singlepath", 2, "id")[TARGET]
    rows = replace(PATH, estimators="emp").measure()
    assert {row["interval"] for row in rows} == {"bca", "percentile"}
    for row in rows:
        found = mixope.evaluate(logs, target, "emp", interval=row["interval"], replicates=30, jobs=1, seed=3)
        _same(row, found)


def test_blocks_are_those_of_evaluate_on_one_long_episode():
    log = replace(PATH, source="blocks", episodes=40, estimators="emp", replicates=0)
    logs = log._simulate()
    found = mixope.evaluate(logs, policies("singlepath", 2, "id")[TARGET], "emp", interval="blocks")
    assert (found.n_episodes, found.n_rows) == (1, 800)
    (row,) = log.measure()
    _same(row, found)


def test_a_pair_is_that_of_compare():
    logs = SMALL._simulate()
    found = mixope.compare_targets(logs, policies("gridworld-slip", 4, "factors"), "emp").pairs[0]
    row = next(row for row in replace(SMALL, estimators="emp").measure() if row["interval"] == "pair")
    _same(row, found)
    true = truths("gridworld-slip", 4, Estimand("average"))
    assert row["truth"] == true[TARGET] - true[NEAR] > 0


def test_all_sources_see_the_same_log_and_repetitions_others():
    scores = replace(PATH, source="scores", estimators="emp", replicates=0)
    assert scores.simulation_seed() == PATH.simulation_seed()
    assert len({replace(PATH, repetition=k).simulation_seed() for k in range(100)}) == 100


@pytest.mark.parametrize("estimand", ["average", "discounted 0.95", "horizon 20", "episode", "episode 0.99"])
def test_an_estimand_is_called_what_it_is_asked_by(estimand):
    assert called(asked(estimand)) == estimand


@pytest.mark.parametrize(
    ("observed", "estimand"),
    [
        *((observed, estimand) for observed in ("id", "factors") for estimand in ("discounted 0.95", "horizon 5")),
        *((observed, "episode") for observed in ("id", "factors", "vector")),
    ],
)
def test_where_episodes_end_the_truth_is_that_of_the_estimand(observed, estimand):
    log = CoveredLog("sessions", 4, 40, None, "emp", "scores", 0, 0, 1, observed, estimand)
    model, law = worlds.make("sessions"), worlds.target(worlds.make("sessions"))
    rows = log.measure()
    assert {row["estimand"] for row in rows} == {estimand}
    assert rows[0]["truth"] == pytest.approx(worlds.truth.value(model, law, asked(estimand)))
    assert rows[0]["low"] < rows[0]["value"] < rows[0]["high"]
    assert log._simulate()["terminated"].sum() == 40
    assert log.simulation_seed() == replace(log, observed="id", estimand="episode").simulation_seed()


def test_a_picture_of_worlds_that_end_has_a_line_per_estimand():
    rows = [{**_row(0, 0.5, 1.5, 1.0), "horizon": None, "estimand": e} for e in ("episode", "discounted 0.9")]
    with style():
        figure = draw(summarise(None, rows))
    assert figure.axes[0].get_title(loc="left") == "Walk, 2 loggers, factors, 10 episodes"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["EMP, discounted 0.9", "EMP, episode"]


def _row(repetition, low, high, value, verdict="trustworthy", interval="t", error=0.5):
    cell = {"environment": "walk", "loggers": 2, "observed": "factors", "episodes": 10, "horizon": 30}
    cell |= {"estimand": "average", "estimator": "emp"}
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
    assert (line["green"], line["green_coverage"]) == (3, pytest.approx(2 / 3))


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
    planned = plan(SIZES["full"], 0)
    kinds, early = (
        {(r.environment, r.loggers, r.observed, r.episodes, r.estimand, r.source) for r in part}
        for part in (planned, planned[: len(planned) // 20])
    )
    assert early == kinds
    assert len(set(planned)) == len(planned)


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
    assert {row["environment"] for row in rows} <= {batch.environment for batch in SIZES["full"].batches}
    for key in dict.fromkeys((row["environment"], row["loggers"]) for row in rows):
        for shown in show([row for row in rows if (row["environment"], row["loggers"]) == key]):
            assert tuple(map(str, list(shown.values())[4:])) in written, shown


def test_the_published_lines_have_as_many_logs_as_the_full_size():
    rows = read_lines(DOCS / "paper" / "coverage.csv")
    for batch in SIZES["full"].batches:
        kinds = {"scores": {"t", "pair"}, "refits": {"bca"}, "blocks": {"blocks"}}[batch.source]
        mine = [
            row
            for row in rows
            if (row["environment"], row["loggers"]) == (batch.environment, batch.loggers) and row["interval"] in kinds
        ]
        assert {row["logs"] + row["without"] for row in mine} <= {batch.logs}, batch
