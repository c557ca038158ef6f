"""Pieces that need no parsing: Parquet files, Arrow tables, Arrow datasets. Text files are in ``delimited``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mixope.logs.failures import reading
from mixope.logs.kinds import Field, field_of
from mixope.logs.sources import file_list, unique


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files; what their footers say is known without reading a row."""

    files: tuple[str, ...]
    fields: Mapping[str, Field]
    rows: tuple[int, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False

    def relation(self, connection: Any) -> str:
        """The files, matched by column name."""
        return f"read_parquet({file_list(self.files)}, hive_partitioning=false)"

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = []
        for name in self.files:
            with reading(name), pq.ParquetFile(name) as file:
                tables.append(_plain(file.read(columns=list(columns))))
        return pa.concat_tables(tables)

    def counts(self) -> tuple[int, ...]:
        """From the footers."""
        return self.rows


def _plain(table: Any) -> Any:
    """The table without dictionaries, which cannot always be unified across files."""
    import pyarrow as pa

    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            plain = table.column(position).cast(column.type.value_type)
            table = table.set_column(position, column.name, plain)
    return table


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory: given as such, from arrays, or from an .npz file."""

    content: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    all_false: frozenset[str] = frozenset()
    in_memory: bool = True

    @property
    def fields(self) -> Mapping[str, Field]:
        """From the table's schema."""
        return fields_of(self.content.schema)

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
        return self.content.select(list(columns))

    def counts(self) -> tuple[int, ...]:
        """One entry."""
        return (self.content.num_rows,)


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
    """A pyarrow dataset: Arrow IPC files, or whatever the user built."""

    dataset: Any
    files: tuple[str, ...]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False

    @property
    def fields(self) -> Mapping[str, Field]:
        """From the dataset's schema."""
        return fields_of(self.dataset.schema)

    def relation(self, connection: Any) -> str:
        """The dataset, scanned by the connection batch by batch."""
        name = unique("dataset")
        connection.register(name, self.dataset)
        return name

    def table(self, columns: Sequence[str]) -> Any:
        """The columns of all fragments."""
        with reading(self.files[0]):
            return self.dataset.to_table(columns=list(columns))

    def counts(self) -> tuple[int, ...]:
        """Rows of each fragment, or one entry where fragments are not the files."""
        with reading(self.files[0]):
            rows = tuple(fragment.count_rows() for fragment in self.dataset.get_fragments())
        return rows if len(rows) == len(self.files) else (sum(rows),)


def fields_of(schema: Any) -> dict[str, Field]:
    """The fields of an Arrow schema; a name that stands twice has no usable one."""
    fields: dict[str, Field] = {}
    for column in schema:
        twice = column.name in fields
        fields[column.name] = Field("other", "several columns of this name") if twice else field_of(column.type)
    return fields
