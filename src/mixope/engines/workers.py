"""Engines of many workers: what logs are cut into, and how parts come home. Where workers run is said by each engine.

Where logs are short, this process reads them in order and sends out the same pieces that it would work on itself; so
the bits are those of the other engines. Longer logs are cut into fragments that workers open by themselves. Where whole
episodes are asked for, or next observations must be found, and files do not keep episodes together, rows are brought
together by the engine's own shuffle.

All of that is fixed by the data alone, and parts are merged as a fixed tree over the items: the same bytes on any
engine of this kind, whatever its workers, whoever finished first, and however many of them died on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from mixope.base.arrays import is_whole
from mixope.base.errors import Advice, MixopeError, Setting, UsageError
from mixope.engines.memory import MemoryEngine
from mixope.engines.pieces import ORDER, in_order
from mixope.engines.protocol import ByPasses, by_kind
from mixope.engines.work import Job
from mixope.logs import Fragment, Logs
from mixope.logs.fragments import ROWS
from mixope.logs.gathering import Bucket, Load
from mixope.requests.grouping import Grouped
from mixope.requests.request import FragmentResult, Request, wanted_columns

if TYPE_CHECKING:
    from mixope.engines.work import Item

AHEAD = 4
"""Items that are under way per worker: enough that none waits, few enough that parts do not pile up here."""
MOST_SUMMED = 16_000_000
"""Rows of a fragment of which only sums by key are wanted: they are never all in memory."""
FEW = 16
"""Into so many fragments such logs are cut as long as these are neither smaller nor larger than others may be."""
MANY = 1024
"""Into no more fragments than that: the sums of each come home."""
MOST_BUCKETS = 256
TOGETHER = 4
"""How many times larger than others a fragment may be so that episodes stay together without a shuffle."""

Found = FragmentResult | MixopeError


class WorkersEngine(ByPasses):
    """Runs jobs on items somewhere; ``workers`` is how many it starts where it starts them itself.

    ``memory_limit`` is what DuckDB may take in each of them; ``ordered`` says whether logs are read here, in the order
    of their episodes and steps, instead of by the workers; None: where they are short.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        memory_limit: str | None = None,
        fragment_rows: int | None = None,
        ordered: bool | None = None,
    ) -> None:
        if workers is not None and not (is_whole(workers) and workers >= 1):
            raise UsageError(Advice(Setting("workers"), f" is a number from 1, got {workers!r}"))
        self.workers, self.memory_limit, self.fragment_rows = workers, memory_limit, fragment_rows
        self.ordered = ordered

    @abstractmethod
    def mapped(self, job: Job, items: Sequence[Item]) -> Iterator[Found]:
        """The job on every item, numbered from 0, in any order."""

    @abstractmethod
    def shuffled(self, job: Job, loads: Sequence[Load], buckets: Sequence[Bucket]) -> Iterator[Found]:
        """The job on every bucket, with its share of every load in the order of the loads."""

    @abstractmethod
    def close(self) -> None:
        """End what this engine has started; it can be used again."""

    def in_passes(
        self, logs: Logs, requests: Sequence[Request]
    ) -> Iterator[tuple[list[Request], Generator[FragmentResult]]]:
        """Pieces that are read here where the logs are short, else fragments that the workers open."""
        if in_order(logs.total_rows()) if self.ordered is None else self.ordered:
            for mine, tables in MemoryEngine(self.fragment_rows).cut(logs, requests):
                yield mine, _good(self.mapped(self._job(logs, mine), list(tables)))
            return
        for mine, whole in zip(by_kind(requests), (False, True), strict=True):
            if mine:
                yield mine, _good(self._over_files(logs, mine, whole))

    def _over_files(self, logs: Logs, requests: Sequence[Request], whole: bool) -> Iterator[Found]:
        rows = self.fragment_rows or fragment_rows(logs.total_rows(), requests)
        fragments = logs.fragments(rows, whole_episodes=whole)
        job = self._job(logs, requests, ordered=whole)
        apart = not (whole or any(plan.derived for plan in logs.plans))
        if apart or _small_enough(fragments, rows) or any("episode_id" in plan.derived for plan in logs.plans):
            return self.mapped(job, fragments)  # episodes that are cut by the order of rows cannot be cut elsewhere
        size = max(self.fragment_rows or ROWS, -(-logs.total_rows() // MOST_BUCKETS))
        loads, buckets = logs.loads(job.columns, -(-logs.total_rows() // size), size)
        return self.shuffled(job, loads, buckets)

    def _job(self, logs: Logs, requests: Sequence[Request], *, ordered: bool = False) -> Job:
        order = ORDER if ordered else ()
        columns = tuple(dict.fromkeys((*wanted_columns(requests, logs.schema), *order)))
        return Job(tuple(requests), logs.schema, columns, ordered, self.memory_limit)


def fragment_rows(total: int, requests: Sequence[Request]) -> int:
    """How many rows a fragment has: more where only sums by key leave it, so that there are fewer to merge."""
    if not all(isinstance(request, Grouped) for request in requests):
        return ROWS
    return max(min(max(-(-total // FEW), ROWS), MOST_SUMMED), -(-total // MANY))


def _small_enough(fragments: Sequence[Fragment], rows: int) -> bool:
    """Whether every fragment can be held by a worker though it had to be larger than others; one alone has to be."""
    return all(fragment.rows is not None and fragment.rows <= TOGETHER * rows for fragment in fragments)


def in_turn(
    tasks: Iterable[Any], workers: int, result: Callable[[Any], Any], cancel: Callable[[Sequence[Any]], Any]
) -> Iterator[Any]:
    """The results of tasks in order; a task is begun when it is drawn, and a few per worker are under way.

    Whatever ends this early cancels them.
    """
    waiting = deque[Any]()
    try:
        for task in tasks:
            waiting.append(task)
            if len(waiting) > AHEAD * max(workers, 1):
                yield result(waiting.popleft())
        while waiting:
            yield result(waiting.popleft())
    finally:
        cancel(list(waiting))


def _good(parts: Iterator[Found]) -> Generator[FragmentResult]:
    """The parts; the first error ends the pass, and whatever is still under way."""
    with closing(parts):  # type: ignore[type-var]
        for part in parts:
            if isinstance(part, MixopeError):
                raise part
            yield part
