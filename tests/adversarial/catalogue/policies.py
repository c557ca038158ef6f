"""What can be wrong, or awkward and right, with a policy: as a table in every format, as arrays, as a name, as code."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import mixope

from .cases import Answered, Call, Case, Command, Expected, Refused, evaluate, value_of
from .formats import CLEAN, POLICY, POLICY_TEXT, TABLES, arrays_of, table_of, text_of

LOG = text_of(table_of(CLEAN))
TABLE_FORMATS = ("csv", "parquet", "arrow", "arrays", "pandas", "polars")
TYPED = ("parquet", "arrow", "polars")


def having(**columns: Any) -> Callable[[], pa.Table]:
    return lambda: table_of({name: values for name, values in {**POLICY, **columns}.items() if values is not None})


def rows(**columns: Any) -> Callable[[], pa.Table]:
    """A table of its own."""
    return lambda: table_of(columns)


NAN = float("nan")
WHERE = "where: "
TABLES_REFUSED: dict[str, tuple[Callable[[], pa.Table], tuple[str, ...], tuple[str, ...]]] = {
    "no rows": (lambda: table_of(POLICY).slice(0, 0), TABLE_FORMATS, ("no rows", WHERE)),
    "no probabilities": (having(prob=None), TABLE_FORMATS, ("no column for the prob", "try: ")),
    "no actions": (having(action=None), ("csv", "parquet", "arrays"), ("no column for the action", "try: ")),
    "no states": (having(observation=None), ("csv", "parquet", "arrays"), ("no column for the observation", "try: ")),
    "logarithms": (
        having(prob=[-0.7, -0.7, -1.4, -0.3]),
        TABLE_FORMATS,
        ("log-probabilities", "write their exponentials"),
    ),
    "sums below one": (having(prob=[0.5, 0.5, 0.25, 0.5]), TABLE_FORMATS, ("do not sum to one", "rows: 2, 3", "try: ")),
    "sums above one": (having(prob=[0.5, 0.5, 0.75, 0.75]), ("csv", "parquet"), ("do not sum to one", "rows: 2, 3")),
    "negative": (having(prob=[0.5, 0.5, -0.25, 1.25]), TABLE_FORMATS, ("negative", "rows: 2", "-0.25")),
    "above one": (having(prob=[0.5, 0.5, 0.25, 1.75]), ("csv", "parquet"), ("above one", "rows: 3", "1.75")),
    "not a number": (having(prob=[0.5, 0.5, NAN, 0.75]), ("csv", "parquet", "arrays"), ("NaN", "rows: 2")),
    "missing probabilities": (having(prob=[0.5, 0.5, None, 0.75]), TYPED, ("missing values", "rows: 2", "try: ")),
    "missing states": (having(observation=[0, 0, None, 1]), (*TYPED, "csv"), ("missing values", "rows: 2", "try: ")),
    "missing actions": (having(action=[0, 1, None, 1]), (*TYPED, "csv"), ("missing values", "rows: 2", "try: ")),
    "in words": (having(prob=["often"] * 4), TABLE_FORMATS, ("not numbers", "often", "rows: 0")),
    "a pair twice": (
        rows(observation=[0, 0, 1, 1, 1], action=[0, 1, 0, 1, 1], prob=[0.5, 0.5, 0.25, 0.75, 0.75]),
        TABLE_FORMATS,
        ("listed twice", "rows: 3, 4", "try: "),
    ),
    "a state that is not listed": (
        rows(observation=[0, 0], action=[0, 1], prob=[0.5, 0.5]),
        TABLE_FORMATS,
        ("does not know 1 of the states", "try: "),
    ),
    "an action that is not listed": (
        rows(observation=[0, 1], action=[0, 0], prob=[1.0, 1.0]),
        TABLE_FORMATS,
        ("unknown", "action", "try: "),
    ),
    "states in words for a log of numbers": (
        having(observation=["zero", "zero", "one", "one"]),
        ("csv", "parquet"),
        ("state", "try: "),
    ),
    "states that are measured": (
        having(observation=[0.5, 0.5, 1.5, 1.5]),
        ("csv", "parquet", "arrays"),
        ("real numbers; a table can only hold ids", "try: "),
    ),
    "several policies": (having(policy_id=["x", "x", "y", "y"]), ("csv", "parquet", "polars"), ("holds 2 policies",)),
    "states in lists": (having(observation=[[0], [0], [1], [1]]), ("parquet", "arrow"), ("lists or structs", "try: ")),
    "the state twice": (
        having(**{"observation.x": [0, 0, 1, 1]}),
        ("csv", "parquet"),
        ("the state twice, as one column and as factors", "try: "),
    ),
    "two columns for the states": (
        having(observation=None, s=[0, 0, 1, 1], state=[0, 0, 1, 1]),
        ("csv", "parquet", "arrays"),
        ("several columns could be the observation", "try: "),
    ),
}
TABLES_SAME: dict[str, tuple[Callable[[], pa.Table], tuple[str, ...]]] = {
    "as it should be": (having(), TABLE_FORMATS),
    "rows in any order": (lambda: table_of(POLICY).take([2, 0, 3, 1]), TABLE_FORMATS),
    "ids of floats": (having(observation=[0.0, 0.0, 1.0, 1.0], action=[0.0, 1.0, 0.0, 1.0]), TABLE_FORMATS),
    "decimal probabilities": (
        having(prob=pa.array(POLICY["prob"]).cast(pa.decimal128(3, 2))),
        ("parquet", "arrow", "polars"),
    ),
    "names in capitals": (lambda: table_of(POLICY).rename_columns(["STATE", "A", "Probability"]), TABLE_FORMATS),
    "states that no log has": (
        rows(observation=[0, 0, 1, 1, 9, 9], action=[0, 1, 0, 1, 0, 1], prob=[0.5, 0.5, 0.25, 0.75, 0.5, 0.5]),
        TABLE_FORMATS,
    ),
    "one label for all": (having(policy_id=["x"] * 4), ("csv", "parquet")),
    "other columns": (having(note=["good"] * 4), TABLE_FORMATS),
    "a rounding error in the sums": (having(prob=[0.5, 0.5, 0.25, 0.75 + 1e-13]), TABLE_FORMATS),
}


def _saved(array: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **named) if named else np.save(file, array)
    return file.getvalue()


GOOD = np.array([[0.5, 0.5], [0.25, 0.75]])
FILES: dict[str, tuple[str, bytes | None, Expected]] = {
    "a text file without a line": ("t.csv", b"", Refused(("t.csv",))),
    "a text that is ragged": ("t.csv", b"observation,action,prob\n0,0\n", Refused(("cannot be read as csv", "t.csv"))),
    "a text of other letters": ("t.csv", b"observation,action,prob\n\xe4,0,1\n", Refused(("t.csv",))),
    "a byte-order mark": ("t.csv", b"\xef\xbb\xbf" + POLICY_TEXT.encode(), Answered()),
    "lines of Windows": ("t.csv", POLICY_TEXT.replace("\n", "\r\n").encode(), Answered()),
    "quotes": ("t.csv", POLICY_TEXT.replace("0,0,0.5", '"0","0","0.5"').encode(), Answered()),
    "semicolons": ("t.csv", POLICY_TEXT.replace(",", ";").encode(), Answered()),
    "tabs": ("t.tsv", POLICY_TEXT.replace(",", "\t").encode(), Answered()),
    "gzip": ("t.csv.gz", gzip.compress(POLICY_TEXT.encode()), Answered()),
    "gzip cut short": ("t.csv.gz", gzip.compress(POLICY_TEXT.encode())[:-12], Refused(("cannot be read", "t.csv.gz"))),
    "Parquet that is text": ("t.parquet", POLICY_TEXT.encode(), Refused(("cannot be read as parquet", "t.parquet"))),
    "Arrow that is text": ("t.arrow", POLICY_TEXT.encode(), Refused(("cannot be read as arrow", "t.arrow"))),
    "an array": ("t.npy", _saved(GOOD), Answered()),
    "arrays with names": ("t.npz", _saved(None, probs=GOOD, states=[0, 1], actions=[0, 1]), Answered()),
    "an array of integers": ("t.npy", _saved(np.array([[1, 0], [0, 1]])), Answered(value=None)),
    "an array that is flat": ("t.npy", _saved(np.array([0.5, 0.5])), Refused(("t.npy",))),
    "an array of three axes": ("t.npy", _saved(np.ones((2, 2, 1)) / 2), Refused(("t.npy",))),
    "an array that is empty": ("t.npy", _saved(np.zeros((0, 2))), Refused(("t.npy",))),
    "an array that does not sum to one": ("t.npy", _saved(GOOD / 2), Refused(("sum", "t.npy"))),
    "an array of words": ("t.npy", _saved(np.array([["a", "b"]])), Refused(("t.npy",))),
    "an array with NaN": ("t.npy", _saved(np.array([[0.5, NAN], [0.25, 0.75]])), Refused(("NaN", "t.npy"))),
    "an array of too few states": ("t.npy", _saved(GOOD[:1]), Refused(("does not know 1 of the states", "try: "))),
    "an array of too few actions": ("t.npy", _saved(np.ones((2, 1))), Refused(("action", "try: "))),
    "too few names of actions": ("t.npz", _saved(None, probs=GOOD, actions=[0]), Refused(("actions", "t.npz"))),
    "which array?": ("t.npz", _saved(None, a=GOOD, b=GOOD), Refused(("does not say which array", "try: "))),
    "an archive without arrays": ("t.npz", _saved(None, states=[0, 1]), Refused(("does not say which array",))),
    "pickled objects": (
        "t.npy",
        _saved(np.array([[0.5, None], [0.25, 0.75]], dtype=object)),
        Refused(("pickled", "--trust")),
    ),
    "a pickle": ("t.pkl", b"\x80\x04N.", Refused(("pickled objects", "t.pkl", "--trust"))),
    "a pickle called npy": ("t.npy", b"\x80\x04N.", Refused(("not a NumPy file", "t.npy"))),
    "a network of torch": ("t.pt", b"PK\x03\x04" + bytes(40), Refused(("pickled objects", "t.pt", "--trust"))),
    "a model of joblib": ("t.joblib", b"\x80\x04N.", Refused(("pickled objects", "t.joblib", "--trust"))),
    "a network of nothing": ("t.onnx", b"", Refused(("no network that can be run", "t.onnx"))),
    "a network of text": ("t.onnx", b"hello", Refused(("no network that can be run", "t.onnx"))),
    "no file": ("t.csv", None, Refused(("there is no such policy file", "t.csv"))),
}

CODE = """
import numpy as np
def good(states):
    return np.where(states[:, None] == 0, [0.5, 0.5], [0.25, 0.75])
