"""What an engine does: it runs requests over all rows of some logs, and has no idea of any estimator.

``scan`` answers any requests in one pass over the rows (a second, sorted one if some of them want whole episodes);
``group_sums`` adds up row quantities by key, which an engine that speaks SQL pushes down to where the rows lie. All
that runs on rows is :func:`mixope.requests.request.partials`; an engine decides where. Parts are merged as a fixed
tree over the fragments, and a hole, a double or a lost row is an error.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from mixope.base.processes import SHORT_SECONDS, all_cores, progress_bar
from mixope.base.threads import one_thread
from mixope.logs import Logs, Schema
from mixope.requests.grouping import Grouped, Grouping, GroupSums, Lookup
from mixope.requests.request import FragmentResult, Request, merge_in_order, partials

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@runtime_checkable
class Engine(Protocol):
    """Runs requests over logs."""

    name: str

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """Add up the quantities of all rows by key, joined with ``lookup`` where one is given; one scan."""
        ...

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """Answer all requests in one scan; rows other than ``expected_rows`` are an error."""
        ...


class ByPasses(ABC):
    """An engine that answers requests pass by pass: what differs is where the parts of a pass come from."""

    name: str
    in_process = False
    """Whether rows are added up in this process, so that a device of it can help."""

    @abstractmethod
    def in_passes(
        self, logs: Logs, requests: Sequence[Request]
    ) -> Iterator[tuple[list[Request], Generator[FragmentResult]]]:
        """The requests that can be answered together, each time with the parts of all rows, in any order."""

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """Sums by key of every part, merged."""
        found: tuple[GroupSums, ...] = self.scan(logs, [Grouped(grouping, lookup)])
        return found[0]

    def scan(self, logs: Logs, requests: Sequence[Request], expected_rows: int | None = None) -> tuple[Any, ...]:
        """One pass over the rows; another one over whole episodes for the requests that want them."""
        answers: list[tuple[Request, Any]] = []
        with logs.scanning():
            for mine, parts in self.in_passes(logs, requests):
                with closing(parts):
                    merged = merge_in_order(watched(parts, expected_rows), expected_rows)
                if merged is not None:
                    answers += zip(mine, merged.partials, strict=True)
        return put_back(requests, answers)


def run_parts(
    tables: Iterable[pa.Table], schema: Schema, requests: Sequence[Request], threads: int | None
) -> Generator[FragmentResult]:
    """Run the worker on numbered pieces, a few at a time in threads: as many as there are cores, if nothing is said.

    Linear algebra is held to one thread in each: the sums come out alike to the last bit however many share the work.
    """
    rest = enumerate(tables)
    begun = deque(islice(rest, 2))
    several, numbered = len(begun) > 1, _used_up(begun, rest)
    with one_thread():
        if threads == 1 or not several:
            yield from (_part(table, schema, requests, number) for number, table in numbered)
            return
        threads = threads or all_cores()
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[Future[FragmentResult]] = []
            try:
                for number, table in numbered:
                    waiting.append(pool.submit(_part, table, schema, requests, number))
                    if len(waiting) > threads:
                        yield waiting.pop(0).result()
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                for future in waiting:
                    future.cancel()


def _used_up(begun: deque[T], rest: Iterator[T]) -> Iterator[T]:
    """The first ones and then the rest, none of which is held once it is given."""
    while begun:
        yield begun.popleft()
    yield from rest


def _part(table: pa.Table, schema: Schema, requests: Sequence[Request], number: int) -> FragmentResult:
    """Of one piece; every thread holds pools for itself, those too that a library has brought since the last piece."""
    with one_thread():
        return partials(table, schema, requests, number)


def watched(parts: Iterator[FragmentResult], expected_rows: int | None) -> Iterator[FragmentResult]:
    """The same parts; where they take long and stderr is a terminal, a bar shows the rows that are done."""
    began, done, report = time.perf_counter(), 0, None
    with ExitStack() as stack:
        for part in parts:
            done += part.rows
            if report is None and sys.stderr.isatty() and time.perf_counter() - began > SHORT_SECONDS:
                report = stack.enter_context(progress_bar("rows of this scan", transient=True))
            if report is not None:
                report(done, expected_rows or done)
            yield part


def by_kind(requests: Sequence[Request]) -> tuple[list[Request], list[Request]]:
    """Those that take rows in any pieces, and those that want whole episodes."""
    whole = [r for r in requests if r.whole_episodes]
    return [r for r in requests if not r.whole_episodes], whole


def put_back(requests: Sequence[Request], answers: Iterable[tuple[Request, Any]]) -> tuple[Any, ...]:
    """Answers in the order of the requests."""
    found = {id(request): answer for request, answer in answers}
    return tuple(found[id(request)] for request in requests)
