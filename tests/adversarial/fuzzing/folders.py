"""Data sets, tables and databases that are nearly right: whole folders, with bytes or names in their files changed.

Each is made once, as a tree of files: name → content. Tables of Iceberg hold the path of their folder; it is written as
:data:`HERE`, which has the length of the folders that are made here, and is put in place where the tree is written.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.logs import other_tools

from .logs import healthy
from .mutations import BYTES, COLUMNS

PREFIX = "mixope-fuzzing-"
HERE = "/" + "h" * (len(os.path.join(tempfile.gettempdir(), PREFIX)) + 7)
"""Stands for the folder; temporary folders end in eight letters."""
MINARI = Path(__file__).parents[2] / "data" / "minari"
Tree = dict[str, bytes]

WAYS = (
    "/etc/passwd",
    "../../bait.parquet",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:/etc/passwd",
    "file://evil.example/etc/passwd",
    "http://127.0.0.1:9/a.parquet",
    "s3://bucket/a.parquet",
    "%2e%2e/%2e%2e/bait.parquet",
    "..%2f..%2fbait.parquet",
    "%252e%252e/bait.parquet",
    "..\\\\..\\\\bait.parquet",
    "\\\\\\\\evil\\\\share\\\\a.parquet",
    "~/.bashrc",
    "$HOME/.bashrc",
    "/proc/self/environ",
    "/dev/zero",
    "/dev/stdin",
    "a.parquet/../../bait.parquet",
    "./././../bait.parquet",
    "subprocess.Popen",
    "",
)
"""What is put in the place of a name."""


def draw_set(draw: Random) -> dict[str, Any]:
    """A tree after some changes, and how it is named."""
    name = draw.choice(tuple(makers()))
    named, made = tree(name)
    files = dict(made)
    for _ in range(draw.choice((1, 1, 2, 3))):
        one = draw.choice(tuple(files))
        files[one] = _changed(files[one], draw) or files[one]
    return {"set": name, "named": named, "files": {k: base64.b64encode(v).decode() for k, v in files.items()}}


def _changed(content: bytes, draw: Random) -> bytes:
    """With other bytes, or with another name in one of its texts."""
    way = draw.random()
    if way < 0.35:
        marks = [i for i in range(len(content)) if content[i : i + 1] == b'"']
        if len(marks) > 1:
            first = draw.randrange(len(marks) - 1)
            return content[: marks[first] + 1] + draw.choice(WAYS).encode() + content[marks[first + 1] :]
    if way < 0.5 and b".parquet" in content:
        end = content.index(b".parquet", 0) + len(b".parquet")
        path = draw.choice(WAYS).encode()
        if len(path) < end:  # of the same length, so that what is counted in bytes stays whole
            return content[: end - len(path)] + path + content[end:]
    return draw.choice(BYTES)(content, draw)


@cache
def tree(name: str) -> tuple[str, Tree]:
    """What is named in the folder of a data set, and its files."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        named = os.path.relpath(makers()[name](Path(folder)), folder)
        files = {
            str(path.relative_to(folder)): path.read_bytes().replace(folder.encode(), HERE.encode())
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }
    return ("" if named == "." else named), files


