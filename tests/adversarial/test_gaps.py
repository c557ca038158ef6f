"""Gaps that every scan passes over: no id, a flag neither true nor false, lists that are cut, NUL characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import WALK, run
from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.policies import uniform

from .test_lost_rows import HALF, ROWS, TARGET, arrays

ENDS = [bool(step == 9) for step in arrays()["step"]]
NAN = float("nan")


def some(values: Any, value: Any, rows: Any = (9, 29)) -> list[Any]:
    """The values with another one on some rows."""
    return [value if row in rows else old for row, old in enumerate(list(values))]


def lists(lengths: dict[int, int]) -> list[list[float]]:
    return [[float(row % 7)] * lengths.get(row, 2) for row in range(ROWS)]


EPISODES = [float(episode) for episode in arrays()["episode_id"]]
GAPS: dict[str, tuple[dict[str, Any], str, tuple[int, ...]]] = {
    "terminated is null": ({"terminated": some(ENDS, None)}, "'terminated' is neither true nor false", (9, 29)),
    "terminated is NaN": ({"terminated": some(map(float, ENDS), NAN)}, "'terminated' is neither true nor", (9, 29)),
    "terminated is 2": ({"terminated": some(map(int, ENDS), 2)}, "'terminated' is neither true nor false", (9, 29)),
    "terminated is NaN beside 0": (
        {"terminated": some([0.0] * ROWS, NAN)},
        "'terminated' is neither true nor",
        (9, 29),
    ),
    "truncated is null": ({"truncated": some(ENDS, None)}, "'truncated' is neither true nor false", (9, 29)),
    "episodes are NaN": ({"episode_id": some(EPISODES, NAN, range(10, 20))}, "The episode_id is missing", (10, 11)),
    "episodes are null": ({"episode_id": some(EPISODES, None, range(10, 20))}, "The episode_id is missing", (10, 11)),
    "a label with NUL": ({"policy_id": some(["a"] * ROWS, "a\0")}, "The policy_id holds a NUL", (9, 29)),
    "an episode with NUL": (
        {"episode_id": some(map(str, EPISODES), "0\0", range(10, 20))},
        "The episode_id holds a NUL",
        (10, 11),
    ),
    "a state with NUL": (
        {"observation": some(["a", "b"] * 30, "a\0"), "next_observation": ["b", "a"] * 30},
        "The observation holds a NUL",
        (9, 29),
    ),
    "a next state with NUL": (
        {"observation": ["a", "b"] * 30, "next_observation": some(["b", "a"] * 30, "a\0")},
        "The next_observation holds a NUL",
        (9, 29),
    ),
    "a longer state": ({"observation": lists({5: 3}), "next_observation": lists({})}, "different lengths", (5,)),
    "a longer next state": ({"observation": lists({}), "next_observation": lists({7: 4})}, "different lengths", (7,)),
    "a shorter state": ({"observation": lists({5: 1}), "next_observation": lists({})}, "different lengths", (5,)),
}


@pytest.mark.parametrize("stored", ["table", "parquet", "dataset"])
@pytest.mark.parametrize("case", GAPS)
def test_a_gap_is_refused_with_its_rows(case, stored, tmp_path):
    changes, words, rows = GAPS[case]
    given: Any = pa.table(arrays(**changes))
    if stored != "table":
        pq.write_table(given, tmp_path / "log.parquet")
        given = tmp_path / "log.parquet"
    if stored == "dataset":
        given = pa.dataset.dataset(given)
    with pytest.raises(DataError, match=words) as told:
        mixope.evaluate(mixope.read(given), HALF)
    assert told.value.rows[: len(rows)] == rows


def test_the_command_says_the_same(tmp_path):
    pq.write_table(pa.table(arrays(terminated=some(ENDS, None))), tmp_path / "log.parquet")
    (tmp_path / "target.csv").write_text(TARGET)
    result = run("evaluate", tmp_path / "log.parquet", "--target", tmp_path / "target.csv")
    assert result.exit_code == 3
    assert "'terminated' is neither true nor false" in result.stderr


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_a_flag_without_a_value_is_absent_and_a_note_says_so(flag):
    given = pa.table(arrays(**{flag: pa.nulls(ROWS)}))
    with pytest.warns(MixopeWarning, match=f"column '{flag}' holds nothing and is left out"):
        logs = mixope.read(given)
    plain = mixope.evaluate(mixope.read(pa.table(arrays())), HALF)
    assert mixope.evaluate(logs, HALF).value == pytest.approx(plain.value, abs=1e-12)


def test_sound_flags_are_not_looked_at_twice(tmp_path):
    pq.write_table(pa.table(arrays(terminated=ENDS)), tmp_path / "log.parquet")
    logs = mixope.read(tmp_path / "log.parquet")
    assert mixope.logs.explain_gaps(logs) is None
    assert np.isfinite(mixope.evaluate(logs, HALF).value)


@pytest.mark.parametrize("column", ["reward", "action_prob"])
@pytest.mark.parametrize("stored", ["table", "csv"])
def test_true_and_false_are_no_numbers(column, stored, tmp_path):
    given: Any = pa.table(arrays(**{column: [True, False] * 30}))
    if stored == "csv":
        given = mixope.logs.write(arrays(**{column: [True, False] * 30}), tmp_path / "log.csv") or tmp_path / "log.csv"
    with pytest.raises(DataError, match="numbers; if true and false stand for 1 and 0") as told:
        mixope.read(given)
    assert told.value.column == column


def too_many(observations: Any, actions: Any) -> Any:
    """Two actions, as it was written: a third one is taken for the first."""
    return np.where(np.asarray(actions) == 1, 0.3, 0.7)


@pytest.mark.parametrize("states", ["ids", "vectors"])
def test_a_function_that_gives_a_third_action_a_chance_beyond_one_is_refused(states):
    draw = np.random.default_rng(1)
    given = arrays(action=draw.integers(0, 3, ROWS))
    if states == "vectors":
        points = draw.normal(size=(ROWS + 1, 2))
        given |= {"observation": points[:-1], "next_observation": points[1:]}
    with pytest.raises(DataError, match="more than the whole probability") as told:
        mixope.evaluate(mixope.Logs.from_arrays(**given), too_many)
    assert "1.7" in str(told.value)


@pytest.mark.parametrize("seed", [-1, 2**64, 10**30, 0.5, True])
def test_a_seed_has_64_bits(seed):
    with pytest.raises(UsageError, match="64 bits"):
        mixope.evaluate(mixope.Logs.from_arrays(**arrays()), HALF, seed=seed)


@pytest.mark.parametrize("command", [("evaluate", *WALK), ("simulate", "walk", "-o", "x"), ("demo", "-o", "x")])
def test_a_seed_beyond_64_bits_is_refused_by_every_command(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*command, "--seed", 2**64)
    assert result.exit_code == 2
    assert "--seed" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("estimator", ["emp-single", "kl-emp"])
def test_an_estimator_by_logger_says_so_where_no_logger_is_named(estimator):
    told = mixope.evaluate(mixope.Logs.from_arrays(**arrays()), HALF, estimator=estimator).remarks
    assert any("these logs name none" in remark for remark in told)
    named = arrays(policy_id=np.repeat(["a", "b"], 30))
    told = mixope.evaluate(mixope.Logs.from_arrays(**named), HALF, estimator=estimator).remarks
    assert not any("these logs name none" in remark for remark in told)


@pytest.mark.parametrize("states", ["ids", "vectors"])
@pytest.mark.parametrize("later", [1, 2])
def test_a_logger_whose_steps_begin_later_is_named(states, later):
    given = arrays(policy_id=np.repeat(["a", "b"], 30), step=arrays()["step"] + np.repeat([0, later], 30))
    if states == "vectors":
        points = np.random.default_rng(1).normal(size=(ROWS + 1, 1))
        given |= {"observation": points[:-1], "next_observation": points[1:]}
    told = mixope.evaluate(mixope.Logs.from_arrays(**given), HALF if states == "ids" else uniform([0, 1])).alerts
    said = "'b' counts steps from 1 and others from 0" if later == 1 else "no episode of 'b' begins at step 0"
    assert any(said in alert for alert in told)


def test_order_that_is_trusted_is_said_to_be():
    given = arrays(step=None, next_observation=None, truncated=ENDS)
    with pytest.warns(MixopeWarning, match="Nothing tells whether rows are in the order in which they happened"):
        logs = mixope.read({name: values for name, values in given.items() if values is not None})
    found = mixope.evaluate(logs, HALF)
    assert any("steps and next observations are taken from the row order" in alert for alert in found.alerts)
