"""Actions that are floats of a few values, such as doses, are classes where that is said."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import json_of
from mixope.base.errors import DataError

LEVELS = [0.0, 0.5, 1.0, 1.5, 2.0]
CLASSES = {"action": "id"}


def doses(episodes=40, steps=10, seed=0):
    draw = np.random.default_rng(seed)
    state = draw.integers(3, size=(episodes, steps + 1))
    action = np.array(LEVELS)[draw.integers(5, size=(episodes, steps))]
    return {
        "episode_id": np.repeat(np.arange(episodes), steps),
        "step": np.tile(np.arange(steps), episodes),
        "observation": state[:, :-1].ravel(),
        "next_observation": state[:, 1:].ravel(),
        "action": action.ravel(),
        "reward": (action - 0.3 * action**2 + 0.1 * draw.normal(size=action.shape)).ravel(),
        "truncated": np.tile(np.arange(steps) == steps - 1, episodes),
    }


def as_words(columns):
    """The same log with a word for every dose."""
    return {**columns, "action": np.char.add("dose ", columns["action"].astype(str))}


def laws(states):
    return np.tile([0.0, 0.0, 0.5, 0.5, 0.0], (len(states), 1))


def chance(states, actions):
    assert actions.dtype == np.float64  # a policy sees the doses
    return 0.5 * np.isin(actions, [1.0, 1.5])


def rule(states):
    return np.where(np.asarray(states) == 0, 0.5, 1.5)


def stored(kind, columns, folder):
    if kind == "arrays":
        return columns
    table = pa.table(columns)
    if kind == "arrow":
        return table
    if kind == "frame":
        return pytest.importorskip("pandas").DataFrame(columns)
    path = folder / f"log.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        from pyarrow import csv

        csv.write_csv(table, path)
    return path


@pytest.mark.parametrize("kind", ["arrays", "arrow", "frame", "parquet", "csv"])
@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_doses_are_what_words_for_them_would_be(kind, engine, tmp_path):
    logs = mixope.read(stored(kind, doses(), tmp_path), roles=CLASSES)
    assert logs.schema.action_kind == "discrete"
    found = mixope.evaluate(logs, mixope.TabularPolicy(laws(range(3)), [0, 1, 2], LEVELS), engine=engine)
    named = mixope.TabularPolicy(laws(range(3)), [0, 1, 2], [f"dose {level}" for level in LEVELS])
    same = mixope.evaluate(as_words(doses()), named)
    assert found.value == pytest.approx(same.value, rel=1e-12)
    assert found.interval.low == pytest.approx(same.interval.low, rel=1e-9)
    assert found.verdict is same.verdict


@pytest.mark.filterwarnings("ignore:rule chooses an action")
@pytest.mark.parametrize("policy", [mixope.CallablePolicy(laws, actions=LEVELS), chance], ids=["laws", "chance"])
def test_functions_see_doses(policy):
    table = mixope.TabularPolicy(laws(range(3)), [0, 1, 2], LEVELS)
    logs = mixope.read(doses(), roles=CLASSES)
    assert mixope.evaluate(logs, policy).value == pytest.approx(mixope.evaluate(logs, table).value, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*chooses an action")
@pytest.mark.parametrize("policy", [rule, mixope.CallablePolicy(rule, actions=LEVELS)], ids=["plain", "named"])
def test_a_rule_chooses_a_dose(policy):
    by_hand = mixope.TabularPolicy.deterministic([0.5, 1.5, 1.5], [0, 1, 2], LEVELS)
    logs = mixope.read(doses(), roles=CLASSES)
    assert mixope.evaluate(logs, policy).value == pytest.approx(mixope.evaluate(logs, by_hand).value, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*chooses an action")
def test_vectors_take_doses_as_classes_too():
    columns, draw = doses(), np.random.default_rng(1)
    for name in ("observation", "next_observation"):
        columns[name] = columns[name][:, None] + 0.1 * draw.normal(size=(len(columns[name]), 1))
    found = mixope.evaluate(mixope.read(columns, roles=CLASSES), mixope.CallablePolicy(laws, actions=LEVELS), "emp")
    words = mixope.CallablePolicy(laws, actions=[f"dose {level}" for level in LEVELS])
    assert found.value == pytest.approx(mixope.evaluate(as_words(columns), words, "emp").value, abs=0.02)


def test_a_table_in_a_file_lists_doses(tmp_path):
    log, target = stored("csv", doses(), tmp_path), tmp_path / "t.csv"
    chances = {0.0: 0.0, 0.5: 0.0, 1.0: 0.5, 1.5: 0.5, 2.0: 0.0}
    lines = [f"{state},{level},{p}" for state in range(3) for level, p in chances.items()]
    target.write_text("\n".join(["observation,action,prob", *lines]) + "\n")
    found = json_of("evaluate", log, "--target", target, "--role", "action=id")
    direct = mixope.evaluate(mixope.read(doses(), roles=CLASSES), chance)
    assert found["value"] == pytest.approx(direct.value, rel=1e-9)


def test_whole_doses_are_the_integers_that_a_policy_names():
    columns = doses()
    columns["action"] = 2.0 * columns["action"]  # 0.0 to 4.0
    table = mixope.TabularPolicy(laws(range(3)), [0, 1, 2], [0, 1, 2, 3, 4])
    assert mixope.evaluate(mixope.read(columns, roles=CLASSES), table).value > 0


def test_integers_that_a_policy_names_are_no_halves():
    from mixope.policies.keys import KeyIndex, as_actions

    index = KeyIndex(as_actions([0, 1, 2], "actions"), "action")
    assert index.find(as_actions([0.5, 1.0, 2.5], "actions")).tolist() == [-1, 1, -1]
    halves = KeyIndex(as_actions([0.5, 1.0], "actions"), "action")
    assert halves.find(as_actions([1, 2], "actions")).tolist() == [1, -1]


def test_without_a_role_floats_are_quantities_and_the_error_says_what_else_they_can_be():
    with pytest.raises(DataError) as caught:
        mixope.evaluate(doses(), mixope.TabularPolicy(laws(range(3)), [0, 1, 2], LEVELS))
    assert "roles={'action': 'id'}" in str(caught.value.hint)


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("vectors", [False, True], ids=["counted", "vectors"])
def test_a_dose_that_is_no_number_is_refused(engine, vectors):
    columns = doses()
    columns["action"][7] = np.nan
    if vectors:
        for name in ("observation", "next_observation"):
            columns[name] = columns[name][:, None] + 0.5
    with pytest.raises(DataError) as caught:
        mixope.evaluate(mixope.read(columns, roles=CLASSES), chance, engine=engine)
    assert caught.value.column == "action"
    assert caught.value.rows == (7,)


def test_floats_of_many_values_are_no_classes():
    columns = doses()
    columns["action"] = np.random.default_rng(0).normal(size=len(columns["action"]))
    with pytest.raises(DataError) as caught:
        mixope.read(columns, roles=CLASSES).schema  # noqa: B018
    assert caught.value.column == "action"


def test_a_role_of_something_else_is_refused_as_before():
    with pytest.raises(DataError):
        mixope.read(doses(), roles={"reward": "id"}).schema  # noqa: B018
