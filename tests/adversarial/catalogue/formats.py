"""The clean log and the clean policy, and every way of holding a table: files by ending, tables in memory.

A fault is written once, as a change of an Arrow table; here it gets into each format that can hold it.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

CLEAN: dict[str, list[Any]] = {
    "policy_id": ["a"] * 6 + ["b"] * 6,
    "episode_id": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    "step": [0, 1, 2] * 4,
    "observation": [0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0],
    "action": [0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0],
    "reward": [1.0, 0.25, 2.0, 0.5, 1.5, 0.0, 3.0, 1.0, 0.5, 0.75, 0.25, 1.0],
    "next_observation": [1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1],
    "terminated": [False] * 12,
    "truncated": [False, False, True] * 4,
    "action_prob": [0.5, 0.25, 0.5, 0.75, 0.5, 0.25, 0.4, 0.6, 0.5, 0.5, 0.5, 0.6],
}
"""Two loggers, four episodes of three steps that the recorder cut, two states, two actions."""
ROWS = len(CLEAN["step"])

POLICY: dict[str, list[Any]] = {
    "observation": [0, 0, 1, 1],
    "action": [0, 1, 0, 1],
    "prob": [0.5, 0.5, 0.25, 0.75],
}
POLICY_TEXT = "observation,action,prob\n0,0,0.5\n0,1,0.5\n1,0,0.25\n1,1,0.75\n"


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    return pa.table(dict(columns))


def text_of(table: pa.Table, delimiter: str = ",") -> bytes:
    sink = pa.BufferOutputStream()
    pc.write_csv(table, sink, pc.WriteOptions(delimiter=delimiter, quoting_style="needed"))
    return sink.getvalue().to_pybytes()


def arrays_of(table: pa.Table) -> dict[str, np.ndarray]:
    """As somebody would have them who works with NumPy: words as fixed-width strings, lists as matrices."""
    return {name: _array(table.column(name)) for name in table.column_names}


def _array(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_string(column.type) and not column.null_count:
        return np.array(column.to_pylist(), dtype=str)
    if pa.types.is_nested(column.type):
        return np.array(column.to_pylist())
    return np.asarray(column.to_numpy())


def _saved(name: str, write: Callable[[pa.Table, Path], object]) -> Callable[[pa.Table, Path], str]:
    def save(table: pa.Table, folder: Path) -> str:
        write(table, folder / name)
        return str(folder / name)

    return save


def _stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)


def _arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)


def _folder(table: pa.Table, path: Path) -> None:
    """Shards of a folder, cut in the middle of an episode."""
    path.mkdir()
    for place, (low, high) in enumerate(((0, 4), (4, 7), (7, table.num_rows))):
        if low < max(table.num_rows, 1):
            pq.write_table(table.slice(low, high - low), path / f"part-{place}.parquet")


def _glob(table: pa.Table, folder: Path) -> str:
    for place, low in enumerate(range(0, max(table.num_rows, 1), 5)):
        (folder / f"shard-{place}.csv").write_bytes(text_of(table.slice(low, 5)))
    return str(folder / "shard-*.csv")


def _by_logger(table: pa.Table, path: Path) -> None:
    """A folder per logger, the label in its name."""
    labels = table.column("policy_id").to_pylist()
    for label in dict.fromkeys(labels):
        part = table.filter(pa.array([found == label for found in labels])).drop_columns(["policy_id"])
        (path / f"policy_id={label}").mkdir(parents=True)
        pq.write_table(part, path / f"policy_id={label}" / "part.parquet")


FILES: dict[str, Callable[[pa.Table, Path], str]] = {
    "csv": _saved("log.csv", lambda table, path: path.write_bytes(text_of(table))),
    "csv.gz": _saved("log.csv.gz", lambda table, path: path.write_bytes(gzip.compress(text_of(table)))),
    "tsv": _saved("log.tsv", lambda table, path: path.write_bytes(text_of(table, "\t"))),
    "parquet": _saved("log.parquet", pq.write_table),
    "arrow": _saved("log.arrow", _arrow),
    "stream": _saved("log.ipc", _stream),
    "npz": _saved("log.npz", lambda table, path: np.savez(path, **arrays_of(table))),
    "folder": _saved("logs", _folder),
    "glob": _glob,
    "folders": _saved("logs", _by_logger),
}


def _polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _relation(table: pa.Table) -> Any:
    return duckdb.connect(config={"threads": 1}).from_arrow(table)


TABLES: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "dataset": ds.dataset,
    "pandas": lambda table: table.to_pandas(),
    "polars": _polars,
    "arrays": arrays_of,
    "relation": _relation,
}

CORE = ("csv", "parquet", "folder", "arrow", "arrays")
"""One for every way of reading rows: what is wrong with values is found behind it."""
STORED = ("parquet", "table", "polars", "npz")
"""One for every way of having types."""
TYPED = ("parquet", "arrow", "stream", "folder", "table", "dataset", "pandas", "polars", "relation")
TEXT = ("csv", "csv.gz", "tsv", "glob")
ARRAYS = ("npz", "arrays")
EVERY = (*TEXT, *TYPED, *ARRAYS)
