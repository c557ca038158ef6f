"""Dask: workers of a cluster, by futures. One that dies is replaced by the cluster, and its work is done again."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.base.errors import MissingExtra, UsageError
from mixope.base.files import scratch_folder
from mixope.base.pool import begin_process, path_entries, signals_held
from mixope.base.processes import all_cores, environment
from mixope.engines.work import Job, answered, gathered, packed, share_for, split
from mixope.engines.workers import Found, WorkersEngine, in_turn
from mixope.logs.gathering import Bucket, Load

if TYPE_CHECKING:
    from mixope.engines.work import Item

CONNECT_SECONDS = 20
CLOSE_SECONDS = 5
DRIVER = "MIXOPE_DRIVER"
"""The variable that tells processes of a cluster for whom they work."""


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
            self._client, end = _connected(self.cluster, self.workers)
            self._end = None if end is None else weakref.finalize(self, end)
        return self._client

    def _in_turn(self, futures: Iterable[Any]) -> Iterator[Any]:
        """Results in order; what is not fetched stays with the workers."""
        workers = len(self.client.scheduler_info(n_workers=-1)["workers"])
        return in_turn(futures, workers, _result, self.client.cancel)


def _connected(cluster: Any, workers: int | None) -> tuple[Any, Callable[[], Any] | None]:
    """A client, and how to end it where it is ours."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("dask", "the engine 'dask'") from None
    if isinstance(cluster, distributed.Client):
        return cluster, None
    if isinstance(cluster, str):
        try:
            client = distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False)
            return client, partial(_quietly, client.close)
        except (OSError, TimeoutError) as error:
            raise UsageError(f"no Dask scheduler answers at {cluster!r} ({error}); check the address") from None
    try:
        return distributed.get_client(), None
    except ValueError:
        return _local(workers or all_cores())


def _local(workers: int) -> tuple[Any, Callable[[], Any]]:
    """A cluster of processes of one thread each, and how to end it; they need no guard in the caller's script.

    It listens on loopback alone and speaks to nobody who lacks its key, which nobody but this user can read; its pages
    are not served. All its files lie in one folder, which is removed at the end.
    """
    import distributed
    from distributed.deploy.subprocess import SubprocessCluster
    from distributed.utils import LoopRunner

    kept = ExitStack()
    folder = kept.enter_context(scratch_folder())
    kept.callback(_kill_those_of, folder)
    security, settings = _own_certificate(distributed.Security, folder)
    shared = {"preload": [__name__], "dashboard_address": "127.0.0.1:0", "dashboard": False}
    try:
        with signals_held():  # by the thread that starts the processes, which take none until they load this module
            loop = LoopRunner()
            loop.start()
        kept.callback(_quietly, loop.stop)
        with environment(**settings):
            cluster = SubprocessCluster(
                loop=loop.loop,
                n_workers=workers,
                threads_per_worker=1,
                silence_logs=logging.CRITICAL,
                security=security,
                shutdown_on_close=False,  # at the end of this process it is for us to do, and quietly
                scheduler_kwargs={**shared, "protocol": "tls", "scheduler_file": str(folder / "scheduler")},
                worker_kwargs={**shared, "preload_nanny": [__name__], "local_directory": str(folder)},
            )
        kept.callback(_quietly, partial(cluster.close, timeout=CLOSE_SECONDS))
        client = distributed.Client(cluster, security=security, loop=loop.loop, set_as_default=False)
        kept.callback(_quietly, client.close)
    except BaseException:
        _end(kept)
        raise
    return client, partial(_end, kept)


def _own_certificate(kind: Any, folder: Path) -> tuple[Any, dict[str, str]]:
    """A certificate of this cluster alone, and the environment that tells it to the processes of the cluster.

    In that environment no process looks for modules in the current folder.
    """
    try:
        security = kind.temporary()
    except ImportError:
        raise MissingExtra("dask", "a Dask cluster of this machine, which needs a certificate of its own,") from None
    (folder / "certificate").write_text(security.tls_ca_file)
    (folder / "key").write_text(security.tls_client_key)
    certificate, key = str(folder / "certificate"), str(folder / "key")
    roles = {
        f"DASK_DISTRIBUTED__COMM__TLS__{role}__{what}": {"CERT": certificate, "KEY": key}[what]
        for role in ("SCHEDULER", "WORKER", "CLIENT")
        for what in ("CERT", "KEY")
    }
    return security, {
        **roles,
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": certificate,
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
        "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        "DASK_LOGGING": "{'distributed': 'critical', 'distributed.preloading': 'critical'}",
        "DASK_TEMPORARY_DIRECTORY": str(folder),
        DRIVER: str(os.getpid()),
        "PYTHONPATH": path_entries(),
        "PYTHONSAFEPATH": "1",
    }


def dask_setup(service: Any) -> None:
    """What Dask calls in the processes that it starts for us, because they are told to load this module first."""
    driver = int(os.environ[DRIVER])
    sys.excepthook = partial(_tell, driver)
    begin_process(os.getppid(), partial(_is_gone, driver))


def _tell(driver: int, *error: Any) -> None:
    """Show an error unless the driver ends, too: a SIGTERM to all may reach this process a little earlier.

    Whoever is started and stopped at once fails in Dask with a traceback, which nobody is there to read.
    """
    until = time.monotonic() + 2 * CLOSE_SECONDS  # by then the driver has ended, or has killed this process
    while not _is_gone(driver):
        if time.monotonic() > until:
            sys.__excepthook__(*error)
            return
        time.sleep(0.05)


def _is_gone(process: int) -> bool:
    """Whether it has ended: the parent of a worker is another process of the cluster, and may end after it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def _kill_those_of(folder: Path) -> None:
    """End what was started for this cluster, also where it was interrupted before there was a cluster."""
    import psutil

    with suppress(psutil.Error):
        for process in psutil.Process().children():
            with suppress(psutil.Error):
                if str(folder) in " ".join(process.cmdline()):
                    for each in (*process.children(recursive=True), process):
                        each.kill()
                    process.wait(CLOSE_SECONDS)


def _end(kept: ExitStack) -> None:
    with _quiet():
        kept.close()


def _quietly(close: Callable[[], Any]) -> None:
    """What cannot be closed, because somebody ended its processes first, is killed next."""
    with warnings.catch_warnings(), _quiet(), suppress(Exception):
        warnings.simplefilter("ignore")
        close()


@contextmanager
def _quiet() -> Iterator[None]:
    """What a cluster says when it ends is of no use to anybody."""
    loggers = [logging.getLogger(name) for name in ("distributed", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
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
