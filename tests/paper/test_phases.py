"""The phase diagram: loggers grow harder, gaps are counted exactly, and noise decides nothing."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import mixope
from mixope import worlds
from mixope.paper import reproduction
from mixope.paper.cases import log_seed, world
from mixope.paper.phase_logs import (
    BCH,
    DR,
    EMP,
    METHODS,
    PhaseLimit,
    PhaseLog,
    soften,
    softened,
    target_of,
    uncovered,
    with_factors,
)
from mixope.paper.phase_pictures import BETTER, SAME, UNDECIDED, WORSE, borders, show_phases, written
from mixope.paper.phases import EXPERIMENT, SIZES, log_ratio, plan, says, summarise
from mixope.paper.reproduction import read_lines, reproduce
from mixope.worlds import truth

DOCS = Path(__file__).parents[2] / "docs"


def test_softness_one_is_the_logger_of_the_figures_and_a_hard_one_takes_its_favourite():
    (law,) = world("gridworld-slip", 1).laws
    np.testing.assert_array_equal(soften(law, 1.0), law)
    hard = soften(law, 0.01)
    np.testing.assert_allclose(hard.sum(axis=1), 1.0)
    assert (hard.max(axis=1) > 0.99).all()
    assert (hard > 0).all()


def test_the_uncovered_share_is_the_targets_mass_on_pairs_that_were_not_logged():
    here = softened("singlepath", 1, 0.3, 100)
    needed = truth.stationary(here.model, here.target)[:, None] * here.target
    state, action = np.divmod(np.arange(10), 2)
    assert uncovered(here, {"observation": state, "action": action}) == 0
    rest = uncovered(here, {"observation": state[:-1], "action": action[:-1]})
    assert rest == pytest.approx(needed[4, 1])
    assert uncovered(here, {"observation": state[:0], "action": action[:0]}) == pytest.approx(1.0)


def test_a_log_is_evaluated_by_all_methods_and_dr_is_emp_where_states_have_no_factors():
    rows = {row["method"]: row for row in PhaseLog("singlepath", 1, 0.3, 48, 50, 0, 0).measure()}
    assert list(rows) == list(METHODS)
    assert rows[DR]["error"] == pytest.approx(rows[EMP]["error"], abs=1e-12)
    assert rows[BCH]["error"] != rows[EMP]["error"]
    again = PhaseLog("singlepath", 1, 0.3, 48, 50, 0, 0).measure()
    assert again == list(rows.values())


def test_emp_sees_the_log_as_evaluate_does():
    """The short way from a log to a value is the whole one."""
    here = softened("garnet", 4, 0.3, 30)
    asked = PhaseLog("garnet", 4, 0.3, 24, 30, 0, 1)
    seed = log_seed(0, 1, "garnet", 4, 0.3, 24, 30)
    columns = with_factors(here, worlds.simulate(here.model, here.loggers, 24, 30, seed=seed))
    for row in asked.measure():
        whole = mixope.evaluate(columns, target_of(here), str(row["method"])).value
        assert row["error"] == pytest.approx(whole - here.truth.average, abs=1e-9)


def test_for_ever_the_estimate_wins_with_one_logger_and_the_favourite_grows_with_hardness():
    (soft,), (hard,) = (PhaseLimit("gridworld-slip", 1, s, 100).measure() for s in (1.0, 0.03))
    assert soft["limit"] > 1
    assert hard["limit"] > 1
    assert hard["favourite"] > 0.97 > soft["favourite"]


def test_the_ratio_is_that_of_mean_squares_with_a_paired_error():
    below = np.array([1.0, -1.0, 2.0, math.nan])
    above = 2 * below
    found, error = log_ratio(above, below)
    assert found == pytest.approx(math.log(4))
    assert error == pytest.approx(0.0, abs=1e-12)
    assert log_ratio(below, below) == (0.0, 0.0)
    assert math.isnan(log_ratio(above[:1], below[:1])[0])


def test_what_a_ratio_says_takes_two_standard_errors():
    assert says(0.5, 0.1) == BETTER
    assert says(2.0, 0.1) == WORSE
    assert says(2.0, 0.4) == UNDECIDED
    assert says(1.0, 0.0) == SAME
    assert says(math.nan, math.nan) is None


def test_borders_part_cells_above_a_level_from_those_below():
    shares = np.array([[0.5, 0.2], [0.2, 0.0]])
    assert list(borders(shares, 0.3)) == [((0.5, 0.5), (-0.5, 0.5)), ((-0.5, 0.5), (0.5, 0.5))]
    assert not list(borders(shares, 0.9))


@pytest.mark.parametrize(
    ("ratio", "word"), [(0.004, ".004"), (0.32, ".32"), (0.999, "1.0"), (3.21, "3.2"), (14.2, "14")]
)
def test_a_ratio_is_written_with_two_digits(ratio, word):
    assert written(ratio) == word


def test_a_summary_has_the_limit_last_and_a_line_per_method_and_size():
    same = {"environment": "garnet", "loggers": 1, "softness": 0.1, "horizon": 100}
    logs = [
        {**same, "episodes": m, "repetition": k, "method": method, "error": error * (k + 1), "uncovered": 0.2}
        for m in (12, 48)
        for k in range(3)
        for method, error in zip(METHODS, (1.0, 2.0, 0.5), strict=True)
    ]
    limit = {**same, "method": BCH, "limit": 1.5, "favourite": 0.9}
    lines = summarise(SIZES["smoke"], [limit, *logs])
    assert [(line["episodes"], line["method"]) for line in lines] == [
        *((m, method) for m in (12, 48) for method in METHODS),
        (None, BCH),
    ]
    assert [line["ratio"] for line in lines[:3]] == pytest.approx([1.0, 4.0, 0.25])
    assert lines[-1]["says"] == WORSE
    assert [row["episodes"] for row in show_phases(_as_read(lines))] == [12, 48, "∞"]


def _as_read(lines):
    names = list(dict.fromkeys(name for line in lines for name in line))
    return [{name: line.get(name) for name in names} for line in lines]


def test_a_method_that_refuses_is_counted():
    same = {"environment": "garnet", "loggers": 1, "softness": 0.1, "episodes": 12, "uncovered": 0.2}
    rows = [
        {**same, "repetition": k, "method": method, "error": None if (k, method) == (0, DR) else 0.1 + k}
        for k in range(3)
        for method in METHODS
    ]
    (line,) = (line for line in summarise(SIZES["smoke"], rows) if line["method"] == DR)
    assert (line["repetitions"], line["refused"]) == (2, 1)


@pytest.mark.long
def test_a_run_leaves_all_files_and_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    written_files = reproduce("phases", size="smoke", output=whole, jobs=1, seed=0)
    assert {path.suffix for path in written_files} == {".csv", ".json", ".png", ".svg", ".html"}
    assert json.loads((whole / "phases.json").read_text())["repetitions"] == len(plan(SIZES["smoke"], 0))
    cut.mkdir()
    kept = (whole / "phases.jsonl").read_text().splitlines(keepends=True)
    (cut / "phases.jsonl").write_text("".join(kept[::-2])[:-30])
    monkeypatch.setattr(reproduction, "draw", lambda *_: [])
    reproduce("phases", size="smoke", output=cut, jobs=1, seed=0)
    assert (cut / "phases.csv").read_bytes() == (whole / "phases.csv").read_bytes()
    figure = EXPERIMENT.draw(read_lines(whole / "phases.csv"))
    assert sum("÷" in axes.get_title() for axes in figure.axes) == 4


def test_the_published_table_is_what_the_published_lines_say():
    """docs/phases.md against docs/paper/phases.csv: cells by the share that was never logged."""
    page, cells = (DOCS / "phases.md").read_text(encoding="utf-8"), {}
    for row in read_lines(DOCS / "paper" / "phases.csv"):
        if row["episodes"]:
            key = row["environment"], row["loggers"], row["softness"], row["episodes"]
            cells.setdefault(key, {})[row["method"]] = row
    bands = {"below 1 %": (0, 0.01), "1 to 10 %": (0.01, 0.1), "10 to 50 %": (0.1, 0.5), "above 50 %": (0.5, 1)}
    for label, (low, high) in bands.items():
        mine = [cell for cell in cells.values() if low <= cell[EMP]["uncovered"] < high]
        told = [label, str(len(mine)), *(_tally(mine, method) for method in (BCH, DR))]
        told += [f"{np.median([c[m]['bias'] ** 2 / c[m]['mse'] for c in mine]):.0%}" for m in METHODS]
        assert f"| {' | '.join(told)} |" in page


def _tally(cells, method):
    found = [cell[method]["says"] for cell in cells]
    return " / ".join(str(sum(map(found.count, words))) for words in ((BETTER,), (UNDECIDED, SAME), (WORSE,)))


def test_the_published_lines_are_those_of_the_full_size():
    rows = [row for row in read_lines(DOCS / "paper" / "phases.csv") if row["episodes"]]
    full = SIZES["full"]
    assert {(row["environment"], row["repetitions"]) for row in rows} == set(full.worlds)
    size = len(full.worlds) * len(full.loggers) * len(full.softness) * len(full.episodes)
    assert len(rows) == size * len(METHODS)
