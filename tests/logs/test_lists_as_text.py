"""Lists of numbers that were saved as text are vectors, not ids that are each seen once."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError

STATES = [(0.1, 0.2), (0.3, -4.0), (0.001, 2.0), (5.5, 0.25)]
WAYS = {
    "JSON": ["[0.1, 0.2]", "[0.3,-4.0]", "[1e-3, 2]", "[5.5, 0.25]"],
    "NumPy": ["[0.1 0.2]", "[ 0.3 -4. ]", "[1.e-03\n 2.e+00]", "[5.5  0.25]"],
    "tuples": ["(0.1, 0.2)", "(0.3, -4.0)", "(.001, 2.)", "( 5.5 , 0.25 , )"],
    "arrays": ["array([0.1, 0.2])", "array([0.3, -4.], dtype=float32)", "tensor([0.001, 2.])", "array([5.5, 0.25])"],
    "scalars": ["[np.float32(0.1), np.float32(0.2)]", "(np.float64(0.3), -4.0)", "[0.001, 2.0]", "[5.5, 0.25]"],
}


def log(states, **more):
    columns = {"episode_id": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": states, "action": [0, 1, 0, 1]}
    return pd.DataFrame(columns | {"reward": [1.0, 0.0, 2.0, 0.5], "terminated": [False, True] * 2} | more)


def coordinates(logs, name="observation"):
    table = logs.table()
    return list(zip(*(table.column(f"{name}.{i}").to_pylist() for i in range(2)), strict=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ending", [".csv", ".parquet", "frame"])
def test_lists_with_fractions_are_vectors(way, ending, tmp_path):
    given = log(WAYS[way])
    if ending != "frame":
        path = tmp_path / f"log{ending}"
        given.to_csv(path, index=False) if ending == ".csv" else pq.write_table(pa.table(given), path)
        given = str(path)
    with pytest.warns(mixope.MixopeWarning, match=r"lists of 2 numbers as text and is read as a vector"):
        logs = mixope.read(given)
    assert logs.schema.observation_kind == "vector"
    assert coordinates(logs) == STATES
    with logs.connect() as connection:
        view = logs.view(connection)
        query = f'SELECT "observation.0", "observation.1" FROM {view} ORDER BY episode_id, step'
        found = connection.execute(query).fetchall()
    assert found == STATES


def test_next_states_and_actions_may_be_lists_too(tmp_path):
    following = ["[0.3, 4.0]", None, "[7, 8]", None]
    path = tmp_path / "log.csv"
    log(WAYS["JSON"], next_state=following, action=WAYS["NumPy"]).to_csv(path, index=False)
    with pytest.warns(mixope.MixopeWarning, match="read as a vector"):
        logs = mixope.read(str(path))
    assert coordinates(logs, "next_observation")[::2] == [(0.3, 4.0), (7.0, 8.0)]
    assert logs.schema.action_kind == "continuous"
    assert coordinates(logs, "action") == STATES


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_parts_of_such_a_log_travel_and_hold_the_same_rows():
    logs = mixope.read(log(WAYS["JSON"], next_state=WAYS["NumPy"]))
    parts = [pickle.loads(pickle.dumps(part)) for part in logs.fragments(rows=2)]
    tables = [part.table() for part in parts]
    assert len(tables) > 1
    assert pa.concat_tables(tables).select(["observation.1"]) == logs.table(["observation.1"])


def test_missing_and_unknown_numbers_are_missing_not_zero():
    states = ["[0.1, nan]", "[0.3, None]", "[1.0, 2.0]", "[5.5, 0.25]"]
    with pytest.warns(mixope.MixopeWarning, match="read as a vector"):
        logs = mixope.read(log(states), missing="keep")
    assert any("missing on 2 of 4 rows" in note for note in logs.notes)


BROKEN = {
    "lengths": (["[0.1, 0.2]", "[0.3, 4.0]", "[0.1]", "[5.5, 0.25]"], "different lengths", "[0.1]"),
    "a word": (["[0.1, 0.2]", "[0.3, 4.0]", "goal", "[5.5, 0.25]"], "no list of numbers", "goal"),
    "cut": (["[0.1, 0.2]", "[0.3, 4.0]", "[0.1, 0.", "[5.5, 0.25]"], "no list of numbers", "[0.1, 0."),
    "empty": (["[0.1, 0.2]", "[0.3, 4.0]", "[]", "[5.5, 0.25]"], "no list of numbers", "[]"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_row_without_such_a_list_is_named(case, tmp_path):
    states, words, got = BROKEN[case]
    path = tmp_path / "log.csv"
    log(states).to_csv(path, index=False)
    with pytest.raises(DataError, match=words) as error:
        mixope.read(str(path))
    assert (error.value.rows, error.value.column, error.value.got) == ((2,), "state", repr(got))
    result = run("inspect", path)
    assert result.exit_code == 3
    assert "--role state=id" in result.stderr


@pytest.mark.parametrize("text", ["[[0.1, 0.2], [0.3, 0.4]]", "[0.1 0.2 ... 0.9]", "[0.1; 0.2]"])
def test_lists_that_cannot_be_read_are_no_ids_either(text):
    with pytest.raises(DataError, match="not like plain ones"):
        mixope.read(log([text] * 4))


def test_the_user_may_say_that_each_text_is_an_id():
    logs = mixope.read(log(WAYS["JSON"]), roles={"state": "id"})
    assert logs.schema.observation_kind == "id"


def test_lists_of_whole_numbers_are_ids_unless_the_user_says_otherwise():
    cells = ["(3, 4)", "(3, 5)", "(3, 4)", "(4, 4)"]
    with pytest.warns(mixope.MixopeWarning, match="each text is taken as an id"):
        logs = mixope.read(log(cells, action=["[0, 1]", "[1, 1]"] * 2))
    assert logs.table(["observation"]).column("observation").to_pylist() == cells
    assert logs.table(["action"]).column("action").to_pylist() == ["[0, 1]", "[1, 1]"] * 2
    numbers = mixope.read(log(cells), roles={"state": "number"})
    assert coordinates(numbers) == [(3.0, 4.0), (3.0, 5.0), (3.0, 4.0), (4.0, 4.0)]


@pytest.mark.parametrize(
    "texts", [["(0.5, 1.0]", "(1.0, 2.5]"], ["[v1.2]", "[v1.3]"], ["(0.5)", "(1.5)"], ["0.5-1", "1-2"]]
)
def test_intervals_and_names_in_brackets_stay_ids(texts):
    assert mixope.read(log(texts * 2)).table(["observation"]).column("observation").to_pylist() == texts * 2


@pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")
def test_a_list_as_text_is_the_list(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(4, 2))
    as_text = mixope.read(log([str(row.tolist()) for row in numbers]))
    as_lists = mixope.read(log(numbers.tolist()))
    assert as_text.table().equals(as_lists.table())
