"""Engines of several workers: the same bytes on each of them, and what the engine in memory says.

Every kind of request, every format of file, whole episodes that lie apart, next observations that lie in another file;
what is wrong with a file comes home as words; policies of a script travel.
"""

import json
import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mixope
from engine_list import WORKERS
from laws.requests import assert_same, examples, id_logs, vector_logs
from mixope.base.errors import DataError, UsageError
from mixope.engines import MemoryEngine, make
from mixope.engines.work import Job, packed
from mixope.logs.writing import write
from mixope.requests.grouping import Aggregate, Grouped, Grouping
from mixope.requests.trajectories import NumberedSteps
from mixope.requests.transitions import transition_grouping
from mixope.session.session import count

from .workers import engine as workers
from .workers import parameter

engines = pytest.mark.parametrize("engine", [parameter(name) for name in WORKERS])
FRAGMENT = 23


def as_files(logs, folder, shuffled=False, absent=()):
    """Logs as Parquet files of small row groups; ``shuffled``: every episode lies in every file."""
    rows = logs.table().combine_chunks()
    names = {"propensity": "action_prob"}
    rows = rows.drop_columns(["source", "start", *absent]).rename_columns(
        [names.get(n, n) for n in rows.column_names if n not in {"source", "start", *absent}]
    )
    if shuffled:
        rows = rows.take(pa.array(np.random.default_rng(3).permutation(rows.num_rows)))
    third = rows.num_rows // 3
    folder.mkdir(exist_ok=True)
    for number in range(3):
        part = rows.slice(number * third, None if number == 2 else third)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=FRAGMENT)
    return mixope.read(str(folder))


@engines
@pytest.mark.parametrize("ordered", [True, False], ids=["here", "by the workers"])
@pytest.mark.parametrize("logs", [id_logs, vector_logs], ids=["ids", "vectors"])
def test_every_kind_of_request_is_answered_as_in_memory(engine, logs, ordered):
    """All of them in one scan, and every one as if it were alone."""
    requests = [request for request, of in examples().values() if of is logs()]
    found = workers(engine, FRAGMENT, ordered).scan(logs(), requests)
    wanted = MemoryEngine().scan(logs(), requests)
    for left, right in zip(found, wanted, strict=True):
        assert_same(left, right)


@engines
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
@pytest.mark.parametrize("absent", [(), ("next_observation",)], ids=["complete", "next rows to be found"])
def test_files_whose_episodes_are_cut_anywhere(engine, shuffled, absent, tmp_path):
    """Whole episodes are brought together, and next observations found, though they lie in several files."""
    logs = as_files(id_logs(), tmp_path / "logs", shuffled, absent)
    requests = [request for request, of in examples().values() if of is id_logs()]
    if absent:  # last rows lead nowhere there, which is a transition of its own
        own = NumberedSteps(count(logs, "memory").numbers)
        requests = [own if isinstance(request, NumberedSteps) else request for request in requests]
    found = workers(engine, FRAGMENT, False).scan(logs, requests)
    for left, right in zip(found, MemoryEngine().scan(logs, requests), strict=True):
        assert_same(left, right)


@engines
def test_sums_are_pushed_down_to_the_files(engine, tmp_path):
    logs = as_files(id_logs(), tmp_path / "logs")
    grouping = transition_grouping(logs.schema)
    found = workers(engine, FRAGMENT, False).group_sums(logs, grouping)
    assert_same(found, MemoryEngine().group_sums(logs, grouping))


@engines
@pytest.mark.parametrize("kind_of_file", ["csv", "arrow"])
def test_other_files(engine, kind_of_file, tmp_path):
    rows = {n: c.to_numpy(zero_copy_only=False) for n, c in zip(*_columns(vector_logs()), strict=True)}
    logs = mixope.read(write(rows, tmp_path / f"log.{kind_of_file}"))
    requests = [request for request, of in examples().values() if of is vector_logs()][:12]
    found = workers(engine, FRAGMENT, False).scan(logs, requests)
    for left, right in zip(found, MemoryEngine().scan(logs, requests), strict=True):
        assert_same(left, right)


def _columns(logs):
    table = logs.table().drop_columns(["source", "start"])
    return [{"propensity": "action_prob"}.get(n, n) for n in table.column_names], table.columns


