"""The view (SQL) and the table (NumPy) hold the same rows, on every format and every derivation."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ragged_logs import arrow, assert_parity, ragged, read, rows_of, without

from mixope import logs as lib

ABSENT = ("episode_id", "step", "next_observation", "terminated", "truncated", "policy_id")
SUBSETS = list(chain.from_iterable(combinations(ABSENT, k) for k in range(len(ABSENT) + 1)))
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(ragged(), st.sampled_from(SUBSETS))
def test_view_and_table_agree_whatever_is_absent(log: dict[str, list[Any]], absent: tuple[str, ...]) -> None:
    assert_parity(read(arrow(without(log, *absent))))


@settings(QUICK, max_examples=15)
@given(ragged(), st.sampled_from(SUBSETS), st.sampled_from(["parquet", "csv", "arrow"]), st.integers(0, 99))
def test_an_episode_may_straddle_files(
    tmp_path_factory: Any, log: dict[str, list[Any]], absent: tuple[str, ...], format: str, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("straddle")
    table = arrow(without(log, *absent))
    cut = 1 + cut % max(1, table.num_rows - 1)
    for name, part in (("1", table.slice(0, cut)), ("2", table.slice(cut))):
        if part.num_rows:
            save(part, folder / f"{name}.{format}")
    logs = read(str(folder / f"*.{format}"))
    assert_parity(logs)
    whole = read(table)
    if format != "csv":
        assert rows_of(logs.table()) == rows_of(whole.table())
    assert logs.total_rows() == table.num_rows


def save(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        pyarrow.csv.write_csv(table, path)


def loop_oracle(log: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    """By hand: (episode, step, observation, next observation, unfollowed), next from the following row."""
    rows = [dict(zip(log, values, strict=True)) for values in zip(*log.values(), strict=True)]
    out = []
    for row in rows:
        same = [r for r in rows if (r["policy_id"], r["episode_id"]) == (row["policy_id"], row["episode_id"])]
        later = sorted((r for r in same if r["step"] > row["step"]), key=lambda r: r["step"])
        follows = later[0]["observation"] if later and not (row["terminated"] or row["truncated"]) else None
        unfollowed = not row["terminated"] and follows is None
        out.append((row["episode_id"], row["step"], row["observation"], follows, unfollowed))
    return sorted(out, key=repr)


def test_the_next_row_is_taken_and_the_last_one_is_marked() -> None:
    log = {
        "episode_id": [0, 1, 0, 1, 0, 2],
        "policy_id": ["a"] * 6,
        "step": [0, 0, 1, 1, 2, 0],
        "observation": [5, 6, 7, 8, 9, 4],
        "action": [0] * 6,
        "reward": [1.0] * 6,
        "terminated": [False, False, False, True, False, False],
        "truncated": [False] * 6,
    }
    logs = read(arrow(log))
    found = logs.table(["episode_id", "step", "observation", "next_observation", "unfollowed"])
    assert rows_of(found) == loop_oracle(log)
    assert (found.num_rows, found.column("unfollowed").to_pylist().count(True)) == (logs.total_rows(), 2)
    assert "last row" in logs.drop_reason


SMALL = {
    "observation": [0, 1, 2, 0, 1],
    "action": ["l", "r", "l", "l", "r"],
    "reward": [0.0, 1.0, 2.5, 1.0, 0.0],
    "next_observation": [1, 2, None, 1, 2],
    "episode_id": [0, 0, 0, 1, 1],
    "step": [0, 1, 2, 0, 1],
    "terminated": [False, False, True, False, False],
    "action_prob": [0.5, 0.5, None, 0.25, 1.0],
}


@pytest.mark.parametrize("format", ["parquet", "pq", "csv", "csv.gz", "tsv", "arrow", "feather", "ipc", "stream.arrow"])
def test_every_file_format_gives_the_same_rows(tmp_path: Path, format: str) -> None:
    table, path = arrow(SMALL), tmp_path / f"log.{format}"
    if format in {"parquet", "pq"}:
        pq.write_table(table, path)
    elif format == "stream.arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    elif format in {"csv", "tsv"}:
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter="\t" if format == "tsv" else ","))
    elif format == "csv.gz":
        with pa.CompressedOutputStream(str(path), "gzip") as sink:
            pyarrow.csv.write_csv(table, sink)
    else:
        pyarrow.feather.write_feather(table, path)
    logs = lib.read(path)
    assert_parity(logs)
    assert rows_of(logs.table()) == rows_of(lib.read(table).table())
    assert not logs.in_memory


def test_npz_and_dicts_and_from_arrays_agree(tmp_path: Path) -> None:
    arrays = {
        "obs": np.array([0, 1, 2, 0]),
        "actions": np.array([1, 0, 1, 0], dtype=np.int8),
        "rewards": np.array([1, 2, 3, 4], dtype=np.float32),
        "next_obs": np.array([1, 2, 0, 1]),
        "episode": np.array([0, 0, 0, 1]),
        "t": np.array([0, 1, 2, 0]),
        "terminals": np.array([0, 0, 1, 0]),
    }
    np.savez(tmp_path / "log.npz", **arrays, seed=np.array(3), extra=np.arange(9))
    given = lib.Logs.from_arrays(
        observation=arrays["obs"],
        action=arrays["actions"],
        reward=arrays["rewards"],
        next_observation=arrays["next_obs"],
        episode_id=arrays["episode"],
        step=arrays["t"],
        terminated=arrays["terminals"],
    )
    for logs in (lib.read(tmp_path / "log.npz"), lib.read(arrays), given):
        assert logs.in_memory
        assert_parity(logs)
        assert logs.table().equals(given.table())
    assert given.table(["next_observation"]).column(0).to_pylist() == [1, 2, None, 1]


def test_data_frames_readers_relations_and_datasets_are_tables() -> None:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

    table = arrow(SMALL)
    expected = rows_of(lib.read(table).table())
    connection = duckdb.connect()
    connection.register("small", table)
    for source in (
        table.to_batches()[0],
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        ds.dataset(table),
        pd.DataFrame(SMALL),
        pl.DataFrame(SMALL),
        connection.sql("SELECT *, 0.5 AS noise FROM small"),
    ):
        logs = lib.read(source)
        assert_parity(logs)
        assert rows_of(logs.table()) == expected
    connection.close()


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.float64()), pa.list_(pa.float32(), 2), pa.large_list(pa.float64())], ids=str
)
@pytest.mark.parametrize("format", ["table", "parquet", "arrow"])
def test_lists_of_floats_are_vectors(tmp_path: Path, type_: pa.DataType, format: str) -> None:
    table = pa.table(
        {
            "observation": pa.array([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]], type_),
            "action": pa.array([[0.25], [0.5], [0.75]], pa.list_(pa.float64(), 1)),
            "reward": [1.0, 2.0, 3.0],
            "next_observation": pa.array([[1.5, 2.0], [2.5, 3.0], None], type_),
            "terminated": [False, False, True],
        }
    )
    if format != "table":
        save(table, tmp_path / f"log.{format}")
    logs = read(table if format == "table" else tmp_path / f"log.{format}")
    assert (logs.schema.observation_kind, logs.schema.action_kind) == ("vector", "continuous")
    assert logs.schema.observation == ("observation.0", "observation.1")
    assert logs.schema.action == ("action.0",)
    assert_parity(logs)
    assert logs.table(["next_observation.1"]).column(0).to_pylist() == [2.0, 3.0, None]


def test_vectors_from_arrays_from_columns_and_from_one_column() -> None:
    rng = np.random.default_rng(0)
    states, action, reward = rng.normal(size=(6, 3)), rng.normal(size=(6, 2)), rng.normal(size=6)
    logs = lib.Logs.from_arrays(observation=states, action=action, reward=reward)
    assert logs.schema.observation == ("observation.0", "observation.1", "observation.2")
    assert logs.schema.action == ("action.0", "action.1")
    assert_parity(logs)
    named = read({"state.x": states[:, 0], "state.gear": np.arange(6), "action": action[:, 0], "reward": reward})
    assert named.schema.observation == ("observation.x", "observation.gear")
    assert named.schema.types["observation.gear"] == "float"
    assert_parity(named)
    single = read({"observation": states[:, 0], "action": action[:, 0], "reward": reward})
    assert (single.schema.observation, single.schema.action) == (("observation.0",), ("action",))
    assert "store integers" in " ".join(single.notes)
    assert_parity(single)


def test_factors_from_an_integer_matrix_or_a_dict() -> None:
    cells = np.array([[0, 1], [1, 1], [2, 0]])
    common = {"action": np.array(["a", "b", "a"]), "reward": np.ones(3)}
    matrix = lib.Logs.from_arrays(observation=cells, **common)
    named = lib.Logs.from_arrays(observation={"cell": cells[:, 0], "who": np.array(["x", "y", "z"])}, **common)
    assert matrix.schema.observation_kind == named.schema.observation_kind == "factors"
    assert matrix.schema.next_observation == ("next_observation.0", "next_observation.1")
    assert named.schema.observation == ("observation.cell", "observation.who")
    assert_parity(matrix)
    assert_parity(named)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([True, False, True]),
        pa.array([1, 2, 3], pa.uint8()),
        pa.array([1, 2, 2**64 - 1], pa.uint64()),
        pa.array([1, 2, 3]).cast(pa.decimal128(19, 0)),
        pa.array([Decimal(1), Decimal(2**64), Decimal(-(2**63))], pa.decimal128(30, 0)),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([7, 8, 7]).dictionary_encode(),
        pa.array(["a", "b", None], pa.large_string()),
        pa.array(["a", "b", "c"], pa.string_view()),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("format", ["table", "parquet"])
def test_ids_of_any_storage_become_int64_or_string(tmp_path: Path, array: pa.Array, format: str) -> None:
    table = pa.table({"s": array, "a": array, "r": pa.array([1, 2, 3], pa.int16()), "policy": array, "episode": array})
    if format == "parquet":
        pq.write_table(table, tmp_path / "log.parquet")
    logs = read(table if format == "table" else tmp_path / "log.parquet")
    assert {logs.schema.types["observation"], logs.schema.types["action"]} <= {"int", "string"}
    assert_parity(logs)


def test_integers_with_gaps_come_back_from_floats() -> None:
    log = {"s": [1, 2, 3], "a": [0, 1, 0], "r": [1.0, 1, 1], "s_next": [2.0, 3.0, float("nan")], "t": [0.0, 1.0, 2.0]}
    logs = read({name: np.array(values) for name, values in log.items()}, columns=None)
    assert_parity(logs)
    found = logs.table(["next_observation", "step"]).to_pydict()
    assert found == {"next_observation": [2, 3, None], "step": [0, 1, 2]}
    assert "null on a row" in logs.drop_reason


def test_log_probabilities_become_propensities() -> None:
    log = {"s": [1, 2], "a": [0, 1], "r": [1.0, 1.0], "s_next": [2, 1], "logp": [0.0, np.log(0.25)]}
    logs = read({name: np.array(values) for name, values in log.items()})
    assert_parity(logs)
    assert logs.table(["propensity"]).column(0).to_pylist() == pytest.approx([1.0, 0.25])


def test_one_based_logs_start_at_their_smallest_step() -> None:
    log = without(SMALL, "step") | {"step": [1, 2, 3, 2, 3]}
    logs = lib.read(arrow(log))
    assert logs.step_base == 1
    assert logs.table(["start"]).column(0).to_pylist() == [True, False, False, False, False]


@pytest.mark.parametrize("format", ["table", "parquet", "csv"])
def test_nan_and_infinity_are_no_flags_and_no_ids(tmp_path: Path, format: str) -> None:
    table = pa.table(
        {
            "observation": [0, 1, 2, 3],
            "action": [0, 1, 0, 1],
            "reward": [0.5, float("nan"), float("inf"), 1.0],
            "next_observation": [1.0, 2.0, 3.0, float("nan")],
            "terminated": [1.0, float("nan"), 0.0, float("inf")],
            "step": [0.0, 1.0, float("inf"), float("nan")],
            "episode_id": [float("nan"), 1.0, 1.5, 1.0],
            "action_logp": [0.0, -1000.0, 1000.0, float("nan")],
        }
    )
    if format != "table":
        save(table, tmp_path / f"log.{format}")
    logs = lib.read(table if format == "table" else tmp_path / f"log.{format}")
    assert_parity(logs)
    assert logs.table(["terminated"]).column(0).to_pylist() == [True, False, False, False]
    assert logs.table(["unfollowed"]).column(0).to_pylist() == [False, False, False, True]


def test_logs_never_change() -> None:
    logs = lib.read(arrow(SMALL))
    with pytest.raises(AttributeError, match="never change"):
        logs.notes = ()


def test_frames_saved_with_their_index_and_categories_are_read(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    pd.DataFrame(SMALL).to_csv(tmp_path / "log.csv")
    expected = rows_of(lib.read(arrow(SMALL)).table())
    assert rows_of(lib.read(tmp_path / "log.csv").table()) == expected
    for frame in (
        pl.DataFrame(SMALL).with_columns(pl.col("action").cast(pl.Categorical)),
        pd.DataFrame(SMALL).astype({"action": "category", "next_observation": "Int64"}),
    ):
        logs = lib.read(frame)
        assert_parity(logs)
        assert rows_of(logs.table()) == expected


def test_half_floats_and_integer_lists() -> None:
    half = pa.array(np.array([0.5, 1.5], dtype=np.float16))
    pairs = pa.array([[1, 2], [3, 4]], pa.list_(pa.int32()))
    odd = pa.array([{"x": 1}, None])
    logs = read(pa.table({"observation": pairs, "action": [[0], [1]], "reward": [1, 2], "pscore": half, "odd": odd}))
    assert (logs.schema.observation_kind, logs.schema.action) == ("factors", ("action",))
    assert logs.schema.observation == ("observation.0", "observation.1")
    assert_parity(logs)


@pytest.mark.parametrize("format", ["table", "parquet"])
def test_decimals_are_the_numbers_that_they_stand_for(tmp_path: Path, format: str) -> None:
    amounts = pa.array([Decimal("1.25"), Decimal("2.00"), None], pa.decimal128(9, 2))
    ends = pa.array([Decimal("0.0"), Decimal("1.0"), Decimal("0.0")], pa.decimal128(2, 1))
    table = pa.table(
        {"s": [1, 2, 3], "s_next": [2, 3, 1], "a": [0, 1, 0], "r": amounts, "policy": amounts, "terminated": ends}
    ).append_column("t", pa.array([Decimal("0.0"), Decimal("1.0"), Decimal("2.0")]))
    if format == "parquet":
        pq.write_table(table, tmp_path / "log.parquet")
    logs = read(table if format == "table" else tmp_path / "log.parquet")
    assert_parity(logs)
    assert logs.table(["reward", "policy_id", "step"]).to_pylist()[1] == {"reward": 2.0, "policy_id": "2", "step": 1}


def test_views_of_one_connection_do_not_disturb_each_other() -> None:
    import duckdb

    first, second = lib.read(arrow(SMALL)), lib.read(arrow(SMALL | {"reward": [9.0] * 5}))
    with duckdb.connect() as connection:
        names = [first.view(connection), second.view(connection), first.view(connection)]
        sums = [connection.execute(f"SELECT sum(reward) FROM {name}").fetchall()[0][0] for name in names]
    assert len(set(names)) == 3
    assert sums == [4.5, 45.0, 4.5]
