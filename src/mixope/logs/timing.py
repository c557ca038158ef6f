"""How long each pass over the rows took, told to the logger ``mixope.scans`` of the standard library."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SCANS = "mixope.scans"
_log = logging.getLogger(SCANS)
_finished: ContextVar[int] = ContextVar("finished", default=0)
"""How many passes have come to their end."""


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Inside, the rows of ``name`` are read once; what consists of several passes is told as these."""
    before, began = _finished.get(), time.perf_counter()
    yield
    if _finished.get() == before:
        _finished.set(before + 1)
        _log.info("%s was read in %.2f s", name, time.perf_counter() - began)
