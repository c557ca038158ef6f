"""Carrying an input out, and what is wrong with the outcome.

Right is an answer that holds together, or a ``MixopeError``. Wrong is any other exception, any warning but
``MixopeWarning`` (a file left open is one), an answer that contradicts itself, and JSON that cannot be read.
"""

from __future__ import annotations

import base64
import json
import math
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import mixope
from mixope.answers.estimate import Estimate
from mixope.backtesting import Backtest
from mixope.base.errors import MixopeError, MixopeWarning
from mixope.differences import Comparison
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.logs import Logs, explain_episodes, explain_rows
from mixope.session.session import count

from . import folders, policies, questions
from . import logs as drawn
from .cases import Case
from .faults import spoil
from .watching import WATCH


@dataclass(frozen=True)
class Failure:
    """What went wrong, and the place in the code that tells it from other failures."""

    words: str
    place: str
    trace: str = ""


def judge(case: Case) -> Failure | None:
    """Carry the input out; None if nothing is wrong."""
    left: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda found: left.append(repr(found.exc_value))
    WATCH.found.clear()
    WATCH.on = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MixopeWarning)
            PERFORM[case.kind](case.recipe)
    except MixopeError as error:
        found = _wordless(error)
    except Broken as broken:
        found = Failure(str(broken), broken.place)
    except Exception as error:  # whichever it is, it is a failure: that is what is looked for
        found = Failure(f"{type(error).__name__}: {error}", _place(error), traceback.format_exc())
    else:
        found = None
    finally:
        sys.unraisablehook = hook
        WATCH.on = False
    if WATCH.found:
        return Failure(WATCH.found[0], f"outside: {WATCH.found[0][:80]}")
    return Failure(f"left behind: {left[0]}", "left behind") if found is None and left else found


class Broken(AssertionError):
    """An answer that contradicts itself."""

    def __init__(self, words: str, place: str) -> None:
        super().__init__(words)
        self.place = place


def _wordless(error: MixopeError) -> Failure | None:
    """An error must have words, on either surface, and end the command with a status of its own."""
    said = str(error).strip()
    if said and error.text().strip() and error.exit_code:
        return None
    return Failure(f"{type(error).__name__} without words", _place(error), traceback.format_exc())


