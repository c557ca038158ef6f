"""Signals that stop a command: each is an interruption like Ctrl-C, so that everything is tidied up on the way out.

Other code may catch an interruption and pass it on as an error of its own, or lose it: DuckDB does the one, finalisers
the other. So it is written down that one came, and one that was lost comes again. Python's import system must not be
interrupted at all; there it waits for a moment.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
GRACE = 2.0
"""Seconds after a signal in which others change nothing: that is for tidying up."""
AGAIN = 0.05
"""Seconds after which an interruption comes again that was lost, or that came at a bad moment."""
IMPORTS = "<frozen importlib"
"""The files of Python's import system: interrupted between two of its lines it may keep its lock, and the next import
waits for ever."""
_came: list[float] = []


@contextmanager
def listening() -> Iterator[None]:
    """Take signals that nobody else takes or ignores; afterwards, when all is tidy, they end the process at once."""
    numbers = [number for name in NAMES if (number := getattr(signal, name, None)) is not None]
    mine = [n for n in numbers if signal.getsignal(n) in (signal.SIG_DFL, signal.default_int_handler)]
    for number in mine:
        signal.signal(number, _stop)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _lost
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def stopped() -> bool:
    """Whether a signal asked for the end."""
    return bool(_came)


def _stop(number: int, frame: FrameType | None) -> None:
    if not _came or time.monotonic() - _came[-1] > GRACE:
        _interrupt(number, frame)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _came.append(time.monotonic())
    if frame is not None and frame.f_code.co_filename.startswith(IMPORTS) and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        raise KeyboardInterrupt


def _lost(found: Any) -> None:
    """An exception that a finaliser could not pass on."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(found)
