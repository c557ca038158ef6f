"""The same bytes for the same input, whatever the order of its rows, the files, the threads, the engine or the process.

That is promised for logs of up to 200,000 rows. Longer ones are read as they lie, and only near the last digit is
promised: the tests that push sums down, or do not put rows in order, hold them to that.
"""

import hashlib
import json
import os
import subprocess
import sys
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest

import mixope
from mixope.engines import EmbeddedEngine, MemoryEngine
from mixope.engines.pieces import episode_pieces, even_pieces

from .random_logs import Plan, columns, shuffled, stored, target

KINDS = ("ids", "words", "factors", "vectors", "continuous")
ORDERED = {
    "in memory, one thread": ("memory", 1, False, lambda: MemoryEngine(threads=1)),
    "in memory, shuffled": ("memory", 1, True, MemoryEngine),
    "one file": ("parquet", 1, False, EmbeddedEngine),
    "three files, two threads": ("parquet", 3, False, lambda: EmbeddedEngine(threads=2)),
    "seven files, four threads": ("parquet", 7, False, lambda: EmbeddedEngine(threads=4)),
    "seven files of shuffled rows": ("parquet", 7, True, lambda: EmbeddedEngine(threads=4)),
    "seven files in memory": ("parquet", 7, True, MemoryEngine),
    "text": ("csv", 3, True, EmbeddedEngine),
    "a limit of memory": ("arrow", 2, True, lambda: EmbeddedEngine(memory_limit="200MB", threads=1)),
}
AS_THEY_LIE = {
    "pushed down": ("parquet", 1, False, lambda: EmbeddedEngine(ordered=False)),
    "pushed down, shuffled": ("parquet", 7, True, lambda: EmbeddedEngine(ordered=False, threads=4)),
    "other pieces": ("memory", 1, True, lambda: MemoryEngine(fragment_rows=97)),
}
PLACES = ("provenance", "engine", "inputs")
"""What tells of files and engines, and is not the same for others."""
NEAR = {"counts": 1e-14, "features": 1e-11}
"""What is promised of values and standard errors, relative to their size, where rows are not put in order."""


def plan_of(kind):
    return Plan(kind=kind, episodes=40, horizon=16, ends=True, seed=3)


def results(plan, logs, engine):
    """An evaluation, a comparison and a backtest, without what names files and engines."""
    policies = {"a": target(plan), "b": target(plan, 8)}
    found = (
        mixope.evaluate(logs, target(plan), engine=engine),
        mixope.compare(logs, policies, engine=engine),
        mixope.backtest(logs, engine=engine),
    )
    return [anywhere(record.to_dict()) for record in found]


def anywhere(value):
    if isinstance(value, dict):
        return {name: anywhere(item) for name, item in value.items() if name not in PLACES}
    return [anywhere(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module", params=KINDS)
def wanted(request):
    plan = plan_of(request.param)
    rows = columns(plan)
    return plan, rows, results(plan, stored(rows, "memory", None), MemoryEngine())


def found_by(way, plan, rows, folder):
    form, shards, shuffle, engine = way
    return results(plan, stored(shuffled(rows) if shuffle else rows, form, folder / "logs", shards), engine())


@pytest.mark.parametrize("way", ORDERED)
def test_every_byte_is_the_same(way, wanted, tmp_path):
    plan, rows, expected = wanted
    assert json.dumps(found_by(ORDERED[way], plan, rows, tmp_path)) == json.dumps(expected)


@pytest.mark.parametrize("way", AS_THEY_LIE)
@pytest.mark.parametrize("kind", KINDS)
def test_where_rows_are_not_put_in_order_only_the_last_digits_differ(way, kind, tmp_path):
    plan = plan_of(kind)
    rows, (form, shards, shuffle, engine) = columns(plan), AS_THEY_LIE[way]
    wanted = mixope.evaluate(mixope.read(rows), target(plan), engine="memory")
    logs = stored(shuffled(rows) if shuffle else rows, form, tmp_path / "logs", shards)
    found = mixope.evaluate(logs, target(plan), engine=engine())
    near = NEAR["counts" if logs.schema.discrete else "features"]
    for name in ("value", "standard_error"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=near, abs=0.0)
    assert [check.status for check in found.diagnostics] == [check.status for check in wanted.diagnostics]
    assert found.verdict is wanted.verdict


SCRIPT = """
import pathlib, sys, warnings
sys.path[:0] = sys.argv[1:3]
warnings.simplefilter("ignore")
import mixope
from adversarial.random_logs import Plan, columns, stored, target
for kind in ("words", "factors", "vectors"):
    plan = Plan(kind=kind, episodes=30, horizon=10, ends=True, seed=3)
    logs = mixope.read(sys.argv[3] + "/" + kind)
    print(mixope.evaluate(logs, target(plan)).to_json())
    print(mixope.evaluate(logs, target(plan), interval="bca", replicates=12, jobs=int(sys.argv[4])).to_json())
"""


def test_every_byte_is_the_same_in_another_process(tmp_path):
    """Hashes of words are salted anew in every process; refits are shared by one process or by two."""
    for kind in ("words", "factors", "vectors"):
        stored(columns(Plan(kind=kind, episodes=30, horizon=10, ends=True, seed=3)), "parquet", tmp_path / kind)
    tests = os.path.dirname(os.path.dirname(__file__))
    said = set()
    for salt, jobs in (("0", "1"), ("1", "2"), ("4242", "1")):
        surroundings = {**os.environ, "PYTHONHASHSEED": salt}
        words = [sys.executable, "-c", SCRIPT, tests, os.path.dirname(mixope.__path__[0]), str(tmp_path), jobs]
        done = subprocess.run(words, env=surroundings, capture_output=True, check=True)
        said.add(hashlib.sha256(done.stdout).hexdigest())
    assert len(said) == 1


@pytest.mark.parametrize("cut", [even_pieces, episode_pieces])
@pytest.mark.parametrize("size", [1, 7, 20, 100])
def test_pieces_depend_on_the_rows_alone(cut, size):
    episode = np.repeat(np.arange(9), [1, 30, 2, 2, 2, 10, 1, 1, 7])
    table = pa.table({"source": np.zeros(56, int), "policy_id": ["a"] * 56, "episode_id": episode, "x": np.arange(56)})
    whole = [piece.column("x").to_pylist() for piece in cut([table], size)]
    assert list(chain(*whole)) == list(range(56))
    assert all(piece for piece in whole)
    for batch in (1, 5, 7, 56):
        batches = [table.slice(low, batch) for low in range(0, 56, batch)]
        assert [piece.column("x").to_pylist() for piece in cut(batches, size)] == whole
    assert [piece.num_rows for piece in cut([table.slice(0, 0)], size)] == [0]
