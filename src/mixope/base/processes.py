"""Many independent tasks, on one core or on several, with the same results.

Linear algebra is held to one thread everywhere (:mod:`mixope.base.threads`): the sums then come out alike to the last
bit however many processes share the work, and the cores are not fought over. A progress bar is shown on stderr if it is
a terminal. An interruption ends the processes before it is passed on. Tasks need no guard in the caller's script. What
the processes are is said in :mod:`mixope.base.pool`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from math import ceil
from pathlib import Path
from typing import TypeVar

from mixope.base.errors import Advice, Setting, UsageError
from mixope.base.files import scratch_folder
from mixope.base.pool import Killed, Unsendable, read_task, shared, write_task
from mixope.base.threads import one_thread

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
CPU_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
"""Where Linux says how much processor time a container may take, and in which period."""
MOST_WORKERS = 61 if sys.platform == "win32" else 1 << 16
"""Windows waits for no more processes at once."""
"""Told how many tasks are done, and how many there are."""
SHORT_SECONDS = 2.0
"""Work shorter than this is not worth starting processes for."""
_LARGEST_BATCH = 25
BARS: ContextVar[bool] = ContextVar("bars", default=True)
"""Whether bars are shown, where they could be."""
_ENDED = Advice(
    "a process that shared the work was ended from outside, perhaps for want of memory; try fewer with ",
    Setting("jobs", 1),
)


def run_tasks(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int | None = None,
    progress: bool | Progress | None = False,
    title: str = "refits",
) -> list[Result]:
    """Results in the order of ``items``; ``jobs=None`` is one process per core, or none where the work is short.

    ``progress`` is called with (done, total); True or None is a bar on stderr, None only where that is a terminal.
    """
    begin = time.perf_counter()
    first, rest = _alone(task, items[:1]), items[1:]
    short = (time.perf_counter() - begin) * len(rest) < SHORT_SECONDS
    cores = max(min(jobs or (1 if short else all_cores()), len(rest)), 1)
    size = max(1, min(_LARGEST_BATCH, len(rest) // (4 * cores)))
    found: dict[int, list[Result]] = {}
    with reporting(progress, title) as report, closing(as_done(task, rest, cores, size)) as batches:
        for k, results in batches:
            found[k] = results
            if report:
                report(len(first) + sum(map(len, found.values())), len(items))
    return [*first, *(result for k in sorted(found) for result in found[k])]


def as_done(
    task: Callable[[Item], Result], items: Sequence[Item], jobs: int, size: int = 1
) -> Generator[tuple[int, list[Result]], None, None]:
    """Results of ``size`` items at a time, as they are done, each with the position of its first item.

    With one job all runs in this process, and so does what cannot be sent to another one (a policy from a file that
    only this process knows). Closing the generator early ends the processes at once: what they were working on is lost,
    and nothing goes on behind the user's back.
    """
    cuts = [(k, items[k : k + size]) for k in range(0, len(items), size)]
    if min(jobs, len(cuts)) <= 1:
        yield from ((k, _alone(task, cut)) for k, cut in cuts)
        return
    pool, left, finished = shared(min(jobs, len(cuts))), dict(cuts), False
    try:
        with scratch_folder() as folder:
            write_task(folder / "task", task)
            calls = [partial(_in_worker, folder / "task", cut) for _, cut in cuts]
            with closing(pool.results(calls)) as results:
                for number, found in results:
                    k = cuts[number][0]
                    del left[k]
                    yield k, found
        finished = True
    except Unsendable:
        finished = True
        yield from ((k, _alone(task, cut)) for k, cut in left.items())
    except Killed:
        raise UsageError(_ENDED) from None
    finally:
        if not finished:
            pool.close()


def all_cores() -> int:
    """As many as this process may use, which in a container may be fewer than the machine has."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = (_cores_of_group(*names) for names in CPU_QUOTAS)
    return max(1, min(affinity, *(n for n in quotas if n is not None), MOST_WORKERS))


def _cores_of_group(*names: str) -> int | None:
    """Processor time that a group may take in each period, over that period; "max" and -1 are no limit."""
    try:
        quota, period = (int(word) for name in names for word in Path(name).read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return ceil(quota / period) if quota > 0 and period > 0 else None


def _in_worker(task: Path, items: Sequence[Item]) -> list[Result]:
    return _alone(read_task(task), items)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Inside, processes that are started have these in their environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def signals_kept() -> Iterator[None]:
    """Inside, a library may take signals for itself; afterwards they are taken by whoever took them before."""
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if here else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _alone(task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    with one_thread():
        return [task(item) for item in items]


@contextmanager
def reporting(progress: bool | Progress | None, title: str) -> Iterator[Progress | None]:
    """The caller's function, a bar on stderr (None: only where that is a terminal), or nothing."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
    else:
        with progress_bar(title, transient=progress is None) as report:
            yield report


@contextmanager
def progress_bar(title: str, *, transient: bool = False) -> Iterator[Progress]:
    """A bar on stderr, or nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=transient, disable=not BARS.get()) as bar:
        shown = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total)
