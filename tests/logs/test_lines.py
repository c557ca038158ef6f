"""JSON lines: the rows of the table, types from all lines, and text that looks like a time stays text."""

import gzip
import json

import pyarrow as pa
import pytest

import mixope
from cli.running import run

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
