"""Files that are nearly right: valid ones of every format that is read, with some of their bytes changed."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq

from .logs import healthy

LOGS, POLICIES = "logs", "policy"
COLUMNS = ["episode_id", "step", "next_observation", "terminated", "truncated", "policy_id", "action_prob"]


@cache
def originals(read: str) -> dict[str, tuple[str, bytes]]:
    """Name → (ending, content) of the files that are read as logs, or as policies."""
    made = _log_files() if read == LOGS else _policy_files()
    return {name: (ending, bytes(content)) for name, (ending, content) in made.items()}


def draw_content(draw: Random, read: str) -> tuple[str, bytes, str]:
    """A file's ending, its content after some changes, and which file it was."""
    files = originals(read)
    name = draw.choice(tuple(files))
    ending, content = files[name]
    changes = TEXT if ending.startswith((".csv", ".tsv")) and draw.random() < 0.6 else BYTES
    packed = ending.endswith(".gz") and draw.random() < 0.8
    content = gzip.decompress(content) if packed else content
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        content = draw.choice(changes)(content, draw) or content
    return ending, gzip.compress(content, mtime=0) if packed else content, name


# --- valid files


def _tables() -> dict[str, Any]:
    found = {}
    for states in ("ids", "strings", "words", "vector"):
        recipe = {"states": states, "actions": "ints", "rows": 12, "episodes": 3, "columns": COLUMNS, "seed": 7}
        columns = {k: list(v) if np.ndim(v) > 1 else v for k, v in healthy(recipe).items()}
        found[states] = pa.table(columns)
    return found


def _written(write: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _parquet(table: Any, **options: Any) -> bytes:
    return _written(lambda file: pq.write_table(table, file, **options))


def _stream(table: Any, file: Any) -> None:
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def _log_files() -> dict[str, tuple[str, bytes]]:
    tables = _tables()
    ids, strings, words, vectors = (tables[name] for name in ("ids", "strings", "words", "vector"))
    arrays = {name: ids[name].to_numpy(zero_copy_only=False) for name in ids.column_names if name != "policy_id"}
    csv = _written(lambda file: pc.write_csv(words, file))
    return {
        "parquet": (".parquet", _parquet(ids)),
        "parquet, plain": (".parquet", _parquet(ids, use_dictionary=False, compression="none")),
        "parquet, strings": (".parquet", _parquet(strings, compression="none")),
        "parquet, pages of version 2": (".pq", _parquet(words, data_page_version="2.0", compression="zstd")),
        "parquet, lists": (".parquet", _parquet(vectors, compression="none")),
        "parquet, gzip": (".parquet", _parquet(ids, row_group_size=5, compression="gzip")),
        "feather": (".feather", _written(lambda f: pf.write_feather(ids, f))),
        "feather, plain": (".arrow", _written(lambda f: pf.write_feather(words, f, compression="uncompressed"))),
        "feather, lists": (".ipc", _written(lambda f: pf.write_feather(vectors, f, compression="uncompressed"))),
        "stream": (".arrow", _written(lambda f: _stream(strings, f))),
        "csv": (".csv", _written(lambda f: pc.write_csv(ids, f))),
        "csv, words": (".csv", csv),
        "csv, packed": (".csv.gz", gzip.compress(csv, mtime=0)),
        "tsv": (".tsv", csv.replace(b",", b"\t")),
        "npz": (".npz", _written(lambda f: np.savez(f, **arrays))),
        "npz, packed": (".npz", _written(lambda f: np.savez_compressed(f, **arrays))),
    }


def _policy_files() -> dict[str, tuple[str, bytes]]:
    states, actions = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    law = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [0.125, 0.875]])
    table = pa.table({"observation": states, "action": actions, "prob": law.ravel()})
    named = table.append_column("policy_id", pa.array(np.repeat(["a", "b"], 4)))
    csv = _written(lambda file: pc.write_csv(table, file))
    return {
        "csv": (".csv", csv),
        "csv, packed": (".csv.gz", gzip.compress(csv, mtime=0)),
        "csv of several": (".csv", _written(lambda f: pc.write_csv(named, f))),
        "parquet": (".parquet", _written(lambda f: pq.write_table(table, f))),
        "parquet, plain": (".parquet", _written(lambda f: pq.write_table(named, f, compression="none"))),
        "feather": (".feather", _written(lambda f: pf.write_feather(table, f, compression="uncompressed"))),
        "arrow": (".arrow", _written(lambda f: pf.write_feather(named, f))),
        "npy": (".npy", _written(lambda f: np.save(f, law))),
        "npz": (".npz", _written(lambda f: np.savez(f, probabilities=law, states=np.arange(4), actions=["l", "r"]))),
        "npz, packed": (".npz", _written(lambda f: np.savez_compressed(f, probs=law))),
        **({} if (network := _network()) is None else {"onnx": (".onnx", network)}),
    }


