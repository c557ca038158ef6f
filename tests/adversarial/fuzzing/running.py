"""Many inputs, shared among worker processes that may crash or hang without ending the run.

A worker notes the number it is at in shared memory before it begins. If it dies, or stays at one number for too long,
that number failed; another worker takes over behind it. Failures are kept as they are found, so that an interrupted
run has lost nothing: it says with which number to go on.
"""

from __future__ import annotations

import faulthandler
import multiprocessing as mp
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from .cases import SHARES, draw_case
from .corpus import keep
from .folders import makers, tree
from .judging import Failure, judge
from .mutations import LOGS, POLICIES, originals
from .watching import WATCH

CHUNK = 250
VARIABLE = "MIXOPE_FUZZING_WATCHED"
"""Set, it has the workers watch what they open."""
PATIENCE = 20.0
"""Seconds after which an input hangs."""
LOADING = 300.0
"""Seconds that a worker may take to begin."""
MOST_BYTES = 16 * 1024**3
"""Of address space for a worker: what a damaged header claims is not to take the machine with it."""
KINDS = tuple(SHARES)


class SharedDatabase:
    """``duckdb.connect`` with cursors of one database in memory, because opening one takes longer than most inputs.

    A cursor has its own temporary views. A database that an earlier input broke is replaced.
    """

    def __init__(self) -> None:
        import duckdb

        self.alone: Callable[..., Any] = duckdb.connect
        self._error, self._database = duckdb.Error, self.alone(":memory:")

    def __call__(self, *given: Any, **options: Any) -> Any:
        cursor = self._database.cursor()
        try:
            cursor.execute("SELECT 1").fetchall()
        except self._error:
            self._database = self.alone(":memory:")
            cursor = self._database.cursor()
        return cursor


def _work(seed: int, pipe: Connection, now: Any, counts: Any, trace: str) -> None:
    """A worker: takes ranges of numbers, sends failures as it finds them, and a None for every range."""
    import duckdb

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(trace, "w") as file, suppress(EOFError, BrokenPipeError):  # whoever asked is gone
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file)
        for name in makers():  # what is slow the first time is no input that hangs
            tree(name)
        originals(LOGS), originals(POLICIES)
        duckdb.connect = SharedDatabase()
        if os.environ.get(VARIABLE):
            WATCH.begin()
        while (numbers := pipe.recv()) is not None:
            for number in range(*numbers):
                now.value = number
                case = draw_case(seed, number)
                counts[KINDS.index(case.kind)] += 1
                failure = judge(case)
                if failure is not None:
                    pipe.send((number, failure))
            pipe.send(None)


TARGET: Callable[..., None] = _work


@dataclass
class Worker:
    """A process, the range it works on, and when it was last seen to move."""

    seed: int
    trace: str
    numbers: tuple[int, int] | None = None
    at: int = -1
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        context = mp.get_context("spawn")
        self.now, self.counts = context.RawValue("q", -1), context.RawArray("q", len(KINDS))
        self.pipe, theirs = context.Pipe()
        arguments = (self.seed, theirs, self.now, self.counts, self.trace)
        self.process = context.Process(target=TARGET, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, numbers: tuple[int, int]) -> None:
        """Work on a range."""
        self.numbers, self.since = numbers, time.monotonic()
        self.pipe.send(numbers)

    def hangs(self, patience: float) -> bool:
        """Whether it has been at one input for too long; a worker that has just begun is still loading."""
        if self.now.value != self.at:
            self.at, self.since = self.now.value, time.monotonic()
        started = self.numbers is not None and self.at >= self.numbers[0]
        return self.numbers is not None and time.monotonic() - self.since > (patience if started else LOADING)

    def stop(self) -> str:
        """End the process; where it was, as far as it could still say."""
        if self.process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGUSR1)  # type: ignore[arg-type]
            time.sleep(0.5)
            self.process.kill()
        self.process.join()
        return Path(self.trace).read_text() if os.path.exists(self.trace) else ""


