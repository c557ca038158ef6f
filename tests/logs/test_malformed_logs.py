"""Every malformed log has its own message: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ragged_logs import read

from mixope import logs as lib
from mixope.base.errors import DataError, UnknownName

GOOD: dict[str, list[Any]] = {
    "episode_id": [0, 0, 1],
    "step": [0, 1, 0],
    "observation": [1, 2, 1],
    "action": [0, 1, 0],
    "reward": [1.0, 0.0, 1.0],
    "next_observation": [2, 3, 2],
}


def table(**changes: Any) -> pa.Table:
    """The good log with some columns changed; None removes one."""
    return pa.table({name: values for name, values in (GOOD | changes).items() if values is not None})


def csv(text: str) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / "log.csv").write_text(text)
        return folder / "log.csv"

    return make


def raw(name: str, content: bytes) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def two_files(first: pa.Table, second: pa.Table) -> Callable[[Path], Any]:
    def make(folder: Path) -> Path:
        pq.write_table(first, folder / "one.parquet")
        pq.write_table(second, folder / "two.parquet")
        return folder

    return make


def near_name(folder: Path) -> str:
    (folder / "logs_2024.parquet").touch()
    return str(folder / "log_2024.parquet")


def truncated_parquet(folder: Path) -> Path:
    pq.write_table(table(), folder / "log.parquet")
    content = (folder / "log.parquet").read_bytes()
    (folder / "log.parquet").write_bytes(content[:-20])
    return folder / "log.parquet"


def empty_parquet(folder: Path) -> Path:
    pq.write_table(table().slice(0, 0), folder / "log.parquet")
    return folder / "log.parquet"


def pickled(folder: Path) -> Path:
    np.savez(folder / "log.npz", observation=np.array([{"a": 1}, None]), action=np.ones(2), reward=np.ones(2))
    return folder / "log.npz"


def _mixed_frame() -> Any:
    import pandas as pd

    return pd.DataFrame({"s": pd.Series([1, "a"], dtype=object), "a": [0, 1], "r": [1.0, 1.0]})


HEADER = "episode_id,step,observation,action,reward\n"
CANNOT_READ: dict[str, tuple[Any, list[str]]] = {
    "no observation": (table(observation=None, next_observation=None), ["no column for the observation"]),
    "no action": (table(action=None), ["no column for the action"]),
    "no reward": (table(reward=None, rewrd=[1.0, 1, 1]), ["no column for the reward", "did you mean 'rewrd'"]),
    "two aliases": (table(observation=None, s=[1, 1, 1], state=[1, 1, 1]), ["'s' and 'state'", "columns="]),
    "whole and factors": (table(**{"observation.x": [1, 1, 1]}), ["'observation' and 'observation.*'"]),
    "names differ in case": (table(Observation=[1, 1, 1]), ["same name up to case"]),
    "lone done": (table(done=[True, True, True]), ["lone done column is ambiguous", "done='truncated'"]),
    "decimals of more digits than DuckDB has": (
        table(reward=pa.array([1, 2, 3]).cast(pa.decimal256(41, 2))),
        ["unknown dtype 'decimal256", "'reward'"],
    ),
    "timestamp": (
        table(observation=pa.array([1, 2, 3], pa.timestamp("s"))),
        ["unknown dtype 'timestamp", "'observation'"],
    ),
    "nested": (table(action=[[[1.0]], [[1.0]], [[1.0]]]), ["unknown dtype 'list<", "'action'"]),
    "struct": (table(observation=[{"x": 1}] * 3), ["unknown dtype 'struct<"]),
    "words as reward": (table(reward=["a", "b", "c"]), ["unknown dtype 'string'", "'reward'", "numbers"]),
    "words as flag": (table(terminated=["no", "no", "yes"]), ["unknown dtype 'string'", "'terminated'", "0/1"]),
    "next of another type": (table(next_observation=["a", "b", "c"]), ["unknown dtype 'string'", "'next_observation'"]),
    "only nulls": (table(observation=pa.nulls(3), next_observation=None), ["nothing but nulls"]),
    "several discrete actions": (table(action=None, **{"action.x": [1, 1, 1], "action.y": [1, 1, 1]}), ["one column"]),
    "different factors": (
        table(
            observation=None,
            next_observation=None,
            **{"obs.x": [1, 1, 1], "obs.y": [1, 1, 1], "next_obs.x": [1, 1, 1], "next_obs.z": [1, 1, 1]},
        ),
        ["different factors", "y, z"],
    ),
    "mixed files": (
        two_files(table(), table(observation=["a", "b", "c"], next_observation=["a", "b", "c"])),
        ["string in one file and a number in another", "one.parquet (int)", "two.parquet (string)"],
    ),
    "a file lacks a column": (two_files(table(), table(step=None)), ["lacks a column", "two.parquet", "'step'"]),
    "no such file": (near_name, ["No such file", "did you mean", "logs_2024.parquet"]),
    "no such folder": (lambda folder: folder / "nowhere" / "x.csv", ["does not exist"]),
    "empty folder": (lambda folder: folder, ["folder holds no logs", ".parquet"]),
    "unknown ending": (raw("log.xlsx", b"PK"), ["Unknown format", ".parquet"]),
    "web": (lambda folder: "https://host/log.parquet", ["Addresses of the web are not opened", "download the file"]),
    "no such store": (lambda folder: "nowhere://host/log.parquet", ["no file system for nowhere://", "pip install"]),
    "a password": (lambda folder: "s3://key:secret@bucket/log.parquet", ["password", "s3://…@bucket"]),
    "empty csv": (raw("log.csv", b""), ["file is empty"]),
    "header only": (csv(HEADER), ["header and no rows"]),
    "no rows in parquet": (empty_parquet, ["no rows"]),
    "no rows in a table": (table().slice(0, 0), ["table has no rows"]),
    "not parquet": (raw("log.parquet", b"nonsense" * 9), ["cannot be read", "log.parquet"]),
    "cut parquet": (truncated_parquet, ["cannot be read", "log.parquet"]),
    "not arrow": (raw("log.arrow", b"nonsense" * 9), ["cannot be read", "log.arrow"]),
    "not npz": (raw("log.npz", b"nonsense" * 9), ["cannot be read", "log.npz"]),
    "not gzip": (raw("log.csv.gz", b"nonsense"), ["cannot be read", "log.csv.gz"]),
    "not utf-8": (raw("log.csv", b"observ\xe9,action,reward\n1,2,3\n"), ["not UTF-8"]),
    "python objects": (pickled, ["Python objects", "unpickled"]),
    "text in numbers": (
        csv(HEADER + "0,0,1,0,1.0\n0,1,1,0,abc\n0,2,1,0,1.0\n"),
        ["Text in a numeric column", "log.csv", "'reward'", "rows:     1", "'abc'"],
    ),
    "a name twice in csv": (csv("a,r,s,S\n1,1,1,1\n"), ["Two columns have the same name", "'s'"]),
    "a name twice in a table": (
        pa.Table.from_arrays([pa.array([1])] * 4, names=["s", "s", "a", "r"]),
        ["several columns of this name", "'s'"],
    ),
    "mixed types in a frame": (lambda folder: _mixed_frame(), ["cannot be read", "table"]),
    "ragged csv": (csv(HEADER + "0,0,1,0,1.0\n0,1,1,0\n"), ["cannot be read", "line 3"]),
}


@pytest.mark.parametrize("case", CANNOT_READ)
def test_a_log_that_cannot_be_read_says_why(tmp_path: Path, case: str) -> None:
    source, words = CANNOT_READ[case]
    with pytest.raises(DataError) as caught:
        read(source(tmp_path) if callable(source) else source)
    for part in words:
        assert part in str(caught.value)


def test_sources_that_disagree_are_named(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "ids.parquet")
    vectors = table(observation=[[0.5, 1.0]] * 3, next_observation=[[0.5, 1.0]] * 3)
    pq.write_table(vectors, tmp_path / "vectors.parquet")
    with pytest.raises(DataError, match=r"(?s)disagree on the observation.*ids.parquet and .*vectors.parquet"):
        lib.read(tmp_path / "ids.parquet", tmp_path / "vectors.parquet")
    strings = table(action=["l", "r", "l"])
    with pytest.raises(DataError, match="'action' is a string in one file"):
        lib.read(table(), strings)


def test_a_mapped_column_that_is_missing_has_a_near_name() -> None:
    with pytest.raises(DataError, match=r"(?s)mapped to 'reward' is not in the log.*did you mean 'click_rate'"):
        lib.read(table(click_rate=[1, 1, 1]), columns={"reward": "clickrate"})


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"reward": np.ones(2)}, "'reward' and 'observation' have different lengths"),
        ({"reward": np.ones((3, 2))}, "'reward' has the wrong shape"),
        ({"observation": np.ones((3, 2, 2))}, "'observation' has the wrong shape"),
        ({"observation": 3}, "an array, not a single value"),
        ({"action": np.array([1, "a", None], dtype=object)}, "'action' mixes types"),
        ({"reward": {"x": np.ones(3)}}, "cannot be a dict"),
        ({"observation": [[1], [1, 2], [3]]}, "not an array"),
        ({"observation": {"x": np.ones(3, int), "y": np.ones(4, int)}}, "'observation.y' and 'observation.x'"),
        ({"observation": np.array([b"a", b"b", b"c"])}, "unknown dtype"),
        ({"observation": np.array([]), "action": np.array([]), "reward": np.array([])}, "no rows"),
    ],
)
def test_arrays_that_do_not_fit_are_named(arrays: dict[str, Any], words: str) -> None:
    good = {"observation": np.arange(3), "action": np.arange(3), "reward": np.ones(3)}
    with pytest.raises(DataError, match=words):
        lib.Logs.from_arrays(**(good | arrays))


NAN, INF = float("nan"), float("inf")
VECTORS = {"observation": [[0.5, 1.0], [1.0, 2.0], [0.5, 1.0]], "next_observation": [[1.0, 2.0]] * 3}
ROWS: dict[str, tuple[pa.Table, str, str, list[int], int]] = {
    "null reward": (table(reward=[1.0, None, None]), "The reward is missing", "reward", [1, 2], 2),
    "nan reward": (table(reward=[1.0, NAN, 1.0]), "The reward is not a finite number", "reward", [1], 1),
    "infinite reward": (table(reward=[1.0, 1.0, -INF]), "The reward is not a finite number", "reward", [2], 1),
    "null observation": (table(observation=[None, 2, 1]), "The observation is missing", "observation", [0], 1),
    "null action": (table(action=[0, None, 1]), "The action is missing", "action", [1], 1),
    "null step": (table(step=[0, None, 0]), "The step is missing", "step", [1], 1),
    "null episode": (table(episode_id=[0, 0, None]), "The episode_id is missing", "episode_id", [2], 1),
    "half a step": (table(step=[0.0, 0.5, 0.0]), "'step' is not a whole number", "step", [1], 1),
    "half a next id": (
        table(next_observation=[2.0, 2.5, 2.0]),
        "'next_observation' is not a whole",
        "next_observation",
        [1],
        1,
    ),
    "negative step": (table(step=[-1, 0, 1]), "A step is negative", "step", [0], 1),
    "zero propensity": (table(pscore=[0.5, 0.0, 1.0]), "outside (0, 1]", "pscore", [1], 1),
    "propensity above one": (table(pscore=[0.5, 1.5, 2.0]), "outside (0, 1]", "pscore", [1, 2], 2),
    "nan propensity": (table(pscore=[0.5, NAN, 1.0]), "outside (0, 1]", "pscore", [1], 1),
    "logarithms": (
        table(pscore=[-0.5, -1.0, None]),
        "looks like log-probabilities: name the column action_logp",
        "pscore",
        [0, 1],
        2,
    ),
    "positive logarithm": (
        table(logp=[-0.5, 0.5, 0.0]),
        "log-probability of a discrete action is above 0",
        "logp",
        [1],
        1,
    ),
    "minus infinity": (table(logp=[-0.5, -INF, 0.0]), "log-probability is not a number", "logp", [1], 1),
    "nan in a vector": (
        table(**VECTORS | {"observation": [[0.5, NAN], [1.0, 2.0], [0.5, 1.0]]}),
        "The observation is not a finite number",
        "observation",
        [0],
        1,
    ),
    "infinity in a next vector": (
        table(**VECTORS | {"next_observation": [[1.0, 2.0], [1.0, INF], [1.0, 2.0]]}),
        "The next_observation is not a finite number",
        "next_observation",
        [1],
        1,
    ),
    "ragged lists": (
        table(**VECTORS | {"observation": [[0.5, 1.0], [1.0, 2.0, 3.0], [0.5, 1.0]]}),
        "The lists have different lengths",
        "observation",
        [1],
        1,
    ),
    "nan in a continuous action": (
        table(action=[0.5, NAN, 1.0]),
        "The action is not a finite number",
        "action",
        [1],
        1,
    ),
    "density of zero": (
        table(action=[0.5, 0.1, 1.0], pscore=[3.0, 0.0, 1.0]),
        "density is not a positive",
        "pscore",
        [1],
        1,
    ),
}


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("stored", ["table", "parquet"])
def test_bad_rows_are_counted_and_named(tmp_path: Path, case: str, stored: str) -> None:
    source, problem, column, rows, total = ROWS[case]
    pq.write_table(source, tmp_path / "log.parquet")
    logs = lib.read(source if stored == "table" else tmp_path / "log.parquet")
    with duckdb.connect() as connection:
        view = logs.view(connection)
        assert connection.execute(f"SELECT count(*) FROM {view}").fetchall()[0][0] == logs.table().num_rows
    error = lib.explain_rows(logs)
    assert error is not None
    assert problem in error.problem
    assert (error.column, list(error.rows), error.total) == (column, rows, total)
    assert str(error.where).endswith("log.parquet" if stored == "parquet" else "table")
    assert error.expected
    assert error.hint


def test_sound_rows_have_nothing_to_explain() -> None:
    for logs in (
        lib.read(table(pscore=[0.5, None, 1.0])),
        lib.read(table(**VECTORS)),
        read(table(step=None, episode_id=None, next_observation=None)),
        lib.read(table(terminated=[False, True, False], next_observation=[2.0, NAN, 2.0])),
    ):
        assert lib.explain_rows(logs) is None


def test_rows_are_counted_within_the_file_that_holds_them(tmp_path: Path) -> None:
    logs = lib.read(two_files(table(), table(reward=[1.0, NAN, NAN]))(tmp_path))
    error = lib.explain_rows(logs)
    assert error is not None
    assert (Path(str(error.where)).name, error.rows, error.total) == ("two.parquet", (1, 2), 2)


def test_a_stray_text_beyond_the_sample_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixope.logs.sources.text.SAMPLE", 2)
    monkeypatch.setattr("mixope.logs.sources.text.WHOLE_BYTES", 0)
    with pytest.raises(DataError, match="Text in a numeric column") as told:
        read(csv(HEADER + "0,0,1,0,1.0\n0,1,1,0,2.0\n0,2,1,0,abc\n0,3,1,0,1.0\n")(tmp_path))
    assert (told.value.column, told.value.rows, told.value.got) == ("reward", (2,), "'abc'")


def test_done_needs_a_done_column() -> None:
    with pytest.raises(DataError, match="no done column"):
        lib.read(table(), done="terminated")


def test_unknown_formats_and_keys_are_named(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "log.data")
    with pytest.raises(UnknownName, match="Did you mean 'parquet'"):
        lib.read(tmp_path / "log.data", format="parque")
    assert lib.read(tmp_path / "log.data", format="parquet").total_rows() == 3
    with pytest.raises(DataError, match="'reward' is one column"):
        lib.read(table(), columns={"reward": ["reward", "step"]})


def test_a_file_that_breaks_half_way_is_an_error_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixope.logs.sources.text.SAMPLE", 2)
    monkeypatch.setattr("mixope.logs.sources.text.WHOLE_BYTES", 0)
    good = "0,{},1,0,1.0\n"
    text = HEADER + "".join(good.format(step) for step in range(50_000)) + "0,1,2\n"
    with pytest.raises(DataError, match=r"(?s)cannot be read.*log.csv"):
        read(csv(text)(tmp_path))
    path = csv(HEADER + good.format(0))(tmp_path)
    logs = read(path)
    path.write_text(text)
    with pytest.raises(DataError, match=r"cannot be read|has changed"):
        logs.total_rows()
    with pytest.raises(DataError, match=r"cannot be read|has changed"):
        logs.table()
    with duckdb.connect() as connection, pytest.raises(DataError, match=r"(?s)(cannot be read|has changed).*log.csv"):
        logs.view(connection)
