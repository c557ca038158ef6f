"""Text in another encoding than UTF-8: copied once as UTF-8, and read from there.

What begins with the mark of UTF-16 says so itself. Any other encoding is the user's to name, because no byte tells
latin-1 from its neighbours; the error says which byte is not UTF-8, and what would read the file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.logs.sources import reading
from mixope.logs.sources.endings import ending_of, format_of
from mixope.logs.sources.found import Finds, Found
from mixope.logs.sources.scratch import Scratch
from mixope.logs.sources.stores import Store, here, reaching

TEXTS = ("csv", "tsv", "jsonl")
MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLOCK = 1 << 20
"""Bytes that are looked at in one go."""
LONGEST_HEADER = 1_000_000
GUESSES = ("cp1252", "latin-1")
"""What text that is not UTF-8 usually is; the last one reads any bytes."""


def check_encoding(encoding: Any) -> str | None:
    """A name that Python knows; UTF-8 is what is read anyway."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
        "a".encode(name)
    except (LookupError, TypeError, ValueError):
        known = "such as latin-1, cp1252, utf-16, shift_jis or gb18030"
        raise UsageError(f"encoding is the name of a text encoding, {known}; got {encoding!r}") from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else str(encoding)


def in_utf8(found: Finds, format: str | None, encoding: str | None) -> Finds:
    """The same files; those of another encoding as copies."""
    texts = [(file.format or format or format_of(file.path)) in TEXTS for file in found.files]
    if encoding is not None and not any(texts):
        said = f" is for text (CSV, TSV, JSON lines), and {found.files[0].path} is none"
        raise UsageError(Advice(Setting("encoding", encoding), said))
    files = [_copied(file, encoding) if text else file for file, text in zip(found.files, texts, strict=True)]
    if all(copy is file for copy, file in zip(files, found.files, strict=True)):
        return found
    return replace(found, files=tuple(files), record={**found.record, "encoding": encoding or "utf-16"})


def _copied(file: Found, encoding: str | None) -> Found:
    if encoding is None:
        with reading(file.path), _opened(file.path, here(file.path, file.store)) as content:
            try:
                marked = content.read(2) in MARKS
            except (OSError, EOFError, zlib.error):  # not whole: whoever reads it says so
                marked = False
        if not marked:
            return file
        encoding = "utf-16"
    kept = Scratch()
    store = Store(kept.filesystem, file.path, f"{kept.root}/text{ending_of(file.path)}", kept)
    with reaching(file.path), kept.filesystem.open_output_stream(store.path(file.path), compression=None) as sink:
        packed = _is_packed(file.path)
        copy: Any = gzip.GzipFile(fileobj=sink, mode="wb", mtime=0) if packed else sink
        for text in _texts(file, encoding):
            copy.write(text.encode())
        if packed:
            copy.close()
    return replace(file, store=store, state=None)


def _texts(file: Found, encoding: str) -> Iterator[str]:
    """The text of a file, block by block, without a mark at its beginning."""
    decoder, before, first = codecs.getincrementaldecoder(encoding)(), 0, True
    with reading(file.path), _opened(file.path, here(file.path, file.store)) as content:
        while True:
            block = content.read(BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                place = before + getattr(error, "start", 0)
                raise DataError(
                    f"The file is not text in {encoding}",
                    where=file.path,
                    got=f"{getattr(error, 'reason', error)} about byte {place:,}",
                    hint=Advice("name another with ", Setting("encoding")),
                ) from None
            yield text.removeprefix("\ufeff") if first else text
            before, first = before + len(block), False
            if not block:
                return


def _is_packed(name: str) -> bool:
    return name.lower().endswith(".gz")


@contextmanager
def _opened(name: str, path: str) -> Iterator[Any]:
    """The bytes of a file, unpacked where its name says so."""
    with open(path, "rb") as file:
        yield gzip.GzipFile(fileobj=file) if _is_packed(name) else file


def first_line(name: str, path: str) -> str:
    """The first line as text; of an old Macintosh, all lines are one. A compressed file is checked as a whole."""
    with reading(name), _opened(name, path) as content:
        line = content.readline(LONGEST_HEADER)
    try:
        text = next(iter(line.splitlines()), b"").decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise not_utf8(name, path)
    if _is_packed(name):
        _check_gzip(name, path)
    return text


def _check_gzip(name: str, path: str) -> None:
    """Hold the content against the sum at its end, which DuckDB does not look at; a block at a time."""
    with reading(name), gzip.open(path) as content:
        try:
            while content.read(BLOCK):
                pass
        except zlib.error as error:
            raise OSError(str(error)) from error


def not_utf8(name: str, path: str) -> DataError:
    """The error for text that is not UTF-8: where it is not, and which encoding reads the file."""
    with reading(name), _opened(name, path) as content:
        start = content.read(BLOCK)
        wide = _sixteen_bits(start)
        stray, line = (None, 1) if wide or b"\0" in start else _first_stray(io.BytesIO(start), content)
        readable = wide or (stray is not None and _guess(name, path))
    hint = Advice("save it as UTF-8, or ", Setting("format"), " if it is not a CSV file")
    if readable:
        hint = Advice(f"it can be read as {readable}: ", Setting("encoding", readable), "; or save it as UTF-8")
    got = None if stray is None else f"the byte 0x{stray:02x} in line {line:,}"
    return DataError("The file is not UTF-8 text", where=name, got=got, hint=hint)


def _sixteen_bits(start: bytes) -> str | None:
    """UTF-16 without its mark: every other byte of plain letters is zero."""
    head = start[: min(len(start), 200) // 2 * 2]
    zeros = (sum(not byte for byte in head[k::2]) * 4 > len(head[k::2]) * 3 for k in (0, 1))
    first, second = zeros
    return None if first == second else "utf-16-be" if first else "utf-16-le"


def _first_stray(*contents: Any) -> tuple[int | None, int]:
    """The first byte that is not UTF-8, and its line; None where all are."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    for content in contents:
        while block := content.read(BLOCK):
            held = decoder.getstate()[0]
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                whole = held + block
                return whole[error.start], line + whole[: error.start].count(b"\n")
            line += block.count(b"\n")
    return None, line


def _guess(name: str, path: str) -> str | None:
    """The encoding that reads the whole file, which is text."""
    for encoding in GUESSES:
        decoder = codecs.getincrementaldecoder(encoding)()
        with _opened(name, path) as content:
            try:
                while block := content.read(BLOCK):
                    if b"\0" in block:
                        return None
                    decoder.decode(block)
                return encoding
            except UnicodeDecodeError:
                continue
    return None
