"""What the batches of an Arrow file unpack to, as they say themselves, before any of them is unpacked.

    file      ARROW1, messages, footer, the length of the footer (int32), ARROW1
    stream    messages
    message   four bytes of ones, the length of the header (int32), header, body
    body      buffers; of a packed one, the first eight bytes are its size when it is unpacked, -1: as it lies there

Headers and the footer are tables of FlatBuffers: a table begins with the way back to the list of the places of its
fields. The footer says where the messages of a file lie, and a reader follows it alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mixope.base.errors import DataError
from mixope.logs.sources import reading
from mixope.logs.sources.gate import ByteBudget

MAGIC = b"ARROW1"
ONES = b"\xff\xff\xff\xff"
DICTIONARY, BATCH = 2, 3
"""Kinds of messages that have a body."""


class Block(NamedTuple):
    """Where a message lies in a file."""

    place: int
    header: int
    body: int


def refuse_larger(file: Any, where: str, *, on_disk: bool = True) -> None:
    """An error where the messages of an open file unpack to far more than the file.

    Of a file ``on_disk`` a few bytes of each message are read; a store is asked once for each.
    """
    size = file.size()
    room = ByteBudget(where, size)
    with _in_words(where):
        for block in _blocks(file, size):
            room.take(_unpacked(file, block, on_disk))


def refuse_larger_stream(messages: Iterable[Any], size: int, where: str) -> None:
    """The same of the messages of a stream of so many bytes."""
    import pyarrow as pa

    room = ByteBudget(where, size)
    with _in_words(where):
        for message in messages:
            room.take(_batch_bytes(bytes(message.metadata), pa.BufferReader(message.body)))


def _blocks(file: Any, size: int) -> Iterator[Block]:
    """Where the dictionaries and the batches of a file lie, as its footer says."""
    tail = len(MAGIC) + 4
    length = _number("<i", _part(file, size - tail, tail), 0)
    footer = _part(file, size - tail - length, length)
    root = _number("<I", footer, 0)
    for field in (2, 3):
        place = _field(footer, root, field)
        count, first = (0, 0) if place is None else _vector(footer, place)
        for number in range(count):
            yield Block(*_struct("<qi4xq", footer, first + 24 * number))


def _unpacked(file: Any, block: Block, on_disk: bool) -> int:
    """The bytes of one message of a file."""
    import pyarrow as pa

    header = _part(file, block.place, block.header)
    content = header[8 if header[:4] == ONES else 4 :]
    if on_disk:
        return _batch_bytes(content, file, block.place + block.header)
    return _batch_bytes(content, pa.BufferReader(_part(file, block.place + block.header, block.body)))


def _batch_bytes(header: bytes, body: Any, begin: int = 0) -> int:
    """The bytes of a message, whose body begins there in a file."""
    root = _number("<I", header, 0)
    kind, table = _field(header, root, 1), _field(header, root, 2)
    what = None if kind is None else _number("<B", header, kind)
    if table is None or what not in (DICTIONARY, BATCH):
        return 0
    table += _number("<I", header, table)
    if what == DICTIONARY:
        inner = _field(header, table, 1)
        if inner is None:
            return 0
        table = inner + _number("<I", header, inner)
    place, packed = _field(header, table, 2), _field(header, table, 3) is not None
    count, first = (0, 0) if place is None else _vector(header, place)
    buffers = (_struct("<qq", header, first + 16 * number) for number in range(count))
    return sum(_size(body, begin + offset, length) if packed else length for offset, length in buffers)


def _size(body: Any, place: int, length: int) -> int:
    """The bytes of one packed buffer."""
    if length <= 0:
        return 0
    found = _number("<q", _part(body, place, 8), 0)
    return length if found < 0 else found


def _part(file: Any, place: int, length: int) -> bytes:
    """Some bytes of an open file."""
    if place < 0 or not 0 <= length <= file.size() - place:
        raise ValueError("a place outside of the file")
    file.seek(place)
    return bytes(file.read(length))


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if it has none."""
    fields = table - _number("<i", data, table)
    place = 4 + 2 * number
    offset = _number("<H", data, fields + place) if place + 2 <= _number("<H", data, fields) else 0
    return table + offset if offset else None


def _vector(data: bytes, place: int) -> tuple[int, int]:
    """How many entries a list has, and where the first is."""
    start = place + _number("<I", data, place)
    return _number("<I", data, start), start + 4


def _number(kind: str, data: Any, place: int) -> int:
    (found,) = _struct(kind, data, place)
    return int(found)


def _struct(kind: str, data: Any, place: int) -> tuple[Any, ...]:
    if place < 0:
        raise ValueError("a place before the beginning")
    return struct.unpack_from(kind, data, place)


@contextmanager
def _in_words(where: str) -> Iterator[None]:
    """Inside, places that lead nowhere are an error about the file."""
    try:
        with reading(where):
            yield
    except (struct.error, ValueError) as error:
        raise DataError(
            f"The log cannot be read: its headers make no sense ({error})",
            where=where,
            expected="a whole Arrow file or stream",
            hint="copy or write the file again",
        ) from error
