"""Many independent tasks, on one core or on several, with the same results in the same order.

Linear algebra is held to one thread everywhere: the sums then come out alike to the last bit however many processes
share the work, and the cores are not fought over. What takes time is shown on stderr where that is a terminal. An
interruption ends the processes before it is passed on.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager

Task = Callable[[int], float | str]
Progress = Callable[[int, int], None]
SHORT_SECONDS = 2.0
"""Work shorter than this is not worth starting processes for."""
_LARGEST_BATCH = 25


def run_tasks(
    task: Task, numbers: Sequence[int], jobs: int | None = None, progress: bool | Progress | None = False
) -> list[float | str]:
    """Results in the order of ``numbers``; ``jobs=None`` is one process a core, or none where the work is short.

    ``progress`` is called with (done, total); True or None is a bar on stderr, None only where that is a terminal.
    """
    begin = time.perf_counter()
    results = _batch(task, numbers[:1])
    rest = numbers[1:]
    short = (time.perf_counter() - begin) * len(rest) < SHORT_SECONDS
    cores = min(jobs or (1 if short else _cores()), len(rest))
    with _reporting(progress) as report, closing(_batches(task, rest, max(cores, 1))) as batches:
        for found in batches:
            results += found
            if report:
                report(len(results), len(numbers))
    return results


def _cores() -> int:
    """As many as this process may use, which in a container may be fewer than the machine has."""
    from joblib import cpu_count

    return int(cpu_count())


def _batches(task: Task, numbers: Sequence[int], cores: int) -> Generator[list[float | str], None, None]:
    size = max(1, min(_LARGEST_BATCH, len(numbers) // (4 * cores)))
    cuts = [numbers[k : k + size] for k in range(0, len(numbers), size)]
    if cores == 1:
        yield from (_batch(task, cut) for cut in cuts)
    else:
        yield from _shared(task, cuts, cores)


def _shared(task: Task, cuts: list[Sequence[int]], cores: int) -> Generator[list[float | str], None, None]:
    """Processes, because a solve holds the interpreter; these need no guard in the caller's script."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    lent: Generator[list[float | str], None, None]
    lent = Parallel(n_jobs=cores, return_as="generator")(delayed(_batch)(task, cut) for cut in cuts)
    finished = False
    try:
        for found in lent:  # noqa: UP028 (closing it warns, and is guarded below)
            yield found
        finished = True
    finally:
        if not finished:  # interrupted: nothing may go on working behind the user's back
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that tasks were cancelled is what was wanted
                lent.close()
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _batch(task: Task, numbers: Sequence[int]) -> list[float | str]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return [task(number) for number in numbers]


@contextmanager
def _reporting(progress: bool | Progress | None) -> Iterator[Progress | None]:
    """The caller's function, a bar on stderr, or nothing."""
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bar(*columns, console=Console(stderr=True), transient=progress is None) as bar:
            shown = bar.add_task("refits", total=None)
            yield lambda done, total: bar.update(shown, completed=done, total=total)
