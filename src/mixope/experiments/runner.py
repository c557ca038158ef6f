"""Repetitions over processes: what is missing is measured, each kept as soon as it is done.

Every process has one thread, so the floating-point sums do not depend on how many there are. With one job all runs in
this process. An interruption stops the processes at once: what they were working on is lost, at most one each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from mixope.errors import MixopeWarning
from mixope.experiments.experiment import Repetition
from mixope.experiments.store import Record, append_record, group_of, key_of, read_records, settings_of

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Tick = Callable[[Record], None]


def all_cores() -> int:
    """How many processes this machine can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def missing(repetitions: Sequence[Repetition], folder: Path) -> list[Repetition]:
    """Those that are not in the folder yet, each once."""
    done = read_records(folder)
    return list({key: r for r in repetitions if (key := key_of(r)) not in done}.values())


def cost(repetitions: Sequence[Repetition], folder: Path) -> float:
    """Seconds on one core: as those of the same settings took that are in the folder, else as measured once."""
    took: dict[str, list[float]] = {}
    for record in read_records(folder).values():
        took.setdefault(group_of(record.settings), []).append(record.seconds)
    known = {group: sum(seconds) / len(seconds) for group, seconds in took.items()}
    return sum(known.get(group_of(settings_of(r)), r.seconds) for r in repetitions)


def run(repetitions: Sequence[Repetition], path: Path, *, jobs: int = 1, tick: Tick | None = None) -> list[Record]:
    """Measure what is not in the folder of ``path``, append it to ``path``, and give back all, in the order asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    todo = missing(repetitions, path.parent)
    for record in _measured(todo, min(jobs, len(todo))):
        append_record(path, record)
        if tick is not None:
            tick(record)
    done = read_records(path.parent)
    return [done[key_of(repetition)] for repetition in repetitions]


def _measured(todo: Sequence[Repetition], jobs: int) -> Iterator[Record]:
    """Records as they come."""
    if jobs <= 1:
        yield from map(measure, todo)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _one_thread(), ProcessPoolExecutor(jobs, context, initializer=_leave_interruptions_alone) as pool:
        try:
            for future in as_completed([pool.submit(measure, repetition) for repetition in todo]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise


def measure(repetition: Repetition) -> Record:
    """One repetition on one thread, with the seconds of processor time it took.

    Warnings are about single logs and are not repeated here; a method that broke down has no number, and is counted.
    """
    from threadpoolctl import threadpool_limits

    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", MixopeWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = repetition.measure()
    return Record(key_of(repetition), settings_of(repetition), rows, round(time.process_time() - start, 3))


def _leave_interruptions_alone() -> None:
    """Ctrl-C reaches every process of the terminal; only the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _one_thread() -> Iterator[None]:
    """The environment that new processes inherit."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
