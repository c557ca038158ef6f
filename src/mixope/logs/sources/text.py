"""CSV and TSV: text, so every value can fail to be what its column is.

Types are found by looking at all values, of many files in one query that tells them apart by name. In files above 64 MB
they are guessed from the first ``SAMPLE`` rows, which is faster, and the guess is checked on all rows: a column that
holds something else further down is looked at again. Neighbouring files whose types differ in nothing but gaps and
whole numbers are read with the wider ones.
Columns are then read as text and cast by TRY_CAST. The same reader serves SQL and Arrow.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from mixope.base.cells import BARE_SQL, bare
from mixope.base.errors import DataError
from mixope.logs.database import connect
from mixope.logs.provenance import hash_file
from mixope.logs.sources import HINT, Piece, file_list, literal, outside, quote, reading
from mixope.logs.sources.encodings import first_line, not_utf8
from mixope.logs.sources.stores import Store, here
from mixope.logs.types import Field, Kind

SAMPLE = 200_000
WHOLE_BYTES = 64_000_000

EXACT_DIGITS = 15
"""Whole numbers of so many digits are exact in float64."""

SQL_TYPES: dict[Kind, str] = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN"}
SQL_TYPES |= {"string": "VARCHAR", "null": "VARCHAR"}

IS_KIND: dict[Kind, str] = {
    "int": (
        "(CASE WHEN CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0} THEN true "  # as it is usually written: faster
        "ELSE regexp_full_match(trim({0}), '[+-]?[0-9]+') AND TRY_CAST({0} AS BIGINT) IS NOT NULL END)"
    ),
    "float": "(TRY_CAST({0} AS DOUBLE) IS NOT NULL)",
    "bool": "(lower(trim({0})) IN ('true', 'false'))",
}
"""Whether a text is a value of the kind."""

IS_BEYOND = "(TRY_CAST({0} AS BIGINT) IS NULL AND regexp_full_match(trim({0}), '[+-]?[0-9]+'))"
"""Whether a text is a whole number that does not fit into 64 bits."""

EXPECTED: dict[Kind, str] = {"int": "integers", "float": "numbers", "bool": "true or false"}


@dataclass(frozen=True)
class DelimitedFiles:
    """CSV files with one header."""

    files: tuple[str, ...]
    header: tuple[str, ...]
    delimiter: str
    fields: Mapping[str, Field]
    constants: Mapping[str, str | int] = field(default_factory=dict)
    null_free: frozenset[str] = frozenset()
    all_false: frozenset[str] = frozenset()
    in_memory: bool = False
    store: Store | None = None
    """Where the files lie; None for this machine. From a store they are copied to this disk first."""

    def texts(self) -> str:
        """FROM-able rows with every column as text."""
        return _reader(self._paths(), self.header, self.delimiter)

    def _paths(self) -> list[str]:
        return [here(name, self.store) for name in self.files]

    def relation(self, connection: Any) -> str:
        """FROM-able rows with every column as its kind."""
        return f"(SELECT {self._typed(self.header)} FROM {self.texts()})"

    def table(self, columns: Sequence[str]) -> Any:
        """The columns through the same reader, so that types agree."""
        with reading(self.files[0]), connect() as connection:
            return connection.sql(f"SELECT {self._typed(columns)} FROM {self.texts()}").to_arrow_table()

    def counts(self) -> tuple[int, ...]:
        """By a pass over each file, made once."""
        return self._counts

    @cached_property
    def _counts(self) -> tuple[int, ...]:
        file = _file_column(self.header)
        paths = self._paths()
        text = _reader(paths, self.header, self.delimiter, file)
        with reading(self.files[0]), connect() as connection:
            found = connection.execute(f"SELECT {file}, count(*) FROM (SELECT * FROM {text}) GROUP BY {file}")
            rows = dict(found.fetchall())
        return tuple(rows.get(path, 0) for path in paths)

    def known_rows(self) -> int | None:
        """Only a pass over the file tells."""
        return None

    def split(self, rows: int) -> list[tuple[str, Piece]]:
        """One piece per file: where a line begins is not known."""
        return [(name, replace(self, files=(name if self.store else os.path.abspath(name),))) for name in self.files]

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """Text keeps no statistics."""
        return None

    def digests(self) -> tuple[str, ...]:
        """Of the files."""
        return tuple(hash_file(path) for path in self._paths())

    def explain_text(self, kinds: Mapping[str, Kind]) -> DataError | None:
        """One pass over all files and columns, then one over the column and file where it stumbled."""
        kinds = {name: kind for name, kind in kinds.items() if kind in IS_KIND}
        if not kinds:
            return None
        stray = [f"coalesce(bool_or({_is_not(kind, name)}), false)" for name, kind in kinds.items()]
        with reading(self.files[0]), connect() as connection:
            found = connection.execute(f"SELECT {', '.join(stray)} FROM {self.texts()}").fetchall()[0]
        first = next((name for name, bad in zip(kinds, found, strict=True) if bad), None)
        return None if first is None else self._unreadable(first, kinds[first])

    def _unreadable(self, column: str, kind: Kind) -> DataError | None:
        """The first rows of the first file that hold such a text, how many, and the first text."""
        for name in self.files:
            text = _reader((here(name, self.store),), self.header, self.delimiter)
            numbered = f"SELECT {quote(column)}, row_number() OVER () - 1 AS position FROM {text}"
            query = (
                f"SELECT position, {quote(column)}, count(*) OVER () FROM ({numbered}) WHERE {_is_not(kind, column)}"
            )
            with reading(name), connect() as connection:
                rows = connection.execute(f"{query} ORDER BY 1 LIMIT 5").fetchall()
            if rows:
                return DataError(
                    f"Text in a {'numeric' if kind != 'bool' else 'true/false'} column",
                    where=name,
                    column=column,
                    rows=[row[0] for row in rows],
                    total=rows[0][2],
                    expected=EXPECTED[kind],
                    got=repr(rows[0][1]),
                    hint=(
                        "write true or false, or 1 or 0, on every row"
                        if kind == "bool"
                        else "fix these rows, or leave the value empty where it is unknown"
                    ),
                )
        return None

    def _typed(self, columns: Sequence[str]) -> str:
        def cast(name: str) -> str:
            to = SQL_TYPES[self.fields[name].kind]
            # Around a bare column DuckDB moves the cast into its reader, where it is no longer a TRY.
            if to == "VARCHAR":
                return f"{BARE_SQL.format(quote(name))} AS {quote(name)}"
            return f"TRY_CAST(nullif({quote(name)}, '') AS {to}) AS {quote(name)}"

        return ", ".join(cast(name) for name in columns)


def _reader(files: Sequence[str], header: Sequence[str], delimiter: str, named: str | None = None) -> str:
    """FROM-able rows as text, perhaps with the name of their file in a column ``named``."""
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
    file = "" if named is None else f"filename={literal(named)}, "
    return (
        f"read_csv({file_list(files)}, auto_detect=false, header=true, delim={literal(delimiter)}, quote='\"', "
        f"escape='\"', {file}hive_partitioning=false, columns={{{columns}}})"
    )


def _file_column(header: Sequence[str]) -> str:
    """A name for the column that tells a row's file, where several are read at once: none of the header's."""
    name = "mixope_file"
    while name in (column.lower() for column in header):
        name += "_"
    return name


def read_header(name: str, *, tabs: bool, store: Store | None = None) -> tuple[tuple[str, ...], str]:
    """The column names of the first line, and the delimiter: the commonest of , ; tab | there."""
    text = first_line(name, here(name, store))
    if not text.strip():
        raise DataError("The file is empty", where=name, expected="a header line and at least one row")
    delimiter = "\t" if tabs else max(",;\t|", key=text.count)
    try:
        parts = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise DataError(f"The header cannot be read: {error}", where=name, hint=HINT) from error
    header = tuple(bare(part.strip()) or f"column{position}" for position, part in enumerate(parts))
    twice = [part for part in header if [other.lower() for other in header].count(part.lower()) > 1]
    if twice:
        values = any(part.replace(".", "").isdigit() for part in twice)
        hint = "the first line must hold the names of the columns" if values else "rename or drop one of them"
        raise DataError("Two columns have the same name", where=name, column=twice[0], hint=hint)
    return header, delimiter


class ColumnFacts(NamedTuple):
    """What is known of a column after looking at its values.

    ``full``: none is missing. ``long``: a text has so many characters that a float64 may not hold it exactly.
    """

    field: Field
    full: bool
    long: bool


Columns = dict[str, ColumnFacts]


def look_at(
    names: Sequence[str], header: Sequence[str], delimiter: str, store: Store | None = None
) -> Iterator[Columns]:
    """Every column of some files with this header: of the small ones in one query, of each large one by itself."""
    paths = {name: here(name, store) for name in names}
    small = [path for path in paths.values() if os.path.getsize(path) <= WHOLE_BYTES]
    found = _together(small, header, delimiter) if len(small) > 1 else {}
    for name, path in paths.items():
        yield found[path] if found.get(path) else look(name, header, delimiter, path)


def _together(paths: Sequence[str], header: Sequence[str], delimiter: str) -> dict[str, Columns]:
    """By file; nothing where one of them cannot be read, so that each is tried by itself and the error names it."""
    import duckdb

    file = _file_column(header)
    try:
        with connect() as connection:
            return _look_by_file(connection, _reader(paths, header, delimiter, file), header, file)
    except duckdb.Error:
        return {}


def look(name: str, header: Sequence[str], delimiter: str, path: str | None = None) -> Columns:
    """Every column of one file, from its values; ``path`` is where it lies, if not where its name says."""
    path = path or name
    rows = _reader((path,), header, delimiter)
    with _as_utf8(name, path), connect() as connection:
        if os.path.getsize(path) <= WHOLE_BYTES:
            found = _look(connection, rows, header)
        else:
            guessed = _look(connection, f"(SELECT * FROM {rows} LIMIT {SAMPLE})", header)
            found = _checked(connection, rows, guessed)
    if not found:
        raise DataError("The file has a header and no rows", where=name, expected="at least one row")
    return found


@contextmanager
def _as_utf8(name: str, path: str) -> Iterator[None]:
    """Inside, text that DuckDB cannot read because it is not UTF-8 is an error that says what it is."""
    import duckdb

    try:
        with reading(name):
            yield
    except DataError as error:
        if isinstance(error.__cause__, duckdb.Error) and re.search("(?i)unicode|utf-?8", str(error.__cause__)):
            raise not_utf8(name, path) from error
        raise


def _look(connection: Any, rows: str, columns: Sequence[str]) -> Columns:
    """By counting, of each column, the values of each kind; nothing where there are no rows."""
    return _looked(connection.execute(f"SELECT {_counts_of(columns)} FROM {rows}").fetchall()[0], columns)


def _look_by_file(connection: Any, rows: str, columns: Sequence[str], file: str) -> dict[str, Columns]:
    """The same of several files; one without rows is not there."""
    found = connection.execute(f"SELECT {file}, {_counts_of(columns)} FROM {rows} GROUP BY {file}").fetchall()
    return {name: _looked(counts, columns) for name, *counts in found}


def _counts_of(columns: Sequence[str]) -> str:
    counts = ["count(*)"]
    for column in columns:
        text = quote(column)
        counts += [f"count({text})", f"coalesce(max(length({text})), 0)", f"count(*) FILTER ({IS_BEYOND.format(text)})"]
        counts += [f"count(*) FILTER ({test.format(text)})" for test in IS_KIND.values()]
    return ", ".join(counts)


def _looked(counts: Sequence[int], columns: Sequence[str]) -> Columns:
    total, *found = counts
    if not total:
        return {}
    width = 3 + len(IS_KIND)
    groups = [found[i * width : (i + 1) * width] for i in range(len(columns))]
    return {
        column: ColumnFacts(_field([present, *others], list(IS_KIND)), present == total, longest > EXACT_DIGITS)
        for column, (present, longest, *others) in zip(columns, groups, strict=True)
    }


def _checked(connection: Any, rows: str, guessed: Mapping[str, ColumnFacts]) -> Columns:
    """What was seen in the first rows, where it holds in all of them; the other columns are looked at again."""
    other = [f"coalesce(bool_or({_is_other(known.field.kind, column)}), false)" for column, known in guessed.items()]
    gaps = [f"count(*) > count({quote(column)})" for column in guessed]
    found = connection.execute(f"SELECT {', '.join([*other, *gaps])} FROM {rows}").fetchall()[0] if guessed else ()
    wrong = [column for column, bad in zip(guessed, found[: len(guessed)], strict=True) if bad]
    full = {column: not gap for column, gap in zip(guessed, found[len(guessed) :], strict=True)}
    again = _look(connection, rows, wrong) if wrong else {}
    return {
        column: again.get(column, ColumnFacts(known.field, full[column], True)) for column, known in guessed.items()
    }


def _is_other(kind: Kind, column: str) -> str:
    """Whether a text is no value of the kind; anything is a string, and no text is nothing."""
    if kind == "string":
        return "false"
    return f"{quote(column)} IS NOT NULL" if kind == "null" else _is_not(kind, column)


def _field(counts: Sequence[int], kinds: Sequence[Kind]) -> Field:
    present, beyond, *matching = counts
    if present == 0:
        return Field("null", "empty", text=True)
    for kind, matches in zip(kinds, matching, strict=True):
        if matches == present:
            wide = kind == "float" and matching[kinds.index("int")] + beyond == present
            return Field(kind, f"text ({kind})", exact=True, text=True, wide=wide)
    return Field("string", "text", exact=True, text=True)


def _is_not(kind: Kind, column: str) -> str:
    return f"{quote(column)} IS NOT NULL AND NOT {IS_KIND[kind].format(quote(column))}"


def open_text(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None, *, tabs: bool
) -> Iterator[Piece]:
    """Neighbouring files with the same header, delimiter and types, or types that one can stand for, are one piece."""
    headers = ((read_header(path, tabs=tabs, store=store), path) for path in paths)
    for (header, delimiter), group in groupby(headers, itemgetter(0)):
        names = [path for _, path in group]
        for files, looked in _alike(zip(names, look_at(names, header, delimiter, store), strict=True)):
            fields = {column: found.field for column, found in looked.items()}
            full = frozenset(column for column, found in looked.items() if found.full)
            missing = outside(constants, fields)
            yield DelimitedFiles(tuple(files), header, delimiter, fields, missing, full, store=store)


def _alike(files: Iterable[tuple[str, Columns]]) -> Iterator[tuple[list[str], Columns]]:
    """Runs of files that one set of types can stand for."""
    names: list[str] = []
    common: Columns = {}
    for name, looked in files:
        both = _common(common, looked) if names else looked
        if both is None:
            yield names, common
            names, both = [], looked
        names.append(name)
        common = both
    if names:
        yield names, common


def _common(left: Columns, right: Columns) -> Columns | None:
    """Types that hold the values of both without loss; None where there are none."""
    found = {column: _wider(known, right[column]) for column, known in left.items()}
    known = {column: looked for column, looked in found.items() if looked is not None}
    return known if len(known) == len(found) else None


def _wider(one: ColumnFacts, other: ColumnFacts) -> ColumnFacts | None:
    """Of two columns: nothing beside something is a gap, and short whole numbers beside floats are floats."""
    full, long = one.full and other.full, one.long or other.long
    by_kind = {found.field.kind: found for found in (one, other)}
    if len(by_kind) == 1:
        return ColumnFacts(replace(one.field, wide=one.field.wide and other.field.wide), full, long)
    if "null" in by_kind:
        return ColumnFacts(next(found.field for kind, found in by_kind.items() if kind != "null"), full, long)
    whole = by_kind.get("int")
    return ColumnFacts(by_kind["float"].field, full, long) if "float" in by_kind and whole and not whole.long else None