def flat(states):
    return np.full(len(states), 0.5)
def short(states):
    return np.ones((1, 2)) / 2
def wide(states):
    return np.ones((len(states), 3)) / 3
def negative(states):
    return np.tile([-0.5, 1.5], (len(states), 1))
def nan(states):
    return np.full((len(states), 2), np.nan)
def nothing(states):
    return None
def words(states):
    return [["a", "b"]] * len(states)
def halves(states):
    return np.full((len(states), 2), 0.4)
def raises(states):
    raise KeyError("x")
def leaves(states):
    raise SystemExit(0)
class Made: pass
text, number, table = "t", 7, good(np.array([0, 1]))
"""
NAMED: dict[str, Expected] = {
    "own:good": Answered(),
    "own:table": Answered(),
    "own:flat": Refused(("flat", "got: ")),
    "own:short": Refused(("short", "got: ")),
    "own:wide": Answered(value=None),
    "own:negative": Refused(("negative", "-0.5")),
    "own:nan": Refused(("nan", "NaN")),
    "own:nothing": Refused(("nothing", "got: ")),
    "own:words": Refused(("words",)),
    "own:halves": Refused(("halves", "sum")),
    "own:raises": Refused(("raises", "KeyError")),
    "own:leaves": Refused(("leaves", "SystemExit")),
    "own:Made": Refused(("own:Made is a class",), 2),
    "own:text": Refused(("own:text is a string",), 2),
    "own:number": Refused(("cannot make a policy of int",), 2),
    "own:gone": Refused(("unknown name in own 'gone'", "Known: "), 2),
    "gone:good": Refused(("gone",), 2),
    "own.py:good": Refused(("write the module without .py",), 2),
    "os:system": Refused(("a module of Python itself",), 2),
    "broken:good": Refused(("broken", "SyntaxError", "broken.py, line 1"), 2),
    "leaving:good": Refused(("leaving", "SystemExit"), 2),
}
MODULES = {"own.py": CODE, "broken.py": "def good(:\n", "leaving.py": "raise SystemExit(0)\n"}

LIBRARY: dict[str, tuple[Any, Expected]] = {
    "nothing": (None, Refused(("cannot make a policy of NoneType",), 2)),
    "a number": (7, Refused(("cannot make a policy of int",), 2)),
    "an empty dict": ({}, Refused(("no column for the observation", "got: columns (none)"))),
    "columns of other lengths": ({**POLICY, "prob": [1.0]}, Refused(("different lengths", "prob: 1"))),
    "a list of lists": ([[0.5, 0.5], [0.25, 0.75]], Answered()),
    "ragged lists": ([[0.5, 0.5], [1.0]], Refused(("array",))),
    "a masked array": (np.ma.masked_invalid([[0.5, NAN], [0.25, 0.75]]), Refused(("mask",))),
    "complex numbers": (np.array([[0.5, 0.5], [0.25, 0.75]], dtype=complex), Refused(("numbers",))),
    "true and false": (np.array([[True, False], [False, True]]), Answered(value=None)),
}


def _with_target(name: str, content: bytes | None) -> Command:
    def words(folder: Path) -> list[str]:
        (folder / "log.csv").write_bytes(LOG)
        if content is not None:
            (folder / name).write_bytes(content)
        return evaluate("--estimator", "emp", target=name)("log.csv")

    return Command(words)


def _named(reference: str) -> Command:
    def words(folder: Path) -> list[str]:
        (folder / "log.csv").write_bytes(LOG)
        for name, text in MODULES.items():
            (folder / name).write_text(text)
        return evaluate("--estimator", "emp", target=reference)("log.csv")

    return Command(words)


def _table(format: str, change: Callable[[], pa.Table]) -> Command | Call:
    if format == "csv":
        return Command(lambda folder: _with_target("t.csv", text_of(change())).words(folder))
    if format == "parquet":
        return Command(lambda folder: _with_target("t.parquet", _parquet(change())).words(folder))
    if format == "arrow":
        return Command(lambda folder: _with_target("t.feather", _stream(change())).words(folder))
    hold = arrays_of if format == "arrays" else TABLES[format]
    return Call(lambda folder: value_of(table_of(CLEAN), mixope.read_policy(hold(change()))))


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue()


def cases() -> Iterator[Case]:
    for name, (change, formats, words) in TABLES_REFUSED.items():
        for format in formats:
            yield Case(f"policy: {name} ({format})", _table(format, change), Refused(words))
    for name, (change, formats) in TABLES_SAME.items():
        for format in formats:
            yield Case(f"policy: {name} ({format})", _table(format, change), Answered())
    for name, (file, content, expected) in FILES.items():
        yield Case(f"policy file: {name}", _with_target(file, content), expected)
    for reference, expected in NAMED.items():
        yield Case(f"policy by name: {reference}", _named(reference), expected)
    for name, (source, expected) in LIBRARY.items():
        call = Call(lambda folder, source=source: value_of(table_of(CLEAN), mixope.read_policy(source)))
        yield Case(f"policy in Python: {name}", call, expected)
