"""JSON lines: the rows of the table, types from all lines, and text that looks like a time stays text."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

import mixope
from cli.running import run
from mixope.base.errors import DataError

ROWS = [
    {
        "episode_id": f"2026-01-0{1 + i // 5}",
        "step": i % 5,
        "state": f"2026-01-01T00:00:0{i % 3}Z",
        "action": i % 2,
        "reward": i if i < 9 else 0.5,
        "terminated": i % 5 == 4,
    }
    for i in range(10)
]


@pytest.mark.parametrize("ending", ["jsonl", "ndjson", "jsonl.gz"])
def test_lines_have_the_rows_of_the_table(tmp_path, ending):
    content = "\n".join(map(json.dumps, ROWS)).encode()
    path = tmp_path / f"log.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    rewards = [{**row, "reward": float(row["reward"])} for row in ROWS]
    assert mixope.read(path).table().equals(mixope.read(pa.Table.from_pylist(rewards)).table())
    assert mixope.read(path).fingerprint() == mixope.read(path).fingerprint()


def test_lists_are_vectors(tmp_path):
    rows = [{**row, "state": [0.5 * n, 1.0]} for n, row in enumerate(ROWS)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert mixope.read(tmp_path / "log.jsonl").schema.observation == ("observation.0", "observation.1")


def test_a_line_more_changes_the_log(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    logs = mixope.read(path)
    path.write_text("\n".join(map(json.dumps, ROWS[:5])))
    with pytest.raises(mixope.DataError, match="has changed since it was opened"):
        logs.table()


@pytest.mark.parametrize("content", ["", "[1, 2]\n", '{"a": 1}\n{"a":\n', "x\n"])
def test_what_is_no_object_per_line_is_said_with_status_3(tmp_path, content):
    (tmp_path / "log.jsonl").write_text(content)
    result = run("inspect", tmp_path / "log.jsonl")
    assert result.exit_code == 3
    assert "log.jsonl" in result.stderr


def lines_of(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return mixope.read(path).table()


MANY = [(190, 0, 7), (250, 0, 7), (2_000, 0, 7), (250, 11_000, 7), (250, 0, None), (250, 0, {"a": {"b": [1, 2]}})]


@pytest.mark.parametrize(("keys", "late", "value"), MANY)
def test_many_keys_that_most_lines_leave_out_are_columns(keys, late, value, tmp_path):
    """Those in lines of which the first ``late`` have none of them."""
    rng = np.random.default_rng(0)
    rows = [{**ROWS[i % 10], "episode_id": i // 10, "reward": i % 7} for i in range(late + 400)]
    extra = [{f"extra {key}": value for key in rng.choice(keys, keys // 20, replace=False)} for _ in rows[late:]]
    more = [*rows[:late], *({**row, **besides} for row, besides in zip(rows[late:], extra, strict=True))]
    assert lines_of(tmp_path / "log.jsonl", more).equals(lines_of(tmp_path / "plain.jsonl", rows))


def test_a_line_that_is_no_object_is_still_refused_among_many_keys(tmp_path):
    lines = [json.dumps({"reward": 1, f"extra {i}": i}) for i in range(300)]
    (tmp_path / "log.jsonl").write_text("\n".join([*lines[:200], "[1, 2]", *lines[200:]]))
    with pytest.raises(DataError) as refused:
        mixope.read(tmp_path / "log.jsonl")
    assert refused.value.expected == "one object per line"
