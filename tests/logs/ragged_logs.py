"""Ragged logs drawn by Hypothesis, and the parity of the two ways in."""

from __future__ import annotations

import math
import warnings
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from mixope import logs as lib
from mixope.base.errors import MixopeWarning


def read(*sources: Any, **options: Any) -> lib.Logs:
    """Read without the warnings about derived columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixopeWarning)
        return lib.read(*sources, **options)


def rows_of_view(logs: lib.Logs) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        name = logs.view(connection)
        table = connection.sql(f"SELECT * FROM {name}").to_arrow_table()
    assert table.column_names == list(logs.schema.columns)
    assert [_plain(field.type) for field in table.schema] == [_plain(field.type) for field in logs.table().schema]
    return rows_of(table)


def _plain(type_: pa.DataType) -> str:
    return str(type_).replace("large_", "").replace("_view", "")


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order of their own; nan made equal to itself."""
    rows = [tuple(_same(value) for value in row.values()) for row in table.to_pylist()]
    return sorted(rows, key=repr)


def _same(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def assert_parity(logs: lib.Logs) -> None:
    """The view and the table hold the same rows, and some columns alone are those of the whole."""
    table = logs.table()
    assert table.column_names == list(logs.schema.columns)
    assert rows_of_view(logs) == rows_of(table)
    for name in ("start", "step", "source", *logs.schema.next_observation):
        assert logs.table([name]).column(name).equals(table.column(name))


@st.composite
def ragged(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns of a log: episodes of 1 to 4 steps, some ended, ids of either type or factors."""
    kind = draw(st.sampled_from(["int", "string", "factors"]))
    base = draw(st.sampled_from([0, 1]))
    rows: list[dict[str, Any]] = []
    for episode in range(draw(st.integers(1, 5))):
        length = draw(st.integers(1, 4))
        end = draw(st.sampled_from(["terminated", "truncated", "open"]))
        logger = draw(st.sampled_from(["a", "b", None]))
        states = draw(st.lists(st.integers(0, 3), min_size=length + 1, max_size=length + 1))
        for t in range(length):
            last = t == length - 1
            row: dict[str, Any] = {"episode_id": episode}
            row |= {"policy_id": logger, "step": base + t, "action": draw(st.integers(0, 1))}
            row |= {"reward": draw(st.sampled_from([0.5, -1.0, 3.0]))}
            row |= _observation("observation", states[t], kind)
            gone = last and end == "terminated"
            row |= _observation("next_observation", None if gone else states[t + 1], kind)
            row |= {"terminated": gone, "truncated": last and end == "truncated"}
            row |= {"action_prob": draw(st.sampled_from([0.25, 1.0, None]))}
            rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def _observation(name: str, state: int | None, kind: str) -> dict[str, Any]:
    if kind == "factors":
        return {
            f"{name}.x": None if state is None else state % 2,
            f"{name}.y": None if state is None else f"y{state // 2}",
        }
    return {name: state if kind == "int" or state is None else f"s{state}"}


def without(columns: dict[str, list[Any]], *notions: str) -> dict[str, list[Any]]:
    """The log without some notions, factors and all."""
    return {name: values for name, values in columns.items() if name.partition(".")[0] not in notions}


def arrow(columns: dict[str, list[Any]]) -> pa.Table:
    """A table whose empty columns still have a type."""
    strings = {n for n, v in columns.items() if any(isinstance(x, str) for x in v)}
    strings |= {f"next_{name}" for name in strings} | {"policy_id"}

    def array(name: str, values: list[Any]) -> pa.Array:
        if name in strings:
            return pa.array(values, pa.string())
        empty = all(value is None for value in values)
        floats = name in {"reward", "action_prob"}
        return pa.array(values, pa.float64() if floats else pa.int64() if empty else None)

    return pa.table({name: array(name, values) for name, values in columns.items()})