@contextmanager
def written(recipe: dict[str, Any]) -> Iterator[str]:
    """The path of what is named, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        for name, content in recipe["files"].items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(content).replace(HERE.encode(), folder.encode()))
        yield os.path.join(folder, recipe["named"]).rstrip("/")


# --- whole ones


def _table() -> Any:
    recipe = {"states": "ids", "actions": "ints", "rows": 12, "episodes": 3, "columns": COLUMNS, "seed": 7}
    return pa.table(healthy(recipe))


def _duckdb(view: str = "") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import duckdb

        rows = _table()
        with duckdb.connect(":memory:", config={"threads": 1}) as made:
            made.register("given", rows)
            made.execute(f"ATTACH '{folder}/log.duckdb' AS log (BLOCK_SIZE 16384)")
            made.execute("CREATE TABLE log.kept AS SELECT * FROM given; USE log")
            if view:
                made.execute(f"CREATE VIEW logs AS {view}")
        return folder / f"log.duckdb{'::logs' if view else ''}"

    return make


def _sqlite(folder: Path) -> Path:
    rows = _table().drop_columns(["terminated", "truncated"])
    with closing(sqlite3.connect(folder / "log.db")) as made, made:
        made.execute(f"CREATE TABLE kept ({', '.join(rows.column_names)})")
        values = zip(*rows.to_pydict().values(), strict=True)
        made.executemany(f"INSERT INTO kept VALUES ({', '.join('?' * rows.num_columns)})", values)
        made.execute("CREATE VIEW logs AS SELECT *, 1 AS one FROM kept WHERE step >= 0")
    return folder / "log.db::logs"


def _delta(folder: Path) -> Path:
    rows = _table()
    pq.write_table(rows, folder / "a.parquet")
    kinds = [{"name": name, "type": "long"} for name in rows.column_names]
    said = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"schemaString": json.dumps({"type": "struct", "fields": kinds}), "configuration": {}}},
        {"add": {"path": "a.parquet", "partitionValues": {"site": "x"}, "size": 1, "dataChange": True}},
    ]
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))
    return folder


def _delta_of_its_library(folder: Path) -> Path:
    import deltalake

    for _ in range(2):
        deltalake.write_deltalake(str(folder), _table(), mode="append")
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    first = folder / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            kinds = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **kinds}
    first.write_text("\n".join(map(json.dumps, lines)))
    return folder


def _iceberg(folder: Path) -> Path:
    from pyiceberg.catalog.sql import SqlCatalog

    rows = _table()
    where = {"uri": "sqlite:///:memory:", "warehouse": f"file://{folder}"}
    with SqlCatalog("lake", **where) as made:
        made.create_namespace("web")
        plain = {"write.avro.compression-codec": "null", "write.metadata.compression-codec": "none"}
        table = made.create_table("web.visits", schema=rows.schema, location=f"file://{folder}", properties=plain)
        table.append(rows)
        table.delete("step = 0")
    return folder


def _one(name: str, write: Callable[[Path], Any]) -> Callable[[Path], Path]:
    return lambda folder: Path(write(folder / name))


def _copied(storage: str) -> Callable[[Path], Path]:
    return lambda folder: Path(shutil.copytree(MINARI / f"{storage}-v0", folder / "set"))


@cache
def makers() -> dict[str, Callable[[Path], Path]]:
    """Kind of data set → what makes one in a folder and gives what is to be named; those whose libraries are here."""
    there = {name for name in ("h5py", "deltalake", "pyiceberg", "sqlalchemy") if importlib.util.find_spec(name)}
    view = "WITH c AS (SELECT * FROM kept) SELECT *, reward * 2 AS twice FROM c JOIN range(1) r(one) ON true"
    made: dict[str, Callable[[Path], Path]] = {
        "duckdb": _duckdb(),
        "duckdb, view": _duckdb(view),
        "sqlite": _sqlite,
        "delta": _delta,
        "minari, parquet": _copied("parquet"),
        "minari, arrow": _copied("arrow"),
        "lerobot": lambda folder: Path(other_tools.lerobot(folder / "set")),
        "hugging face": lambda folder: Path(other_tools.hugging(folder / "set")),
        "vowpal wabbit": _one("log.dsjson", other_tools.dsjson),
        "rllib": _one("log.json", other_tools.batches),
        "json lines": _one("log.jsonl", _json_lines),
    }
    if "h5py" in there:
        made |= {
            "minari, hdf5": _copied("hdf5"),
            "d4rl": _one("log.hdf5", other_tools.d4rl),
            "d3rlpy": _one("log.h5", other_tools.buffer),
            "d3rlpy, version 1": _one("log.h5", other_tools.mdp),
        }
    if "deltalake" in there:
        made["delta, by its library"] = _delta_of_its_library
    if {"pyiceberg", "sqlalchemy"} <= there:
        made["iceberg"] = _iceberg
    return made


def _json_lines(path: Path) -> Path:
    text = io.StringIO()
    for row in _table().to_pylist():
        text.write(json.dumps(row) + "\n")
    path.write_text(text.getvalue())
    return path
