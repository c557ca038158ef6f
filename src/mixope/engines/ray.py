"""Ray: tasks of a cluster. A worker that dies is replaced by Ray, and its task is run again."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mixope.engines.work import Job, answered, gathered, packed, share_for, split
from mixope.engines.workers import Found, WorkersEngine, in_turn
from mixope.errors import MissingExtra, UsageError
from mixope.logs.gathering import Bucket, Load
from mixope.pool import search_path
from mixope.processes import all_cores, signals_kept

if TYPE_CHECKING:
    from mixope.engines.work import Item

RETRIES = 3


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
                _begin(ray, self.address, self.workers or all_cores())
            self._end = weakref.finalize(self, ray.shutdown)
        return ray

    def _in_turn(self, references: Iterable[Any]) -> Iterator[Any]:
        """Results in order; what is not fetched stays in the store of objects."""
        ray = self._connected()

        def cancel(some: Sequence[Any]) -> None:
            for reference in some:
                ray.cancel(reference, force=True)

        cores = int(ray.cluster_resources().get("CPU", 1))
        return in_turn(references, cores, partial(_result, ray), cancel)


def _begin(ray: Any, address: str | None, workers: int) -> None:
    """Connect to a cluster, or start one of this machine's cores; its workers find what this process can import."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        env = {"env_vars": {"PYTHONPATH": search_path()}}
        ray.init(num_cpus=workers, include_dashboard=False, runtime_env=env, **quiet)
        return
    try:
        ray.init(address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        if "ray[client]" in reason:
            raise MissingExtra("ray", "a Ray cluster at an address") from None
        raise UsageError(f"no Ray cluster answers at {address!r} ({reason}); check the address") from None


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
