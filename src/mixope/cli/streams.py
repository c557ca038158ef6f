"""Streams that the caller has closed (``>&-``, ``2>&-``, services without a terminal) lead nowhere.

Python has no stream there at all; and the next file that is opened gets its number, so that what a library below prints
would end up in a page or among the rows.
"""

from __future__ import annotations

import os
import sys

STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
"""By their numbers."""


def open_streams() -> None:
    """Open those that are closed on the null device, under their own numbers where these are free."""
    for number, (name, mode) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number and not _is_open(number):
                os.dup2(handle, number)
                os.close(handle)
                handle = number
            stream = open(handle, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
