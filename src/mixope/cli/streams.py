"""Streams that a shell has closed (``>&-``, ``2>&-``, ``<&-``).

Python has none there at all; and the next file that is opened takes the number of the stream, so that what libraries
print would end up in a page or among the rows.
"""

from __future__ import annotations

import os
import sys

STREAMS = 3
"""Their numbers are below this."""


def fill() -> bool:
    """Open them on the null device, under their own numbers; says whether there is a standard output."""
    there = sys.stdout is not None
    place = os.open(os.devnull, os.O_RDWR)
    while place < STREAMS:
        os.set_inheritable(place, True)
        place = os.open(os.devnull, os.O_RDWR)
    os.close(place)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    return there
