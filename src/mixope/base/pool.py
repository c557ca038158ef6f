"""Processes that share work: a pipe in, a pipe out, and nothing else that could be left behind or waited for.

A worker reads calls from its standard input and writes outcomes to what was its standard output; what it prints goes to
stderr. It has one call at a time, so neither side ever waits for the other to read. There are no semaphores, no shared
memory, no processes that tidy up and no threads but one reader per worker: whatever interrupts this process, to end the
workers is to kill them. They end by themselves at the end of their input, when their parent is gone, and after a while
without work.

A worker imports from :func:`search_path` and never from the current folder, where anybody may have put a ``random.py``.
What the user named there, ``module:name``, travels by value (:func:`packed`). A task of many calls is written to a file
once; every worker maps its large arrays into memory instead of having a copy of them.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    Outcomes: TypeAlias = SimpleQueue[tuple["Worker", bytearray | None]]

OWN_MODULES: set[str] = set()
"""Modules that a policy was named in, and what they loaded from the same folder: workers do not look there."""
WATCH_SECONDS = 0.5
"""So long a process may outlive its parent."""
IDLE_SECONDS = 300.0
"""A worker that nobody needs for so long ends."""
LENT_SECONDS = 240.0
"""One that nobody needed for so long is replaced, for it may be about to end."""
MAPPED_BYTES = 1_000_000
"""Arrays from this size on are mapped into memory; smaller ones are copied."""
_PAGE = 4096
UNSENDABLE = (pickle.PicklingError, TypeError, AttributeError, RecursionError)
"""What pickle raises of things that cannot be written."""
Call = Callable[[], Any]
_THREADS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM", "NUMEXPR_NUM")
_HELD = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_BEGIN = """
import os, sys
sys.path[:] = sys.argv[2:]
pipes = os.dup(0), os.dup(1)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
from mixope.base.pool import serve
serve(int(sys.argv[1]), *pipes)
"""
"""What a worker begins with: where it may import from, before it does; and its pipes, which nobody else may use."""


def current_folder() -> str | None:
    """Where this process is; None if that folder is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


_HERE = current_folder()
"""The current folder in which this process began."""


class Unsendable(Exception):
    """A call that cannot be written for a worker, or that it cannot load."""


class Killed(Exception):
    """Workers died of something else than an exception."""


def current_folder_implied(path: str) -> bool:
    """Whether an entry of ``sys.path`` is the current folder, and stands there without being named by anybody.

    Python itself puts it there with ``-m``, ``-c``, in a console and in a notebook, and for an empty entry of
    PYTHONPATH. It was named where the script lies there that is being run, by PYTHONPATH, and where mixope lies there.
    """
    if not path:
        return True
    if _HERE is None or (path if os.path.isabs(path) else os.path.join(_HERE, path)).rstrip(os.sep) != _HERE:
        return False
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None) if getattr(main, "__spec__", None) is None else None
    named = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    homes = [os.path.dirname(os.path.abspath(script))] if script else []
    return _HERE not in (*named, *homes, str(Path(__file__).absolute().parents[1]))


def search_path() -> list[str]:
    """Where this process looks for modules, for processes of this machine: without a current folder nobody named."""
    return [path for path in sys.path if not current_folder_implied(path)]


def path_entries() -> str:
    """The same as one value of PYTHONPATH."""
    return os.pathsep.join(search_path())


def own_modules() -> list[ModuleType]:
    """Modules that workers do not find: those in which a policy was named, and those of an implied current folder."""
    names = set(OWN_MODULES)
    if any(map(current_folder_implied, sys.path)):
        folders = {current_folder(), _HERE}.difference(search_path(), [None])
        names |= {name for name, module in list(sys.modules.items()) if home_of(name, module) in folders}
    names.discard("__main__")
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]


def home_of(name: str, module: object) -> str | None:
    """The folder on the search path from which a module was imported; None for one without a file."""
    real = issubclass(type(module), ModuleType)  # other objects may stand there, and say that they are modules
    file = ModuleType.__getattribute__(module, "__dict__").get("__file__") if real else None
    if not isinstance(file, str):
        return None
    levels, above = name.count(".") + os.path.basename(file).startswith("__init__."), Path(file).parents
    return str(above[levels]) if os.path.isabs(file) and levels < len(above) else None


def packed(what: object, buffers: Callable[[Any], Any] | None = None) -> bytes:
    """Anything as bytes for a worker: what the user wrote in a script or in a file of this folder goes with it."""
    import cloudpickle

    known = set(cloudpickle.list_registry_pickle_by_value())
    modules = [module for module in own_modules() if module.__name__ not in known]
    try:
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(what, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers))
    finally:
        for module in modules:
            with suppress(ValueError):  # another thread was here
                cloudpickle.unregister_pickle_by_value(module)


