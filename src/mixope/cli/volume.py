"""How much is said on stderr: with ``--quiet`` errors only; with ``--verbose`` every pass over the rows, too.

It is said once per command, before anything else happens, and holds until its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mixope.base.processes import BARS

_loud: ContextVar[bool | None] = ContextVar("loud", default=None)


def set_volume(loud: bool | None) -> bool | None:
    """True for ``--verbose``, False for ``--quiet``, None for neither."""
    _loud.set(loud)
    BARS.set(loud is not False)
    return loud


def quiet() -> bool:
    """Whether nothing but errors is wanted on stderr."""
    return _loud.get() is False


class _Teller(logging.Handler):
    def __init__(self, say: Callable[[str, str], None]) -> None:
        super().__init__(logging.INFO)
        self.say, self.heard = say, 0

    def emit(self, record: logging.LogRecord) -> None:
        """One line for each record."""
        self.heard += 1
        self.say("scan", record.getMessage())


@contextmanager
def telling_times(say: Callable[[str, str], None]) -> Iterator[None]:
    """Inside, with ``--verbose``, every pass over the rows is told with its time, and at the end the time of all."""
    if not _loud.get():
        yield
        return
    from mixope.logs.timing import SCANS

    teller, log, began = _Teller(say), logging.getLogger(SCANS), time.perf_counter()
    before = log.level
    log.addHandler(teller)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(teller)
        log.setLevel(before)
        scans = "1 scan" if teller.heard == 1 else f"{teller.heard} scans"
        say("time", f"{time.perf_counter() - began:.2f} s for {scans} and what was computed from them")