@engines
def test_an_evaluation_has_the_same_bytes_as_in_processes_and_the_same_digits_as_in_memory(engine, tmp_path):
    logs = as_files(id_logs(), tmp_path / "logs", shuffled=True)
    target = mixope.TabularPolicy(np.random.default_rng(1).dirichlet([3, 3], size=6))
    found, same, wanted = (
        json.loads(mixope.evaluate(logs, target, engine=made).to_json())
        for made in (workers(engine, FRAGMENT, False), workers("processes", FRAGMENT, False), MemoryEngine())
    )
    assert found["provenance"].pop("engine") == engine
    assert same["provenance"].pop("engine") == "processes"
    assert json.dumps(found) == json.dumps(same)
    assert found["value"] == pytest.approx(wanted["value"], rel=1e-12)
    assert found["interval"]["low"] == pytest.approx(wanted["interval"]["low"], rel=1e-9)
    assert found["verdict"] == wanted["verdict"]


@engines
def test_short_logs_have_the_bytes_of_the_engine_in_memory(engine):
    target = mixope.TabularPolicy(np.random.default_rng(1).dirichlet([3, 3], size=6))
    texts = []
    for made in (workers(engine), MemoryEngine()):
        record = json.loads(mixope.evaluate(id_logs(), target, engine=made).to_json())
        record["provenance"].pop("engine")
        texts.append(json.dumps(record))
    assert texts[0] == texts[1]


@engines
def test_a_backtest_and_a_function_of_this_file_as_target(engine, tmp_path):
    """The function cannot be imported by a worker: it goes with the job."""
    logs = as_files(vector_logs(), tmp_path / "logs")
    lean = 0.5
    target = mixope.GaussianPolicy(lambda states: lean * states[:, :1], 0.8)
    found, wanted = (
        mixope.evaluate(logs, target, "emp", engine=made) for made in (workers(engine, FRAGMENT, False), "memory")
    )
    assert found.value == pytest.approx(wanted.value, rel=1e-10)
    tested, also = (mixope.backtest(logs, engine=made) for made in (workers(engine, FRAGMENT, False), "memory"))
    for left, right in zip(tested.rows, also.rows, strict=True):
        assert left.predicted == pytest.approx(right.predicted, rel=1e-8, nan_ok=True)


@engines
@pytest.mark.parametrize("rows", [FRAGMENT, 10_000], ids=["row groups", "files together"])
def test_a_damaged_file_is_named_and_not_tried_again(engine, rows, tmp_path):
    logs = as_files(id_logs(), tmp_path / "logs")
    path = tmp_path / "logs" / "1.parquet"
    content = bytearray(path.read_bytes())
    content[40:200] = bytes(160)
    stat = path.stat()
    logs = mixope.read(str(tmp_path / "logs"))
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(DataError, match=r"1\.parquet"):
        workers(engine, rows, False).group_sums(logs, transition_grouping(logs.schema))


@engines
def test_a_file_that_is_gone_or_another_is_named(engine, tmp_path):
    logs = as_files(vector_logs(), tmp_path / "logs")
    requests = [request for request, of in examples().values() if of is vector_logs()][:3]
    fragments = logs.fragments(FRAGMENT)
    (tmp_path / "logs" / "2.parquet").unlink()
    made = workers(engine, FRAGMENT, False)
    job = made._job(logs, requests)
    found = list(made.mapped(job, fragments))
    assert {type(part) for part in found if isinstance(part, DataError)} == {DataError}
    assert "2.parquet" in str(next(part for part in found if isinstance(part, DataError)))
    with pytest.raises(DataError, match="the file is gone"):
        made.scan(logs, requests)


def test_what_cannot_be_sent_is_told():
    grouping = Grouping((), (Aggregate("rows", "count"),))
    unsendable = Job((Grouped(grouping), threading.Lock()), id_logs().schema, ())
    with pytest.raises(UsageError, match="cannot be sent to workers"):
        packed(unsendable)


def test_numbers_of_workers_are_checked_and_names_of_clusters_too():
    with pytest.raises(UsageError, match="workers"):
        make("processes", workers=0)
    with pytest.raises(UsageError, match="dask://HOST:PORT"):
        make("dusk://somewhere:1")
    assert make("dask://somewhere:8786").cluster == "tcp://somewhere:8786"
    assert make("spark://somewhere:7077").master == "spark://somewhere:7077"
    assert make("ray://somewhere:10001").address == "ray://somewhere:10001"
