"""Numbers at the ends of what a double holds: refused with their rows, or answered as in any other unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError
from mixope.checks import Evidence, Verdict, diagnose, verdict
from mixope.checks.verdicts import graded
from mixope.estimators import Solution
from mixope.policies import uniform
from mixope.session.survey import LoggerSummary, Survey
from mixope.uncertainty import Interval, Uncertainty

from .test_lost_rows import HALF, ROWS, TARGET, arrays

POINTS = np.random.default_rng(3).normal(size=(ROWS + 1, 2))
VECTORS = {"observation": POINTS[:-1], "next_observation": POINTS[1:]}
BOTH = pytest.mark.parametrize("states", ["ids", "vectors"])


def logs(states: str, **changes: Any) -> mixope.Logs:
    return mixope.Logs.from_arrays(**arrays(**(VECTORS if states == "vectors" else {}) | changes))


def evaluate(given: mixope.Logs, states: str, **options: Any) -> mixope.Estimate:
    return mixope.evaluate(given, HALF if states == "ids" else uniform([0, 1]), **options)


def at(row: int, value: float, values: Any) -> Any:
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


REFUSED: dict[str, tuple[dict[str, Any], str, tuple[int, ...]]] = {
    "a reward of 1e308": ({"reward": at(7, 1e308, arrays()["reward"])}, "The reward is too large", (7,)),
    "a reward of -1e200": ({"reward": at(7, -1e200, arrays()["reward"])}, "The reward is too large", (7,)),
    "all rewards of 1e100": ({"reward": arrays()["reward"] * 1e100 + 1e99}, "The reward is too large", (0, 1)),
    "rewards of 1e-300": ({"reward": arrays()["reward"] * 1e-300}, "The rewards are too small", ()),
    "a propensity of 1e-300": (
        {"action_prob": at(5, 1e-300, np.full(ROWS, 0.5))},
        "A propensity is too small to divide by",
        (5,),
    ),
    "the least propensity": (
        {"action_prob": at(5, 5e-324, np.full(ROWS, 0.5))},
        "A propensity is too small to divide by",
        (5,),
    ),
}


@BOTH
@pytest.mark.parametrize("case", REFUSED)
def test_what_would_overflow_is_refused_with_its_rows(case, states):
    changes, words, rows = REFUSED[case]
    with pytest.raises(DataError, match=words) as told:
        evaluate(logs(states, **changes), states)
    assert told.value.rows[: len(rows)] == rows


def test_states_that_would_overflow_are_refused():
    far = VECTORS["observation"] * 1.0
    far[4, 1] = 1e200
    with pytest.raises(DataError, match="The observation is too large") as told:
        evaluate(logs("vectors", observation=far), "vectors")
    assert told.value.rows == (4,)


def test_the_command_says_the_same(tmp_path):
    pq.write_table(pa.table(arrays(reward=at(7, 1e308, arrays()["reward"]))), tmp_path / "log.parquet")
    (tmp_path / "target.csv").write_text(TARGET)
    result = run("evaluate", tmp_path / "log.parquet", "--target", tmp_path / "target.csv")
    assert result.exit_code == 3
    assert "too large to compute with" in result.stderr


@BOTH
@pytest.mark.parametrize("unit", [9e59, 4e-60])
@pytest.mark.parametrize("estimator", ["auto", "emp", "wis-step", "mwl"])
def test_the_unit_of_rewards_changes_nothing_else(unit, estimator, states):
    plain = evaluate(logs(states), states, estimator=estimator)
    scaled = evaluate(logs(states, reward=arrays()["reward"] * unit), states, estimator=estimator)
    assert plain.interval is not None
    assert scaled.interval is not None
    found = np.array([scaled.value, scaled.interval.low, scaled.interval.high]) / unit
    assert found == pytest.approx([plain.value, plain.interval.low, plain.interval.high], rel=1e-9)
    assert scaled.verdict is plain.verdict


ENDLESS = [(0.5, -np.inf, np.inf), (0.5, 0.0, np.inf), (0.5, np.nan, np.nan), (np.nan, 0.0, 1.0), (np.inf, 0.0, 1.0)]


@pytest.mark.parametrize(("value", "low", "high"), ENDLESS)
def test_a_value_or_interval_that_is_not_finite_is_no_answer(value, low, high):
    episodes = evaluate(logs("ids"), "ids").episodes
    assert episodes is not None
    facts = Survey(logs("ids"), "", 1000, 100, (LoggerSummary("a", 1000, 0.5, 0.0, 1.0),), episodes)
    sure = Uncertainty(Interval(low, high, 0.95, "sandwich"), 0.1)
    found = {each.name: each for each in diagnose(Evidence(Solution(value), sure, facts))}
    assert found["interval"].status == "fail"
    assert "not finite" in found["interval"].sentence
    assert verdict(tuple(found.values())) is Verdict.UNSUPPORTED


@pytest.mark.parametrize("high_is_bad", [True, False])
def test_a_measure_that_does_not_exist_passes_no_check(high_is_bad):
    assert graded("x", float("nan"), 1.0, 2.0, "x is not known", high_is_bad=high_is_bad).status == "warn"
