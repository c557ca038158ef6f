"""Where rows come from: runs of rows that share one physical schema, each readable by SQL and by Arrow.

A *source* is one argument of ``read``; it has one or more *pieces* (the Parquet files of a folder, a table …).
A piece offers the same rows twice: ``relation`` for DuckDB, which never holds them all, and ``table`` for Arrow.
Each kind of piece has its file: ``parquet``, ``arrow``, ``text``; ``arrays`` makes tables of NumPy arrays,
``trajectories`` of lists of episodes, and ``buffers`` of objects of other libraries; ``lists`` reads lists that are
written as text, ``times`` reads times, and ``encodings`` other text than UTF-8. ``files`` finds files and opens them by
format, and ``layouts`` knows the folders that are more than their files: ``delta``, ``iceberg``, ``minari``,
``lerobot``, ``hugging``, ``lakes``. Files of other tools are known by what is in them: ``hdf5`` (``d4rl``, ``d3rlpy``),
``lines`` (``rllib``, ``dsjson``), and ``dialects``, which go by columns. ``stores`` are reached by an address, and
``stored`` finds files there; ``databases`` and ``frames`` are written once to ``scratch``, and read from there.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.logs.schema import Role
from mixope.logs.types import Field, Kind

if TYPE_CHECKING:
    from mixope.logs.sources.stamps import Stamp

HINT = Advice("check that the file is whole and of the format that its name says, or ", Setting("format"))
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_REASONS = ("Expected Number of Columns", "Invalid unicode", "Value with unterminated quote", "Maximum line size")
"""How DuckDB begins to say what is wrong with a line."""
SPILLED = "duckdb_temp"
"""In the names of all files that DuckDB spills to."""
NO_THREAD = re.compile("worker thread|start new thread|[Rr]esource temporarily unavailable")
"""How libraries say that the system gives them no more threads, each of which takes memory."""
CHECKSUM = "CRC checksum verification failed"
"""How Arrow says that a page of a Parquet file is not what was written."""
DAMAGED = "The file is damaged: what it holds does not match the checksum that was written with it"
_numbers = count()


@contextmanager
def reading(where: str, problem: str = "The log cannot be read") -> Iterator[None]:
    """Inside, what DuckDB, Arrow or the file system find wrong with the data is a ``DataError`` about ``where``."""
    import duckdb
    import pyarrow

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise UsageError(_no_room(where)) from error
    except (duckdb.InterruptException, duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException):
        raise  # nothing about the data
    except (duckdb.Error, pyarrow.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
        if SPILLED in str(error) or NO_THREAD.search(str(error)):
            raise UsageError(_no_room(where)) from error
        if CHECKSUM in str(error):
            raise DataError(DAMAGED, where=where, hint="copy or write the file again") from error
        raise DataError(f"{problem}: {_first_words(error)}", where=where, hint=HINT) from error


def _first_words(error: Exception) -> str:
    """The first line of a message; of a CSV file, the line that is wrong and what is wrong with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    number = _CSV_LINE.search(lines[0]) if lines else None
    reasons = [line for line in lines[1:] if line.startswith(_CSV_REASONS)] if number else []
    if number and reasons:
        return f"line {number[1]}: {reasons[0]}"
    return lines[0] if lines else type(error).__name__


def _no_room(where: str) -> Advice:
    return Advice(
        f"there is not enough memory to read {where}; give more with ",
        Setting("memory_limit"),
        ", work with fewer threads with ",
        Setting("threads", 1),
        ", or set TMPDIR to a folder with more room: what does not fit in memory goes there",
    )


def arrow_batches(result: Any, rows: int) -> Any:
    """What DuckDB found, as Arrow batches of at most so many rows, by whatever name this DuckDB has for it."""
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    return getattr(result, next(name for name in names if hasattr(result, name)))(rows)


def unique(stem: str) -> str:
    """A name that this process gives once."""
    return f"mixope_{stem}_{next(_numbers)}"


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | None) -> str:
    """An SQL constant."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def file_list(files: Sequence[str]) -> str:
    """An SQL list of file names, none of them taken for a pattern."""
    escape = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})
    return "[" + ", ".join(literal(name.translate(escape)) for name in files) + "]"


class Piece(Protocol):
    """Rows with one physical schema."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names for messages, in row order."""

    @property
    def fields(self) -> Mapping[str, Field]:
        """The raw columns."""

    @property
    def constants(self) -> Mapping[str, str | int]:
        """Columns that the path holds (``policy_id=a/…``): one value throughout."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held already."""

    @property
    def null_free(self) -> frozenset[str]:
        """Columns known to hold no null."""

    @property
    def all_false(self) -> frozenset[str]:
        """Boolean columns known to hold false only."""

    def relation(self, connection: Any) -> str:
        """What to write after FROM, valid for this connection."""

    def table(self, columns: Sequence[str]) -> Any:
        """These raw columns as an Arrow table, in row order."""

    def counts(self) -> tuple[int, ...]:
        """Rows of each file."""

    def known_rows(self) -> int | None:
        """All rows, where that is known without reading them."""

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """The same rows in the same order as pieces of about ``rows`` rows or fewer, each with a name of its own.

        No row is read: a piece is as small as the format allows. Each can be pickled and opened elsewhere.
        """

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """The least and the greatest value of a column without nulls, where that is known without reading it."""

    def digests(self) -> tuple[str, ...]:
        """For each of ``files``, a hash that changes when its content does. Reads no rows of remote data."""

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """The error for the first of these columns that holds text of another kind; None for formats with types."""


