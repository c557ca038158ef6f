"""Dask: workers of a cluster, by futures. One that dies is replaced by the cluster, and its work is done again."""

from __future__ import annotations

import logging
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mixope.engines.work import Job, answered, gathered, packed, share_for, split
from mixope.engines.workers import Found, WorkersEngine, in_turn
from mixope.errors import MissingExtra, UsageError
from mixope.logs.gathering import Bucket, Load
from mixope.pool import begin_process, search_path
from mixope.processes import all_cores

if TYPE_CHECKING:
    from mixope.engines.work import Item

CONNECT_SECONDS = 20


class DaskEngine(WorkersEngine):
    """A Dask cluster: a ``distributed.Client``, the address of a scheduler, or neither.

    Then it is the client that is active, or else a cluster of ``workers`` processes on this machine that ends with this
    engine.
    """

    name = "dask"

    def __init__(self, cluster: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.cluster = cluster
        self._client: Any = None
        self._end: Callable[[], Any] | None = None

    @staticmethod
    def at_hand() -> bool:
        """Whether a client is active; nothing is imported to find out."""
        distributed = sys.modules.get("distributed")
        try:
            return distributed is not None and distributed.get_client() is not None
        except ValueError:
            return False

    def mapped(self, job: Job, items: Sequence[Item]) -> Iterator[Found]:
        """One task per item."""
        client = self.client
        sent = _sent(client, job)
        yield from self._in_turn(client.submit(answered, sent, k, item, pure=False) for k, item in enumerate(items))

    def shuffled(self, job: Job, loads: Sequence[Load], buckets: Sequence[Bucket]) -> Iterator[Found]:
        """One task per load, one per share, one per bucket."""
        client = self.client
        sent = _sent(client, job)
        splits = [client.submit(split, load, pure=False) for load in loads]
        try:
            yield from self._in_turn(
                client.submit(
                    gathered,
                    sent,
                    bucket,
                    [client.submit(share_for, bucket.number, shares, pure=False) for shares in splits],
                    pure=False,
                )
                for bucket in buckets
            )
        finally:
            client.cancel(splits)

    def close(self) -> None:
        """Leave the cluster; end it if this engine has started it."""
        if self._end is not None:
            self._end()
        self._client = self._end = None

    @property
    def client(self) -> Any:
        """Connected when it is first used."""
        if self._client is None:
            self._client, ours = _connected(self.cluster, self.workers)
            self._end = weakref.finalize(self, _ended, self._client) if ours else None
        return self._client

    def _in_turn(self, futures: Iterable[Any]) -> Iterator[Any]:
        """Results in order; what is not fetched stays with the workers."""
        workers = len(self.client.scheduler_info(n_workers=-1)["workers"])
        return in_turn(futures, workers, _result, self.client.cancel)


def _connected(cluster: Any, workers: int | None) -> tuple[Any, bool]:
    """A client, and whether it is ours to close."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("dask", "the engine 'dask'") from None
    if isinstance(cluster, distributed.Client):
        return cluster, False
    if isinstance(cluster, str):
        try:
            return distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False), True
        except (OSError, TimeoutError) as error:
            raise UsageError(f"no Dask scheduler answers at {cluster!r} ({error}); check the address") from None
    try:
        return distributed.get_client(), False
    except ValueError:
        return _local(workers or all_cores()), True


def _local(workers: int) -> Any:
    """A cluster of processes of one thread each; they need no guard in the caller's script."""
    import distributed
    from distributed.deploy.subprocess import SubprocessCluster

    with _told("DASK_LOGGING", "{'distributed': 'critical', 'distributed.preloading': 'critical'}"):
        cluster = SubprocessCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"preload": [__name__]},
            worker_kwargs={"preload_nanny": [__name__], "preload": [__name__], "env": {"PYTHONPATH": search_path()}},
        )
    return distributed.Client(cluster, set_as_default=False)


@contextmanager
def _told(name: str, value: str) -> Iterator[None]:
    """Inside, processes that are started find this in their environment."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def dask_setup(service: Any) -> None:
    """What Dask calls in the processes that it starts for us, because they are told to load this module first."""
    begin_process(os.getppid())
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [path for path in known if path and path not in sys.path]  # a worker is told when it runs already


def _ended(client: Any) -> None:
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        cluster = client.cluster
        client.close()
        if cluster is not None:
            cluster.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """What a cluster says when it ends is of no use to anybody."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _sent(client: Any, job: Job) -> Any:
    """The job as the result of a task: every worker fetches it once, and it can be made again when all of them died.

    What is scattered instead is lost with the worker that holds it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        return client.submit(_same, packed(job), pure=False)


def _same(sent: bytes) -> bytes:
    return sent


def _result(future: Any) -> Any:
    """What a task brought home, in words where its workers died again and again."""
    from distributed.scheduler import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise UsageError(
            f"workers of the Dask cluster died several times on the same task, perhaps for want of memory ({error});"
            " give them more, or cut the logs into smaller files"
        ) from None
