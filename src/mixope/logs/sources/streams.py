"""Streams: open binary files, pipes, standard input.

They can be read once, and logs are scanned several times; so their bytes are copied to a scratch folder
(:mod:`mixope.logs.sources.scratch`) and read from there.
"""

from __future__ import annotations

from typing import Any

from mixope.base.errors import DataError
from mixope.logs.sources.endings import ending_of
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.scratch import Scratch
from mixope.logs.sources.stores import BLOCK, Store, reaching

STANDARD = ("<stdin>", 0)
"""By its name in Python, and by its number."""


def is_stream(given: Any) -> bool:
    """Whether something is an open file, and no table that happens to have a method of this name."""
    return callable(getattr(given, "read", None)) and callable(getattr(given, "readable", None))


def find_stream(given: Any) -> Finds:
    """A copy of all that comes, called as the stream is."""
    name = stream_name(given)
    kept = Scratch()
    store = Store(kept.filesystem, name, f"{kept.root}/stream{ending_of(name)}", kept)
    size = 0
    with reaching(name), kept.filesystem.open_output_stream(store.path(name), compression=None) as copy:
        while block := _block(given, name):
            size += len(block)
            copy.write(block)
    if size == 0:
        raise DataError("Nothing came from the stream", where=name, expected="a log in one of the formats of files")
    return Finds((Found(name, store=store),))


def stream_name(given: Any) -> str:
    """For messages, and for the format that a name may say."""
    name = getattr(given, "name", None)
    return "standard input" if name in STANDARD else name if isinstance(name, str) and name else "stream"


def _block(given: Any, name: str) -> bytes:
    found = given.read(BLOCK)
    if isinstance(found, str):
        raise DataError(
            "The stream gives text",
            where=name,
            expected="bytes, as a file gives them that is opened with mode 'rb'",
            hint="give sys.stdin.buffer instead of sys.stdin, or open the file in binary mode",
        )
    return bytes(found)
