"""What an ONNX file may hold: a network whose numbers are all in the file itself.

The format lets a tensor name another file in which its numbers lie. Such names are those of whoever wrote the network;
none is followed. The file is a tree of messages in the encoding of Protocol Buffers: fields of a number and a type,
some of which are messages again. Only the way to tensors is walked, before anything else reads the file:

    model → graph, functions, training → nodes → attributes → tensors, and graphs again
"""

from __future__ import annotations

from collections.abc import Iterator

from mixope.base.errors import DataError

MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE, FUNCTION, TRAINING = range(8)
INSIDE: dict[int, dict[int, int]] = {
    MODEL: {7: GRAPH, 20: TRAINING, 25: FUNCTION},
    GRAPH: {1: NODE, 5: TENSOR, 15: SPARSE},
    NODE: {5: ATTRIBUTE},
    ATTRIBUTE: {5: TENSOR, 6: GRAPH, 10: TENSOR, 11: GRAPH, 22: SPARSE, 23: SPARSE},
    SPARSE: {1: TENSOR, 2: TENSOR},
    FUNCTION: {7: NODE, 11: ATTRIBUTE},
    TRAINING: {1: GRAPH, 2: GRAPH},
    TENSOR: {},
}
"""Message → number of a field → the message in it."""
EXTERNAL_DATA, DATA_LOCATION = 13, 14
"""Fields of a tensor: where else its numbers are, and that they are there."""
OTHER_FORMAT = b"ORTM"
"""At byte 4: the file is of a format of ONNX Runtime itself."""
VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5
DEEPEST = 100


def check_contents(content: bytes, where: str) -> None:
    """An error where a network refers to other files, or is no ONNX file."""
    if content[4:8] == OTHER_FORMAT:
        raise _wrong(where, "a network in the format of ONNX Runtime", "a network in the format of ONNX")
    left = [(MODEL, memoryview(content), 0)]
    try:
        while left:
            kind, message, depth = left.pop()
            for number, value in _fields(message):
                inner = INSIDE[kind].get(number)
                if kind == TENSOR and (number == EXTERNAL_DATA or (number == DATA_LOCATION and value != 0)):
                    raise DataError(
                        "the network keeps its numbers in another file, which is not opened",
                        where=where,
                        expected="a network that is one file",
                        hint="onnx.save(onnx.load(path), new_path, save_as_external_data=False)",
                    )
                if inner is not None and isinstance(value, memoryview):
                    if depth >= DEEPEST:
                        raise _wrong(where, "graphs in graphs without end", "a network")
                    left.append((inner, value, depth + 1))
    except (ValueError, IndexError) as error:
        raise _wrong(where, f"damaged: {error}", "a whole network") from None


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message: numbers, or the bytes of what may be a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key >= 1 << 32:  # readers cut such a key, and see the field of another number
            raise ValueError("a field of a number that there is not")
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
        elif kind == BYTES:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise ValueError("a field is longer than its message")
            yield number, message[at : at + size]
            at += size
        elif kind in (WIDE, NARROW):
            at += 8 if kind == WIDE else 4
        else:
            raise ValueError("a field of an unknown type")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _wrong(where: str, got: str, expected: str) -> DataError:
    return DataError("the file is no network that can be run", where=where, expected=expected, got=got)