def plain(table: Any) -> Any:
    """Values instead of dictionaries, whose order is a detail of storage; strings instead of views of them."""
    import pyarrow as pa

    view = getattr(pa.types, "is_string_view", lambda _: False)
    for position, column in enumerate(table.schema):
        coded = pa.types.is_dictionary(column.type)
        type_ = column.type.value_type if coded else column.type
        to = pa.string() if view(type_) else type_
        if to != column.type:
            chunks = table.column(position).chunks  # a dictionary of views can neither be cast nor taken from
            values = [c.dictionary.cast(to).take(c.indices) if coded else c.cast(to) for c in chunks]
            table = table.set_column(position, column.name, pa.chunked_array(values, to))
    return table


def outside(constants: Mapping[str, str | int], names: Container[str]) -> dict[str, str | int]:
    """The columns of a path that the file itself does not have: a column in the file wins."""
    return {name: value for name, value in constants.items() if name not in names}


def total_of(sizes: Iterable[int | None]) -> int | None:
    """The sum of some counts; None if one is not known."""
    found = list(sizes)
    known = [size for size in found if size is not None]
    return sum(known) if len(known) == len(found) else None


def field_in(piece: Piece, raw: str, item: int | None = None) -> Field | None:
    """The field of a raw column in a piece (of its elements where ``item`` is given): from the schema or the path."""
    if raw in piece.fields:
        found = piece.fields[raw]
        return Field(found.element or "other", found.words) if item is not None and found.kind == "list" else found
    if raw in piece.constants:
        return Field("string" if isinstance(piece.constants[raw], str) else "int", "path", exact=True)
    return None


@dataclass(frozen=True)
class Source:
    """One argument of ``read``: its name for messages, its pieces, and what the user said of it."""

    name: str
    pieces: tuple[Piece, ...]
    label: str | None = None
    columns: Mapping[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    done: str | None = None
    ends: str | None = None
    notes: tuple[str, ...] = ()
    stamps: tuple[Stamp, ...] = field(default=(), kw_only=True)
    """Of the files that are read in every scan."""
    roles: Mapping[str, Role] = field(default_factory=dict, kw_only=True)
    """What columns of the observation are, where the user said it."""
    recorded: Mapping[str, Role] = field(default_factory=dict, kw_only=True)
    """What they are where the record of a data set says it, and the user does not."""
    missing: str | None = field(default=None, kw_only=True)
    """What is done about missing values of the observation; None: they are refused."""
    record: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """What the provenance says besides: the version of a table, say."""
    home: str | None = field(default=None, kw_only=True)
    """The engine whose frame was given: "spark", "dask", "ray" or "polars"."""
    held: tuple[Any, ...] = field(default=(), kw_only=True, repr=False, compare=False)
    """What must not go while the files are read: scratch folders."""

    @property
    def names(self) -> tuple[str, ...]:
        """The raw columns of all pieces, in order of appearance."""
        return tuple(dict.fromkeys(n for piece in self.pieces for n in (*piece.fields, *piece.constants)))

    @property
    def in_memory(self) -> bool:
        """Whether all rows are held already."""
        return all(piece.in_memory for piece in self.pieces)

    def fields_in(self, raw: str, item: int | None = None) -> list[tuple[str, Field]]:
        """(file, field) of a raw column in every piece that has it."""
        found = [(piece.files[0], field_in(piece, raw, item)) for piece in self.pieces]
        return [(name, field) for name, field in found if field is not None]

    def counts(self) -> tuple[int, ...]:
        """Rows of each file."""
        return tuple(rows for piece in self.pieces for rows in piece.counts())

    def inputs(self) -> list[dict[str, Any]]:
        """One record per file or table: path, rows and sha256; of a table in a lake, its version."""
        records = []
        for piece in self.pieces:
            counts = piece.counts()
            known = counts if len(counts) == len(piece.files) else [None] * len(piece.files)
            for name, rows, digest in zip(piece.files, known, piece.digests(), strict=True):
                records.append({"path": name, "rows": rows, "sha256": digest, **self.record})
        return records

    def locate(self, piece: int, rows: Sequence[int]) -> tuple[str, list[int]]:
        """The file of the first of some rows of a piece, and those rows of it, counted from 0 within the file."""
        found, counts = self.pieces[piece], self.pieces[piece].counts()
        if len(counts) != len(found.files):
            return found.files[0], list(rows)
        before = 0
        for name, size in zip(found.files, counts, strict=True):
            if rows[0] < before + size:
                return name, [row - before for row in rows if row < before + size]
            before += size
        return found.files[-1], list(rows)
