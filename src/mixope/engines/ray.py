"""Ray: tasks of a cluster. A worker that dies is replaced by Ray, and its task is run again."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixope.base.errors import MissingExtra, UsageError
from mixope.base.files import scratch_folder
from mixope.base.pool import path_entries
from mixope.base.processes import all_cores, environment, signals_kept
from mixope.engines.work import Job, answered, gathered, packed, share_for, split
from mixope.engines.workers import Found, WorkersEngine, in_turn
from mixope.logs.gathering import Bucket, Load

if TYPE_CHECKING:
    from mixope.engines.work import Item

RETRIES = 3
LONGEST_FOLDER = 16
"""Bytes of the folder of temporary files in which there is room for the names of Ray's sockets: 107 in all."""


class RayEngine(WorkersEngine):
    """The Ray cluster at an ``address``; the one that this process is connected to; or one on this machine.

    The last has ``workers`` cores and ends with this engine.
    """

    name = "ray"

    def __init__(self, address: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.address = address
        self._end: Callable[[], Any] | None = None

    @staticmethod
    def at_hand() -> bool:
        """Whether this process is connected; nothing is imported to find out."""
        ray = sys.modules.get("ray")
        return ray is not None and bool(ray.is_initialized())

    def mapped(self, job: Job, items: Sequence[Item]) -> Iterator[Found]:
        """One task per item."""
        ray = self._connected()
        answer = ray.remote(max_retries=RETRIES, num_cpus=1)(_answer)
        sent = [ray.put(packed(job))]  # in a list it is handed over as it is, and each worker fetches it once
        yield from self._in_turn(answer.remote(sent, number, item) for number, item in enumerate(items))

    def shuffled(self, job: Job, loads: Sequence[Load], buckets: Sequence[Bucket]) -> Iterator[Found]:
        """One task per load, which returns its shares one by one, and one per bucket."""
        ray = self._connected()
        scatter = ray.remote(max_retries=RETRIES, num_cpus=1, num_returns=len(buckets))(_scatter)
        gather = ray.remote(max_retries=RETRIES, num_cpus=1)(_gather)
        sent = [ray.put(packed(job))]
        shares = [scatter.remote(load, len(buckets)) for load in loads]
        columns = [[s] for s in shares] if len(buckets) == 1 else shares
        yield from self._in_turn(
            gather.remote(sent, bucket, *(column[bucket.number] for column in columns)) for bucket in buckets
        )

    def close(self) -> None:
        """End the cluster if this engine has started it."""
        if self._end is not None:
            self._end()
        self._end = None

    def _connected(self) -> Any:
        """Ray, connected when it is first used."""
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "the engine 'ray'") from None
        if not ray.is_initialized():
            with signals_kept():
                end = _begin(ray, self.address, self.workers or all_cores())
            self._end = weakref.finalize(self, end)
        return ray

    def _in_turn(self, references: Iterable[Any]) -> Iterator[Any]:
        """Results in order; what is not fetched stays in the store of objects."""
        ray = self._connected()

        def cancel(some: Sequence[Any]) -> None:
            for reference in some:
                ray.cancel(reference, force=True)

        cores = int(ray.cluster_resources().get("CPU", 1))
        return in_turn(references, cores, partial(_result, ray), cancel)


def _begin(ray: Any, address: str | None, workers: int) -> Callable[[], Any]:
    """Connect to a cluster, or start one of this machine's cores; gives back how to leave it."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        return _begin_here(ray, workers, **quiet)
    try:
        ray.init(address, **quiet)
        return ray.shutdown  # type: ignore[no-any-return]
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        if "ray[client]" in reason:
            raise MissingExtra("ray", "a Ray cluster at an address") from None
        raise UsageError(f"no Ray cluster answers at {address!r} ({reason}); check the address") from None


def _begin_here(ray: Any, workers: int, **quiet: Any) -> Callable[[], None]:
    """A cluster of this machine, on loopback alone, that answers only who has its token; gives back how to end it.

    The token is in the environment of its processes, which nobody but this user and root can read. Workers look for
    modules where :func:`path_entries` says, and not in the current folder, which Ray adds to every job that has no
    folder of its own.
    """
    constants, config, loader = _places(ray)

    class RayJob(ray.job_config.JobConfig):  # type: ignore[misc]
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    kept = ExitStack()
    here = {"PYTHONPATH": path_entries(), "PYTHONSAFEPATH": "1"}
    folder = kept.enter_context(scratch_folder(None if len(tempfile.gettempdir()) < LONGEST_FOLDER else "/tmp"))
    kept.callback(lambda: (config.initialize(""), loader.reset_cache()))
    kept.enter_context(environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)))
    kept.callback(ray.shutdown)
    with environment(**here), _on_loopback(constants):
        config.initialize("")  # it was read when Ray was imported
        loader.reset_cache()
        try:
            job = RayJob(runtime_env={"env_vars": here})
            ray.init(
                num_cpus=workers,
                include_dashboard=False,
                job_config=job,
                _node_ip_address="127.0.0.1",
                _temp_dir=str(folder),
                **quiet,
            )
        except BaseException:
            kept.close()
            raise
    return kept.close


def _places(ray: Any) -> tuple[Any, Any, Any]:
    """Where Ray keeps what has to be set: there is no other way to set it in a process that has imported Ray."""
    try:
        inside = import_module("ray._raylet")
        return import_module("ray._private.ray_constants"), inside.Config, inside.AuthenticationTokenLoader.instance()
    except (ImportError, AttributeError):
        raise UsageError(
            f"Ray {ray.__version__} cannot ask for a token, so that anybody who reaches this machine could run code in"
            " a cluster started here; install ray>=2.52, or start a cluster yourself and name it: ray://HOST:PORT"
        ) from None


@contextmanager
def _on_loopback(constants: Any) -> Iterator[None]:
    """Inside, Ray takes this machine for one whose clusters nobody else can join, as it does on macOS."""
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@lru_cache(maxsize=4)
def _fetched(reference: Any) -> bytes:
    """What was sent, fetched once in every worker."""
    import ray

    return bytes(ray.get(reference))


def _answer(sent: list[Any], number: int, item: Item) -> Found:
    return answered(_fetched(sent[0]), number, item)


def _scatter(load: Load, buckets: int) -> Any:
    shares = split(load)
    found = [share_for(bucket, shares) for bucket in range(buckets)]
    return found[0] if buckets == 1 else found


def _gather(sent: list[Any], bucket: Bucket, *shares: Any) -> Found:
    return gathered(_fetched(sent[0]), bucket, shares)


def _result(ray: Any, reference: Any) -> Any:
    """What a task brought home, in words where its workers died again and again."""
    try:
        return ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise UsageError(
            f"workers of the Ray cluster died {RETRIES + 1} times on the same task, perhaps for want of memory; give"
            " them more, or cut the logs into smaller files"
        ) from error