def write_task(path: Path, task: object) -> None:
    """A task in a file: its bytes, then its large arrays, each from a page of its own on."""
    large: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        with suppress(BufferError):  # one that is not contiguous
            if buffer.raw().nbytes >= MAPPED_BYTES:
                large.append(buffer.raw())
                return False
        return True

    try:
        body = packed(task, stays)
    except UNSENDABLE as error:
        raise Unsendable(f"{type(error).__name__}: {error}") from error
    head = pickle.dumps((len(body), [each.nbytes for each in large]))
    with open(path, "wb") as file:
        parts: list[bytes | memoryview] = [len(head).to_bytes(8, "little") + head, body, *large]
        for part in parts:
            file.seek(-(-file.tell() // _PAGE) * _PAGE)
            file.write(part)


@lru_cache(maxsize=2)
def read_task(path: Path) -> Any:
    """What was written there, read once in every worker."""
    import mmap

    with open(path, "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    size = 8 + int.from_bytes(mapped[:8], "little")
    length, sizes = pickle.loads(mapped[8:size])
    parts = []
    for each in (length, *sizes):
        begin = -(-size // _PAGE) * _PAGE
        size = begin + each
        parts.append(mapped[begin:size])
    try:
        return pickle.loads(parts[0], buffers=parts[1:])
    except Exception as error:
        raise Unsendable(f"{type(error).__name__}: {error}") from error


class Worker:
    """One process. Its outcomes go to the queue that came with the call; None says that it is gone."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.gone = False
        self._outcomes: Outcomes | None = None
        command = [sys.executable, "-P", "-c", _BEGIN, str(os.getpid()), *search_path()]
        with signals_held():
            self.process = subprocess.Popen(
                command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        threading.Thread(target=self._listen, name="mixope-reader", daemon=True).start()

    def ask(self, call: bytes, outcomes: Outcomes) -> None:
        """Send a call, whose outcome will be put into the queue."""
        self._outcomes = outcomes
        with suppress(OSError):  # it is gone, which the reader says
            _write(self.process.stdin, call)

    def end(self) -> None:
        """At once, whatever it is at."""
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]

    def _listen(self) -> None:
        outcome: bytearray | None
        with suppress(OSError), self.process.stdout as pipe:  # type: ignore[union-attr]
            while (outcome := _read(pipe)) is not None:
                self._tell(outcome)
        self.gone = True
        self._tell(None)

    def _tell(self, outcome: bytearray | None) -> None:
        if self._outcomes is not None:
            self._outcomes.put((self, outcome))


class Pool:
    """At most ``count`` workers at a time, which stay until it is closed; ``idle`` are those at hand."""

    def __init__(self, count: int, idle: list[Worker] | None = None) -> None:
        self.count = count
        self.idle = [] if idle is None else idle

    def results(self, calls: Sequence[Call], tries: int = 0, ahead: int | None = None) -> Generator[tuple[int, Any]]:
        """Results as they come, each with the number of its call; an exception of a call is raised.

        A call whose worker died is made again, as long as not more than ``tries`` die in a row. None is made ``ahead``
        of the oldest that is under way by more than so many. To close this early ends the workers that are busy.
        """
        while len(self.idle) < min(self.count, len(calls)):
            self.idle.append(Worker())
        left = _Calls(calls)
        busy: dict[Worker, tuple[int, bytes]] = {}
        outcomes: Outcomes = SimpleQueue()
        failures, ready = 0, list[tuple[int, Any]]()
        try:
            while True:
                while len(busy) < self.count:
                    oldest = min((number for number, _ in busy.values()), default=None)
                    call = left.next(None if ahead is None or oldest is None else oldest + ahead)
                    if call is None:
                        break
                    worker = self._worker()
                    busy[worker] = call
                    worker.ask(call[1], outcomes)
                if ready:  # workers are busy again before the caller is
                    yield ready.pop()
                    continue
                if not busy:
                    return
                worker, outcome = outcomes.get()
                if outcome is None:
                    failures += 1
                    if failures > tries:
                        raise Killed
                    left.again(busy.pop(worker))
                    worker.end()
                    continue
                failures = 0
                number, _ = busy.pop(worker)
                worker.since = time.monotonic()
                self.idle.append(worker)
                ready.append((number, _result(outcome)))
        finally:
            for worker in busy:
                worker.end()

    def close(self) -> None:
        """End the workers that are at hand."""
        while self.idle:
            self.idle.pop().end()

    def _worker(self) -> Worker:
        """One that is at hand, or a new one."""
        while self.idle:
            worker = self.idle.pop()
            if not worker.gone and time.monotonic() - worker.since < LENT_SECONDS:
                return worker
            worker.end()
        return Worker()


class _Calls:
    """Calls in their order; those that must be made again come first."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._fresh = enumerate(calls)
        self._waiting = list[tuple[int, bytes]]()

    def next(self, limit: int | None) -> tuple[int, bytes] | None:
        """The next one as bytes, with its number; None if there is none below the limit."""
        if not self._waiting:
            drawn = next(self._fresh, None)
            if drawn is None:
                return None
            self._waiting.append((drawn[0], _as_bytes(drawn[1])))
        return self._waiting.pop() if limit is None or self._waiting[-1][0] < limit else None

    def again(self, call: tuple[int, bytes]) -> None:
        """Make this one again, the first one first."""
        self._waiting = sorted([*self._waiting, call], reverse=True)


def shared(count: int) -> Pool:
    """A pool of workers that stay for the next one of this kind."""
    return Pool(count, _SHARED)


_SHARED: list[Worker] = []
atexit.register(Pool(0, _SHARED).close)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_SHARED.clear)


def _as_bytes(call: Call) -> bytes:
    try:
        return packed(call)
    except UNSENDABLE as error:
        raise Unsendable(f"{type(error).__name__}: {error}") from error


def _result(outcome: bytearray) -> Any:
    """What a call returned; what it raised is raised here, with the place where that was."""
    kind, body, place = pickle.loads(outcome)
    if kind == "result":
        return pickle.loads(body)
    try:
        error = pickle.loads(body)
    except Exception:  # an exception that cannot be made again
        error = RuntimeError(place.strip().rpartition("\n")[2])
    error.__cause__ = error.__cause__ or _Elsewhere(place)
    raise error


class _Elsewhere(Exception):
    """Where in a worker an exception was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _environment() -> dict[str, str]:
    """Linear algebra has one thread in each worker; an empty entry of PYTHONPATH would be the current folder."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {
        **os.environ,
        **dict.fromkeys((f"{name}_THREADS" for name in _THREADS), "1"),
        "PYTHONPATH": os.pathsep.join(entry for entry in path if entry and not current_folder_implied(entry)),
    }


@contextmanager
def signals_held() -> Iterator[None]:
    """What is started inside takes no signals until it says so: Ctrl-C reaches all processes of a terminal."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write(pipe: Any, message: bytes) -> None:
    for part in (len(message).to_bytes(8, "little"), message):
        rest = memoryview(part)
        while rest:
            rest = rest[pipe.write(rest) :]


def _read(pipe: Any) -> bytearray | None:
    """A message; None at the end, which may come in the middle of one."""
    size = _exactly(pipe, 8)
    return None if size is None else _exactly(pipe, int.from_bytes(size, "little"))


def _exactly(pipe: Any, size: int) -> bytearray | None:
    found = bytearray(size)
    rest = memoryview(found)
    while rest:
        count = pipe.readinto(rest)
        if not count:
            return None
        rest = rest[count:]
    return found


def serve(parent: int, reads: int, writes: int) -> None:
    """What a worker does: it answers calls until there are no more. What it prints goes to stderr."""
    with suppress(OSError):  # there may be no stderr
        os.dup2(2, 1)
    calls, answers = os.fdopen(reads, "rb", buffering=0), os.fdopen(writes, "wb", buffering=0)
    idle = [time.monotonic()]
    begin_process(parent, lambda: bool(idle) and time.monotonic() - idle[0] > IDLE_SECONDS)
    while (call := _read(calls)) is not None:
        idle.clear()
        outcome = _outcome(call)
        idle.append(time.monotonic())
        _write(answers, outcome)
    os._exit(0)  # nobody waits for what threads of libraries are at


def begin_process(parent: int, over: Callable[[], bool] = lambda: False) -> None:
    """What a process does first: it leaves Ctrl-C, which reaches all processes of a terminal, to its parent; and it
    ends when that is gone, for one that is killed has no time to end it, or when its work is over."""

    def watch() -> None:
        while os.getppid() == parent and not over():
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


def _outcome(call: bytearray) -> bytes:
    """What becomes of a call, as bytes: its result, or its exception and where that was raised."""
    try:
        try:
            function = pickle.loads(call)
        except Exception as error:
            raise Unsendable(f"{type(error).__name__}: {error}") from error
        return pickle.dumps(("result", _portable(function()), ""))
    except BaseException as error:
        place = traceback.format_exc()
        try:
            body = _portable(error)
        except Exception:
            body = b""
        return pickle.dumps(("error", body, place))


def _portable(what: object) -> bytes:
    import cloudpickle

    return bytes(cloudpickle.dumps(what, pickle.HIGHEST_PROTOCOL))
