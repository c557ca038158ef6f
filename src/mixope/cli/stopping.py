"""Signals that stop a command: each is an interruption like Ctrl-C, so that everything is tidied up on the way out.

Other code may catch an interruption and pass it on as an error of its own, or lose it: DuckDB does the one, finalisers
the other. So it is written down that one came, and one that was lost comes again. Python's import system must not be
interrupted at all; there it waits for a moment. And whatever waits for ever, in a library or at the end of the process,
a command ends within :data:`BOUND` seconds: then a thread removes what is half-written and ends the process.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from mixope.base.files import remove_unfinished

INTERRUPTED = 130
STOPPED = "stopped before the end; no file is left half-written"
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
GRACE = 2.0
"""Seconds after a signal in which others change nothing: that is for tidying up."""
AGAIN = 0.05
"""Seconds after which an interruption comes again that a finaliser lost, or that came at a bad moment."""
IMPORTS = "<frozen importlib"
"""The files of Python's import system: interrupted between two of its lines it may keep its lock, and the next import
waits for ever."""
EXTENSIONS = "ExtensionFileLoader."
"""The loader of libraries in C. Of those that define enumerations in Python, nanobind's (DuckDB is one) end the process
where an interruption reaches them meanwhile."""
INSIST = 5.0
"""Seconds after which it comes again in any case, as long as the command runs: other code may have swallowed it."""
BOUND = 10.0
"""Seconds after the first signal in which a command ends, one way or the other."""
_came: list[float] = []
_told: list[str] = []


def listen() -> None:
    """Take signals that nobody else takes or ignores."""
    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _lost


def stopped() -> bool:
    """Whether a signal asked for the end."""
    return bool(_came)


def obey() -> None:
    """An interruption that other code has swallowed is one all the same, before anything is shown or written."""
    if stopped():
        raise KeyboardInterrupt


def finish() -> None:
    """The command is over: no signal changes how it ends."""
    for name in NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)
    _come_again(0.0)
    if stopped():  # CPython dies of it at the end where text was interrupted that is run, unless more is run
        exec("")
    if stopped() and hasattr(signal, "setitimer"):  # Python ends its threads before it has tidied up
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, BOUND + GRACE)


def told() -> None:
    """The user knows that the command was interrupted."""
    _told.append(STOPPED)


def is_told() -> bool:
    """Whether the user knows."""
    return bool(_told)


def _come_again(seconds: float) -> None:
    """Interrupt after so many seconds; never, if 0. The clock is ours only where we listen."""
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _interrupt:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _stop(number: int, frame: FrameType | None) -> None:
    if not _came or time.monotonic() - _came[-1] > GRACE:
        _interrupt(number, frame)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _came:
        _thread.start_new_thread(_enforce, ())  # what is above this in the library takes locks, here of all places
    _came.append(time.monotonic())
    if is_loading(frame) and hasattr(signal, "setitimer"):
        _come_again(AGAIN)
        return
    _come_again(INSIST)
    raise KeyboardInterrupt


def is_loading(frame: FrameType | None) -> bool:
    """Whether the import system is at work here, or a library in C is being loaded: that may abort if interrupted."""
    if frame is not None and frame.f_code.co_filename.startswith(IMPORTS):
        return True
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(IMPORTS) and code.co_qualname.startswith(EXTENSIONS):
            return True
        frame = frame.f_back
    return False


def _enforce() -> None:
    """End this process in time. Nothing is imported, and no lock is taken: somebody may hold it for ever."""
    time.sleep(BOUND)
    remove_unfinished()
    if not _told:
        with suppress(OSError):
            os.write(2, f"interrupted: {STOPPED}\n".encode())
    os._exit(INTERRUPTED)


def _lost(found: Any) -> None:
    """An exception that a finaliser could not pass on."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        _come_again(AGAIN)
    else:
        sys.__unraisablehook__(found)