def _network() -> bytes | None:
    """A linear layer and a softmax, where ONNX is installed."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return None
    weights = numpy_helper.from_array(np.array([[0.5, -0.5], [1.0, 0.25]], dtype=np.float32), "W")
    nodes = [
        helper.make_node("MatMul", ["observation", "W"], ["linear"]),
        helper.make_node("Softmax", ["linear"], ["probabilities"], axis=1),
    ]
    entry, out = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in ("observation", "probabilities")
    )
    graph = helper.make_graph(nodes, "policy", [entry], [out], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


# --- changes of bytes


def _span(content: bytes, draw: Random, longest: int = 64) -> tuple[int, int]:
    begin = draw.randrange(len(content) + 1)
    return begin, min(len(content), begin + draw.randint(1, longest))


def _flip(content: bytes, draw: Random) -> bytes:
    begin, _ = _span(content[:-1], draw)
    return (
        content[:begin] + bytes([content[begin] ^ (1 << draw.randrange(8))]) + content[begin + 1 :] if content else b""
    )


def _set(content: bytes, draw: Random) -> bytes:
    begin, _ = _span(content, draw)
    return content[:begin] + bytes([draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))]) + content[begin + 1 :]


def _integer(content: bytes, draw: Random) -> bytes:
    begin, _ = _span(content, draw)
    value = draw.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**40))
    packed = struct.pack("<Q", value)[: draw.choice((2, 4, 8))]
    return content[:begin] + packed + content[begin + len(packed) :]


def _cut(content: bytes, draw: Random) -> bytes:
    return (
        content[: draw.randrange(len(content) + 1)]
        if draw.random() < 0.7
        else content[draw.randrange(len(content) + 1) :]
    )


def _remove(content: bytes, draw: Random) -> bytes:
    begin, end = _span(content, draw)
    return content[:begin] + content[end:]


def _repeat(content: bytes, draw: Random) -> bytes:
    begin, end = _span(content, draw)
    return content[:end] + content[begin:end] * draw.choice((1, 1, 3, 20)) + content[end:]


def _insert(content: bytes, draw: Random) -> bytes:
    begin, _ = _span(content, draw)
    return content[:begin] + draw.randbytes(draw.randint(1, 16)) + content[begin:]


def _blank(content: bytes, draw: Random) -> bytes:
    begin, end = _span(content, draw)
    return content[:begin] + bytes(end - begin) + content[end:]


def _move(content: bytes, draw: Random) -> bytes:
    begin, end = _span(content, draw)
    to, rest = draw.randrange(len(content) + 1), content[:begin] + content[end:]
    return rest[:to] + content[begin:end] + rest[to:]


def _splice(content: bytes, draw: Random) -> bytes:
    files = originals(draw.choice((LOGS, POLICIES)))
    other = files[draw.choice(tuple(files))][1]
    return content[: draw.randrange(len(content) + 1)] + other[draw.randrange(len(other)) :]


BYTES = (_flip, _flip, _flip, _set, _set, _integer, _integer, _cut, _remove, _repeat, _insert, _blank, _move, _splice)

# --- changes of text

CELLS = (
    "",
    "nan",
    "inf",
    "-1",
    "1e999",
    "1e60",
    "text",
    '"',
    '""',
    "'",
    "0x10",
    "1_000",
    "NULL",
    "None",
    "true",
    "\0",
    "9" * 30,
)
CELLS += (
    "\u202e",
    "\ud7ff",
    " 1 ",
    "1;2",
    "=1+1",
    "é",
    "2026-11-16",
    "0.1",
    "99999999999999999999",
    "-",
    "a\rb",
    '"a\nb"',
)


def _lines(change: Callable[[list[bytes], Random], list[bytes]]) -> Callable[[bytes, Random], bytes]:
    return lambda content, draw: b"\n".join(change(content.split(b"\n"), draw))


def _cell(lines: list[bytes], draw: Random) -> list[bytes]:
    row = draw.randrange(len(lines))
    mark = b"\t" if b"\t" in lines[row] else b","
    cells = lines[row].split(mark)
    cells[draw.randrange(len(cells))] = draw.choice(CELLS).encode()
    return [*lines[:row], mark.join(cells), *lines[row + 1 :]]


def _column(lines: list[bytes], draw: Random) -> list[bytes]:
    """One column of all rows is something else."""
    mark, cell = (b"\t" if b"\t" in lines[0] else b","), draw.choice(CELLS).encode()
    place = draw.randrange(lines[0].count(mark) + 1)
    rows = [line.split(mark) for line in lines]
    for row in rows[1:]:
        if place < len(row) > 1:
            row[place] = cell
    return [mark.join(row) for row in rows]


def _fewer(lines: list[bytes], draw: Random) -> list[bytes]:
    return lines[: draw.randrange(len(lines) + 1)]


def _row_twice(lines: list[bytes], draw: Random) -> list[bytes]:
    return [*lines, draw.choice(lines)]


def _shuffle(lines: list[bytes], draw: Random) -> list[bytes]:
    return [lines[0], *draw.sample(lines[1:], len(lines) - 1)]


def _other_ends(content: bytes, draw: Random) -> bytes:
    return content.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n")))


def _other_marks(content: bytes, draw: Random) -> bytes:
    return content.replace(b",", draw.choice((b";", b"|", b"\t", b" ", b",,")))


def _other_code(content: bytes, draw: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(draw.choice(("utf-16", "utf-8-sig", "latin-1", "utf-32")), "replace")


TEXT = (_lines(_cell), _lines(_cell), _lines(_cell), _lines(_column), _lines(_fewer), _lines(_row_twice))
TEXT += (_lines(_shuffle), _other_ends, _other_marks, _other_code, _flip, _set)
