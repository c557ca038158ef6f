"""Spark: Python workers beside its executors, by ``mapInArrow``. A task whose worker dies is run again by Spark.

What travels is small: numbers of items out, parts home; a worker opens the files by itself. Sums by key are added up by
DuckDB in the worker as on every other engine, not by Spark's own GROUP BY: that adds floats in the order in which
partitions arrive, and its last digits would be others in every run.
"""

from __future__ import annotations

import pickle
import secrets
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from mixope.base.errors import MissingExtra, UsageError
from mixope.base.pool import path_entries
from mixope.base.processes import all_cores, signals_kept
from mixope.engines.work import Job, answered, gathered, packed, share_for, split
from mixope.engines.workers import AHEAD, Found, WorkersEngine
from mixope.logs.gathering import Bucket, Load

if TYPE_CHECKING:
    import pyarrow as pa

    from mixope.engines.work import Item

FAILURES = 4
"""How often a task may fail in a session that we start; a local one of Spark's own gives up at once."""
PART = "part binary"
SHARE = "bucket int, load int, share binary"


class SparkEngine(WorkersEngine):
    """A Spark session; the active one if none is given, or a new one at ``master``.

    Without a master that is a local session of ``workers`` cores, which ends with this engine.
    """

    name = "spark"

    def __init__(self, session: Any = None, master: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.session, self.master = session, master
        self._end: Callable[[], Any] | None = None

    @staticmethod
    def at_hand() -> bool:
        """Whether a session is active; nothing is imported to find out."""
        spark = sys.modules.get("pyspark.sql")
        return spark is not None and spark.SparkSession.getActiveSession() is not None

    def mapped(self, job: Job, items: Sequence[Item]) -> Iterator[Found]:
        """Items in waves: all that come home at once are those of one wave."""
        session = self._connected()
        sent, wave = packed(job), AHEAD * _parallel(session)
        for low in range(0, len(items), wave):
            some = dict(enumerate(items[low : low + wave], low))
            numbers = session.range(low, low + len(some), 1, len(some))
            yield from _parts(_mapped(numbers, partial(_answer, sent, some), PART))

    def shuffled(self, job: Job, loads: Sequence[Load], buckets: Sequence[Bucket]) -> Iterator[Found]:
        """Shares go through Spark's own shuffle."""
        session = self._connected()
        numbers = session.range(0, len(loads), 1, len(loads))
        shares = _mapped(numbers, partial(_scatter, dict(enumerate(loads)), len(buckets)), SHARE)
        together = shares.repartition(len(buckets), "bucket").sortWithinPartitions("bucket", "load")
        yield from _parts(_mapped(together, partial(_gather, packed(job), dict(enumerate(buckets))), PART))

    def close(self) -> None:
        """End the session if this engine has started it."""
        if self._end is not None:
            self._end()
            self.session = None
        self._end = None

    def _connected(self) -> Any:
        """The session, started when it is first used."""
        try:
            with _quiet():
                from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtra("spark", "the engine 'spark'") from None
        if self.session is None and self.master is None:
            self.session = SparkSession.getActiveSession()
        if self.session is None:
            with signals_kept(), _quiet():
                self.session = _begin(SparkSession, self.master or f"local[{self.workers or all_cores()},{FAILURES}]")
            self._end = weakref.finalize(self, self.session.stop)
        return self.session


def _begin(sessions: Any, master: str) -> Any:
    """A session without pages or noise, whose Python is this one."""
    builder = sessions.builder.master(master).appName("mixope")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.maxResultSize": "0",
        "spark.log.level": "ERROR",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": path_entries(),
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.authenticate": "true" if master.startswith("local") else None,
        "spark.authenticate.secret": secrets.token_hex(32) if master.startswith("local") else None,
        "spark.network.crypto.enabled": "true" if master.startswith("local") else None,
        "spark.driver.host": "localhost" if master.startswith("local") else None,
        "spark.driver.bindAddress": "127.0.0.1" if master.startswith("local") else None,
    }
    for name, value in settings.items():
        builder = builder if value is None else builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # whatever Java, or its absence, has to say
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(
            f"Spark does not start at {master!r}: {reason} It needs Java 17 or newer (JAVA_HOME, or java on the PATH)"
        ) from error


def _parallel(session: Any) -> int:
    """Tasks that can run at once, as far as the session says."""
    try:
        return max(int(session.sparkContext.defaultParallelism), 1)
    except Exception:  # a session of Spark Connect has no context
        return all_cores()


def _mapped(frame: Any, function: Any, schema: str) -> Any:
    with _quiet():
        return frame.mapInArrow(function, schema)


@contextmanager
def _quiet() -> Iterator[None]:
    """Spark warns of a version of pandas that is never used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        yield


def _parts(frame: Any) -> Iterator[Found]:
    """What came home, in words where workers died again and again."""
    try:
        rows = frame.collect()
    except Exception as error:  # of Spark or of Py4J, which share no base; what is not about dead workers goes on
        if "Python worker exited unexpectedly" not in str(error):
            raise
        raise UsageError(
            "the Python workers of Spark died several times on the same task, perhaps for want of memory; give them"
            " more (spark.executor.memoryOverhead), or cut the logs into smaller files. A local session of Spark's own"
            f" gives up after one failure: start it with master 'local[*,{FAILURES}]'"
        ) from error
    yield from (pickle.loads(row[0]) for row in rows)


def _answer(sent: bytes, items: dict[int, Item], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield _row(part=answered(sent, number, items[number]))


def _scatter(loads: dict[int, Load], buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            shares = split(loads[number])
            for bucket in range(buckets):
                yield _row(bucket=bucket, load=number, share=share_for(bucket, shares))


def _gather(sent: bytes, buckets: dict[int, Bucket], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Shares come in the order of buckets and loads; one bucket is held at a time."""
    number, shares = None, list[Any]()
    for batch in batches:
        for row in batch.to_pylist():
            if number is not None and row["bucket"] != number:
                yield _row(part=gathered(sent, buckets[number], shares))
                shares = []
            number = row["bucket"]
            shares.append(pickle.loads(row["share"]))
    if number is not None:
        yield _row(part=gathered(sent, buckets[number], shares))


def _row(**values: Any) -> pa.RecordBatch:
    """One row; what is not a number is packed."""
    import pyarrow as pa

    columns = {
        name: pa.array([value], pa.int32())
        if isinstance(value, int)
        else pa.array([pickle.dumps(value, pickle.HIGHEST_PROTOCOL)], pa.binary())
        for name, value in values.items()
    }
    return pa.record_batch(columns)