def _place(error: BaseException) -> str:
    """The innermost line of the package, and what was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}mixope{os.sep}" in f.filename]
    frame = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno} {frame.name}"


# --- the kinds of inputs


def _open(recipe: dict[str, Any]) -> Logs:
    """Logs in the form that the recipe asks for, or as a mapping where that form cannot hold them."""
    columns = drawn.build(recipe)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = drawn.FORMS[recipe["form"]](dict(columns))
    except Exception:  # pandas, polars and Arrow refuse what they cannot hold with errors of many kinds
        given = columns
    if recipe["form"] == "arrays" and not recipe["options"] and _named(given):
        return Logs.from_arrays(**given)
    return mixope.read(given, **recipe["options"])


def _named(columns: Any) -> bool:
    needed = {"observation", "action", "reward"}
    return isinstance(columns, dict) and needed <= set(columns) <= {*needed, *drawn.MAYBE}


def _then(logs: Logs, verb: str) -> None:
    repr(logs), logs.notes, logs.schema.mapping
    match verb:
        case "table":
            rows = logs.table().num_rows
            cut = sum(fragment.table().num_rows for fragment in logs.fragments(3))
            if rows != cut or rows > logs.total_rows():
                raise Broken(f"{rows} rows of {logs.total_rows()}, in fragments {cut}", "rows")
        case "explain":
            if explain_rows(logs) is None:
                explain_episodes(logs)
        case "count":
            counts = [count(logs, engine()).transitions.n_rows for engine in (MemoryEngine, EmbeddedEngine)]
            if not math.isclose(*counts):
                raise Broken(f"engines count {counts} rows", "engines")


def _arrays(recipe: dict[str, Any]) -> None:
    _then(_open(recipe["logs"]), recipe["then"])


def _log_file(recipe: dict[str, Any]) -> None:
    with _file(recipe) as path:
        _then(mixope.read(path), recipe["then"])


def _data_set(recipe: dict[str, Any]) -> None:
    shared = duckdb.connect
    duckdb.connect = getattr(shared, "alone", shared)  # the file of a stranger gets a database of its own, and locks it
    try:
        with folders.written(recipe) as path:
            _then(mixope.read(path, done="terminated" if recipe["set"] == "lerobot" else None), "table")
    finally:
        duckdb.connect = shared


def _policy(recipe: dict[str, Any]) -> None:
    made = policies.make(recipe)
    for policy in made.values() if isinstance(made, dict) else [made]:
        policies.ask(policy, recipe)


def _policy_file(recipe: dict[str, Any]) -> None:
    with _file(recipe) as path:
        read = mixope.read_policies(path) if recipe["several"] else {"one": mixope.read_policy(path)}
    for policy in read.values():
        repr(policy), policy.fingerprint()
        states = np.eye(2) if recipe["ending"] == ".onnx" else np.arange(2)
        policy.log_prob(states, policy.actions[np.zeros(2, dtype=int)])
        _check_laws(policy.probs(states))


def _check_laws(laws: Any) -> None:
    if not (np.all(laws >= 0) and np.allclose(laws.sum(axis=1), 1.0, atol=1e-6)):
        raise Broken(f"action laws {laws.tolist()}", "laws")


def _features(recipe: dict[str, Any]) -> None:
    draw = np.random.default_rng(recipe["seed"])
    shape = (recipe["rows"],) if recipe["width"] is None else (recipe["rows"], recipe["width"])
    values: Any = draw.normal(size=shape)
    for name, seed in recipe["faults"]:
        values = spoil(values, name, seed)
    fitted = questions.FEATURES[recipe["map"]].fit(values)
    found = fitted.transform(values)
    if found.shape != (np.shape(values)[0], fitted.size) or not np.isfinite(found).all():
        raise Broken(f"features of shape {found.shape}, size {fitted.size}", "features")


def _whole(recipe: dict[str, Any]) -> None:
    logs = _open(recipe["logs"])
    if recipe["file"] is None:
        check(questions.put(logs, recipe["question"]))
        return
    with _folder() as folder:
        path = folder / f"log{recipe['file']}"
        try:
            _write(logs, path)
        except MixopeError:
            raise
        except Exception:  # this form cannot be written: the file is not the point
            check(questions.put(logs, recipe["question"]))
            return
        check(questions.put(mixope.read(str(path)), recipe["question"]))


def _write(logs: Logs, path: Path) -> None:
    """The raw table of a log as a file."""
    import pyarrow.csv as pc
    import pyarrow.feather as pf
    import pyarrow.parquet as pq

    piece: Any = logs.sources[0].pieces[0]
    table = piece.table(list(piece.fields))
    {".parquet": pq.write_table, ".feather": pf.write_feather, ".csv": pc.write_csv}[path.suffix](table, str(path))


PERFORM: dict[str, Callable[[dict[str, Any]], None]] = {
    "arrays": _arrays,
    "rows": _arrays,
    "log files": _log_file,
    "data sets": _data_set,
    "policies": _policy,
    "policy files": _policy_file,
    "features": _features,
    "whole": _whole,
    "whole on vectors": _whole,
}


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mixope-fuzzing-") as folder:
        yield Path(folder)


@contextmanager
def _file(recipe: dict[str, Any]) -> Iterator[str]:
    with _folder() as folder:
        path = folder / f"input{recipe['ending']}"
        path.write_bytes(base64.b64decode(recipe["content"]))
        yield str(path)


# --- answers that hold together


def check(record: Any) -> None:
    """Raise if an answer contradicts itself, cannot be shown or cannot be written.

    An interval holds its value, except one of refits: these may all lie on one side of a biased value.
    """
    str(record)
    json.loads(record.to_json(), parse_constant=_no_constant)
    if isinstance(record, Backtest):
        for row in record.rows:
            _check_interval(row.predicted, row.low, row.high, f"backtest of {record.estimator}")
    for estimate in record.estimates if isinstance(record, Comparison) else [record]:
        if isinstance(estimate, Estimate):
            _check_estimate(estimate)


def _no_constant(name: str) -> Any:
    raise Broken(f"{name} in JSON", "JSON")


def _check_estimate(found: Estimate) -> None:
    who = found.estimator
    if found.interval is not None and "bootstrap" not in found.interval.method:
        _check_interval(found.value, found.interval.low, found.interval.high, f"{who}, {found.interval.method}")
    statuses = {check.status for check in found.diagnostics}
    if str(found.verdict) == "trustworthy":
        if statuses - {"pass"}:
            raise Broken(f"{who} is trustworthy with checks {statuses}", f"verdict of {who}")
        if found.interval is None or not _finite(found.value, found.interval.low, found.interval.high):
            raise Broken(f"{who} is trustworthy: {found.value} in {found.interval}", f"verdict of {who}")
    if not math.isfinite(found.value) and "fail" not in statuses and str(found.verdict) != "reference only":
        raise Broken(f"{who} is {found.value} and {found.verdict}", f"value of {who}")
    for other in found.beside:
        _check_estimate(other)


def _check_interval(value: float, low: float | None, high: float | None, who: str) -> None:
    if low is None or high is None:
        return
    slack = 1e-9 * max(abs(value), abs(low), abs(high)) if _finite(value, low, high) else 0.0
    if not low - slack <= value <= high + slack and _finite(value, low, high):
        raise Broken(f"{value} is not in [{low}, {high}] ({who})", f"interval of {who.partition(' ')[0]}")
    if math.isnan(low) or math.isnan(high):
        raise Broken(f"[{low}, {high}] is no interval ({who})", f"interval of {who.partition(' ')[0]}")


def _finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))