@dataclass
class Run:
    """What a run has done so far."""

    seed: int
    ranges: deque[tuple[int, int]]
    folder: Path
    patience: float = PATIENCE
    failures: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    done: int = 0

    def fail(self, number: int, failure: Failure) -> None:
        """Keep the first input of every kind of failure; count the others."""
        self.failures[failure.place] += 1
        if self.failures[failure.place] == 1:
            path = keep(draw_case(self.seed, number), failure, f"--seed {self.seed} --only {number}", self.folder)
            say(f"\n{number}: {failure.words[:400]}\n  at {failure.place}, kept in {path.name}\n")

    def finish(self, worker: Worker) -> None:
        """Add what a worker has counted."""
        self.counts.update(dict(zip(KINDS, worker.counts, strict=True)))

    def lowest(self, workers: list[Worker]) -> int | None:
        """Every number below is done; None if all are."""
        left = [numbers[0] for numbers in self.ranges] + [w.numbers[0] for w in workers if w.numbers]
        return min(left, default=None)


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(text, end="", file=sys.stderr, flush=True)


def fuzz(
    seed: int, begin: int, end: int, jobs: int, folder: Path, patience: float = PATIENCE, quiet: bool = False
) -> Run:
    """Try the inputs from ``begin`` up to, not including, ``end``."""
    run = Run(seed, deque((low, min(low + CHUNK, end)) for low in range(begin, end, CHUNK)), folder, patience)
    started = shown = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mixope-fuzzing-") as scratch:
        workers = [Worker(seed, f"{scratch}/{i}.txt") for i in range(min(jobs, len(run.ranges)))]
        try:
            _hand_out(run, workers)
            while any(worker.numbers for worker in workers):
                _listen(run, workers)
                if not quiet and time.monotonic() - shown > 5.0:
                    shown = time.monotonic()
                    pace = run.done / (shown - started)
                    say(f"\r{run.done:,} inputs, {sum(run.failures.values())} failed, {pace:.0f}/s ")
        except KeyboardInterrupt:
            say(f"\ninterrupted; go on with --from {run.lowest(workers)}\n")
        for worker in workers:
            run.finish(worker)
            worker.process.kill()
            worker.process.join()
    return run


def _hand_out(run: Run, workers: list[Worker]) -> None:
    for worker in workers:
        if worker.numbers is None and run.ranges:
            worker.begin(run.ranges.popleft())


def _listen(run: Run, workers: list[Worker]) -> None:
    """What workers send, and whether one died or hangs."""
    for ready in wait([worker.pipe for worker in workers], timeout=1.0):
        place = next(i for i, worker in enumerate(workers) if worker.pipe is ready)
        try:
            said = workers[place].pipe.recv()
        except (EOFError, OSError):
            _replace(run, workers, place, "crash")
            continue
        if said is not None:
            run.fail(*said)
            continue
        worker = workers[place]
        assert worker.numbers is not None
        run.done += worker.numbers[1] - worker.numbers[0]
        worker.numbers = None
    for place, worker in enumerate(workers):
        if worker.hangs(run.patience):
            _replace(run, workers, place, "hang")
    _hand_out(run, workers)


def _replace(run: Run, workers: list[Worker], place: int, what: str) -> None:
    """Another worker for what is left of the range of one that died or hangs."""
    worker = workers[place]
    trace = worker.stop()
    run.finish(worker)
    if worker.numbers is not None:
        number, end = max(worker.now.value, worker.numbers[0]), worker.numbers[1]
        frames = re.findall(r'File ".*/mixope/.*?(\w+\.py)", line (\d+) in (\w+)', trace)
        where = "at {}:{} {}".format(*frames[0]) if frames else "somewhere"
        run.fail(number, Failure(f"{what} (exit {worker.process.exitcode})", f"{what} {where}"))
        run.done += number + 1 - worker.numbers[0]
        if number + 1 < end:
            run.ranges.appendleft((number + 1, end))
    workers[place] = Worker(run.seed, worker.trace)
