"""Arrow: tables in memory, and pyarrow datasets (Arrow files, or whatever the user built)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.provenance import hash_file, hash_stored, hash_table
from mixope.logs.sources import Piece, outside, plain, reading, total_of, unique
from mixope.logs.sources.arrow_sizes import refuse_larger, refuse_larger_stream
from mixope.logs.sources.footers import bounds_of, join, runs
from mixope.logs.sources.stamps import Stamp, is_local, stamped, stamped_in
from mixope.logs.sources.stores import Store, here
from mixope.logs.types import Field, Kind, fields_of


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory: given as such, from arrays, or from a file that is read whole (then with its ``digest``)."""

    content: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    digest: str | None = None
    all_false: frozenset[str] = frozenset()
    in_memory: bool = True
    known: Mapping[str, Field] | None = None
    """What the columns are, where the rows are some of those of another piece."""
    notes: tuple[str, ...] = ()
    """What its reader assumed."""

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """From the table's schema, unless it is known otherwise."""
        return fields_of(self.content.schema) if self.known is None else self.known

    @property
    def null_free(self) -> frozenset[str]:
        """Arrow counts nulls."""
        named = zip(self.content.schema.names, self.content.columns, strict=True)
        return frozenset(name for name, column in named if column.null_count == 0)

    def relation(self, connection: Any) -> str:
        """The table, lent to the connection without a copy."""
        name = unique("table")
        connection.register(name, _lendable(self.content, self.fields))
        return name

    def table(self, columns: Sequence[str]) -> Any:
        """A selection of columns."""
        return plain(self.content.select(list(columns)))

    def counts(self) -> tuple[int, ...]:
        """One entry."""
        return (self.content.num_rows,)

    def known_rows(self) -> int | None:
        """The table knows."""
        return int(self.content.num_rows)

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """Slices."""
        return [
            (f"{self.files[0]}[{low}:{low + rows}]", replace(self, content=self.content.slice(low, rows)))
            for low in range(0, self.content.num_rows, rows)
        ]

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """They would have to be computed."""
        return None

    def digests(self) -> tuple[str, ...]:
        """Of the file that it came from, or of the rows."""
        return (hash_table(self.content) if self.digest is None else self.digest,)

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """Columns have types."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        """The rows as an Arrow stream: pickled as it is, a slice would take the whole table with it."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.content.schema) as stream:
            stream.write_table(self.content)
        return self.__dict__ | {"content": sink.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The table of the stream."""
        import pyarrow as pa

        self.__dict__.update(state | {"content": pa.ipc.open_stream(state["content"]).read_all()})


def _lendable(table: Any, fields: Mapping[str, Field]) -> Any:
    """The columns that can have a meaning, as types that DuckDB knows: it has no half floats."""
    import pyarrow as pa

    half, single = pa.float16(), pa.float32()
    table = table.select([name for name, field in fields.items() if field.kind != "other"])
    for position, column in enumerate(table.schema):
        if column.type == half:
            table = table.set_column(position, column.name, table.column(position).cast(single))
        elif fields[column.name].kind == "list" and column.type.value_type == half:
            table = table.set_column(position, column.name, table.column(position).cast(pa.list_(single)))
    return table


@dataclass(frozen=True)
class ArrowDataset:
    """A pyarrow dataset. Its fragments (files, or some row groups of one) are its unit of work."""

    dataset: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """From the dataset's schema."""
        return fields_of(self.dataset.schema)

    def relation(self, connection: Any) -> str:
        """The dataset, scanned by the connection batch by batch."""
        name = unique("dataset")
        connection.register(name, self._lendable())
        return name

    def _lendable(self) -> Any:
        """The dataset; a scan of the columns that can have a meaning where others are of types DuckDB has not."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        half, single = pa.float16(), pa.float32()
        kept = [column for column in self.dataset.schema if self.fields[column.name].kind != "other"]
        lists = {c.name for c in kept if self.fields[c.name].kind == "list" and c.type.value_type == half}
        casts = {c.name: single for c in kept if c.type == half} | dict.fromkeys(lists, pa.list_(single))
        if not casts and len(kept) == len(self.dataset.schema):
            return self.dataset
        wanted = {c.name: ds.field(c.name).cast(casts[c.name]) if c.name in casts else ds.field(c.name) for c in kept}
        return self.dataset.scanner(columns=wanted)

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all fragments."""
        with reading(self.files[0]):
            return plain(self.dataset.to_table(columns=list(columns)))

    def counts(self) -> tuple[int, ...]:
        """Rows of each fragment, or one entry where fragments are not the files."""
        return self._counts

    @cached_property
    def _counts(self) -> tuple[int, ...]:
        with reading(self.files[0]):
            rows = tuple(_rows(fragment) for fragment in self._fragments())
        return rows if len(rows) == len(self.files) else (sum(rows),)

    def known_rows(self) -> int | None:
        """Parquet and Arrow files say how many rows they have; others would have to be read."""
        with reading(self.files[0]):
            return total_of(_known_rows(fragment) for fragment in self._fragments())

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """Fragments, and runs of row groups of Parquet ones."""
        parts: list[tuple[str, Piece]] = []
        for position, fragment in enumerate(self._fragments()):
            name = str(getattr(fragment, "path", f"fragment {position}"))
            if not hasattr(fragment, "path"):
                lent = ArrowTable(fragment.to_table(schema=self.dataset.schema), (name,), self.constants)
                parts += lent.split(rows)
                continue
            for span, part in _row_groups(_rooted(fragment), rows):
                parts.append((f"{name}{span}", replace(self, dataset=self._of(part), files=(name,))))
        return parts

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """From the footers, where all fragments are Parquet."""
        found = []
        with reading(self.files[0]):
            for fragment in self._fragments():
                if not hasattr(fragment, "row_groups"):
                    return None
                found.append(bounds_of(fragment.metadata, [group.id for group in fragment.row_groups], column))
        return join(found)

    def digests(self) -> tuple[str, ...]:
        """Of each fragment, or one for all where fragments are not the files."""
        found = tuple(self._digest(fragment) for fragment in self._fragments())
        if len(found) == len(self.files):
            return found
        return tuple(hashlib.sha256(repr((name, found)).encode()).hexdigest() for name in self.files)

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """Columns have types."""
        return None

    def parts(self) -> Iterator[tuple[str, Hashable, frozenset[int] | None]]:
        """The name of each file, where it lies (None: here), and its row groups where these are not all of them."""
        from pyarrow import fs

        for fragment in self._fragments():
            if not hasattr(fragment, "path"):
                continue
            here = isinstance(fragment.filesystem, fs.LocalFileSystem)
            with reading(fragment.path):
                footer = getattr(fragment, "metadata", None)
                chosen = frozenset(group.id for group in fragment.row_groups) if footer else frozenset()
            some = footer is not None and len(chosen) < footer.num_row_groups
            yield fragment.path, None if here else fragment.filesystem.type_name, chosen if some else None

    def stamps(self) -> tuple[Stamp, ...]:
        """Of the files."""
        with reading(self.files[0]):
            files = [(part.filesystem, part.path) for part in self._fragments() if hasattr(part, "path")]
        here = [stamp for system, path in files if is_local(system) for stamp in stamped([path])]
        stored = [stamped_in(system, path) for system, path in files if not is_local(system)]
        return (*here, *(stamp for stamp in stored if stamp is not None))

    def _digest(self, fragment: Any) -> str:
        if not hasattr(fragment, "path"):
            return hash_table(fragment.to_table(schema=self.dataset.schema))
        with reading(fragment.path):
            footer = getattr(fragment, "metadata", None)
            chosen = [group.id for group in fragment.row_groups] if footer else []
        stored = hash_stored(fragment.filesystem, fragment.path, footer)
        whole = footer is None or len(chosen) == footer.num_row_groups
        said = (str(fragment.partition_expression), None if whole else chosen)
        return stored if said == ("true", None) else hashlib.sha256(repr((stored, said)).encode()).hexdigest()

    def _fragments(self) -> list[Any]:
        try:
            return list(self.dataset.get_fragments())
        except ValueError as error:
            raise DataError(
                "A dataset with a filter has no files of its own",
                where=self.files[0],
                hint="pass the rows, dataset.to_table(), or write them to a file and read that",
            ) from error

    def _of(self, fragment: Any) -> Any:
        import pyarrow.dataset as ds

        return ds.FileSystemDataset([fragment], self.dataset.schema, fragment.format, fragment.filesystem)


def _known_rows(fragment: Any) -> int | None:
    if hasattr(fragment, "row_groups"):
        return sum(int(group.num_rows) for group in fragment.row_groups)
    cheap = not hasattr(fragment, "path") or fragment.format.default_extname in {"arrow", "feather", "ipc"}
    return int(fragment.count_rows()) if cheap else None


def _rows(fragment: Any) -> int:
    """Of the row groups that were chosen, where there are such; pyarrow counts those of the whole file."""
    known = _known_rows(fragment)
    return int(fragment.count_rows()) if known is None else known


def _rooted(fragment: Any) -> Any:
    """The fragment with a path that holds in every folder."""
    from pyarrow import fs

    path = os.path.abspath(fragment.path)
    if not isinstance(fragment.filesystem, fs.LocalFileSystem) or path == fragment.path:
        return fragment
    some = {"row_groups": [group.id for group in fragment.row_groups]} if hasattr(fragment, "row_groups") else {}
    return fragment.format.make_fragment(path, fragment.filesystem, fragment.partition_expression, **some)


def _row_groups(fragment: Any, rows: int) -> Iterator[tuple[str, Any]]:
    """A fragment in runs of row groups, each with the words that name the run; whole if it is not Parquet."""
    if not hasattr(fragment, "row_groups"):
        yield "", fragment
        return
    groups = fragment.row_groups
    for low, high in runs([group.num_rows for group in groups], rows):
        chosen = [group.id for group in groups[low:high]]
        yield f"[{chosen[0]}:{chosen[-1] + 1}]", fragment.subset(row_group_ids=chosen)


def open_arrow(paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None) -> Iterator[Piece]:
    """One piece per file: random access where the file allows it, a table where it is a stream."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    for path in paths:
        with reading(path), open(path, "rb") if store is None else store.open(path) as file:
            if file.read(6) == b"ARROW1":
                _refuse_damaged(path, store)
                place = os.path.abspath(path) if store is None else store.path(path)
                dataset = ds.dataset(place, format="ipc", filesystem=None if store is None else store.filesystem)
                piece: Piece = ArrowDataset(dataset, (path,), outside(constants, dataset.schema.names))
            else:
                _refuse_large_stream(file, path, store)
                file.seek(0)
                table = pa.ipc.open_stream(file).read_all()
                table.validate(full=True)
                missing = outside(constants, table.column_names)
                piece = ArrowTable(table, (path,), missing, hash_file(here(path, store)), in_memory=False)
        if sum(piece.counts()) == 0:
            raise DataError("The file has no rows", where=path, expected="at least one row")
        yield piece


def _refuse_damaged(path: str, store: Store | None) -> None:
    """An error of Arrow if a value of the file lies outside of its buffers: Arrow and DuckDB would read there.

    Arrow checks no offsets as it reads. One batch is held at a time.
    """
    import pyarrow as pa

    with pa.OSFile(path) if store is None else store.open(path) as stored:
        refuse_larger(stored, path, on_disk=store is None or store.on_disk)
        stored.seek(0)
        with pa.ipc.open_file(stored) as file:
            for number in range(file.num_record_batches):
                file.get_batch(number).validate(full=True)


def _refuse_large_stream(file: Any, path: str, store: Store | None) -> None:
    """An error if all that a stream holds, which is read at once, is far more than its bytes."""
    import pyarrow as pa

    size = os.path.getsize(path) if store is None else file.size()
    file.seek(0)
    refuse_larger_stream(pa.ipc.MessageReader.open_stream(file), size, path)
