"""Work in a library that hears no signals, such as a query: it can be interrupted, and need not be waited for for ever.

The work is done in a thread of its own while this one waits in short slices. An interruption of any kind (Ctrl-C,
SIGTERM) that reaches the waiting thread stops the work and is passed on; so does the end of the time that it may take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from mixope.base.errors import DataError

Result = TypeVar("Result")
SLICE = 0.05
"""Seconds between two looks at the clock and at signals."""
SECONDS, SECONDS_PER_BYTE = 60.0, 1e-6
BYTES, BYTES_PER_BYTE = 2_000_000_000, 50
"""What the rows of a view may take: a minute and 2 GB, and more if the file is large."""
BYTES_PER_STORED = 1_000
"""What those of a table may take for each byte of the file: a default value is stored once for all rows."""


def heard(
    work: Callable[[], Result],
    stop: Callable[[], None],
    seconds: float | None = None,
    late: Callable[[], DataError] | None = None,
) -> Result:
    """The result of ``work``, which ``stop`` can end; the error ``late`` where it takes longer than ``seconds``."""
    found: list[Result] = []
    failed: list[BaseException] = []
    done = threading.Event()  # a thread that is joined and interrupted counts as ended before Python 3.13

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised again where it is waited for
            failed.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    end = None if seconds is None else time.monotonic() + seconds
    worker.start()
    ended = False
    try:
        while not ended and not done.wait(SLICE):
            ended = end is not None and time.monotonic() > end
    finally:
        while not done.is_set():  # what it works on is closed next
            with suppress(KeyboardInterrupt):
                stop()
                done.wait(SLICE)
    if ended and not found and late is not None:
        raise late()
    if failed:
        raise failed[0]
    return found[0]


class Bounded:
    """Batches with a schema, counted as they pass; the error ``full`` where they take more room than ``most``."""

    def __init__(self, batches: Any, most: float, full: Callable[[], DataError]) -> None:
        self.batches, self.schema, self.most, self.full = batches, batches.schema, most, full

    def __iter__(self) -> Iterator[Any]:
        taken = 0
        for batch in self.batches:
            taken += batch.nbytes
            if taken > self.most:
                raise self.full()
            yield batch


def time_for(size: int) -> float:
    """Seconds that the rows of a view in a file of so many bytes may take."""
    return SECONDS + SECONDS_PER_BYTE * size


def room_for(size: int) -> float:
    """Bytes that they may take."""
    return float(BYTES + BYTES_PER_BYTE * size)


def room_for_stored(size: int) -> float:
    """Bytes that the rows of a table may take."""
    return float(BYTES + BYTES_PER_STORED * size)


MAKE_A_TABLE = "if the view is yours, store its rows: CREATE TABLE rows AS SELECT * FROM the view, and name that table"


def too_long(called: str, size: int) -> DataError:
    """The error for a view, in a file of so many bytes, that took longer."""
    return DataError(
        "The view does not come to an end",
        where=called,
        expected=f"its rows within {time_for(size):,.0f} seconds",
        got="none, or not all of them",
        hint=MAKE_A_TABLE,
    )


def too_large(called: str, size: int) -> DataError:
    """The error for a view whose rows take more room."""
    return DataError(
        "The view has far more rows than its database could hold",
        where=called,
        expected=f"rows of at most {room_for(size) / 1e9:,.0f} GB in all",
        got="more",
        hint=MAKE_A_TABLE,
    )


def too_large_stored(called: str, size: int) -> DataError:
    """The error for a table whose rows take more room."""
    return DataError(
        "The rows of the table take far more room than its file",
        where=called,
        expected=f"at most {room_for_stored(size) / 1e9:,.0f} GB in all, in a file of {size:,} bytes",
        got="more",
        hint="if the table is yours, make another one with the columns that a log needs, and name that",
    )
