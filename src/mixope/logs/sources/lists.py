"""Lists of numbers that were written as text: ``[0.1, 0.2]``, ``[0.1 0.2]``, ``(0.1, 0.2)``, ``array([0.1, 0.2])``.

Data frames and arrays come out like this when they are saved as CSV. As text they would be ids, each seen once. Where
an observation or action holds lists with fractions, all rows must hold lists of the same length, and these are read as
vectors. Lists of whole numbers may well be meant as ids (the cell ``(3, 4)`` of a grid): they stay what they are unless
the user says that they are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mixope.base.errors import Advice, DataError, Setting
from mixope.logs.database import connect
from mixope.logs.schema import Role
from mixope.logs.sources import Piece, Source, literal, quote, reading
from mixope.logs.sources.converted import Conversion, Converted
from mixope.logs.types import Field, Kind

LOOKED = 1000
"""Rows of each piece that are looked at for lists."""
SHOWN = 5
"""Rows that an error names."""

_NUMBER = r"(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)|null|none)"
_IN_BRACKETS = rf"\[\s*{_NUMBER}(?:(?:\s*,\s*|\s+){_NUMBER})*\s*,?\s*\]"
_IN_PARENTHESES = rf"\(\s*{_NUMBER}\s*,\s*(?:{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*,?\s*)?\)"
"""With a comma at least: (0.5) is no tuple."""
_LIST = rf"(?i)(?:{_IN_BRACKETS}|{_IN_PARENTHESES})"
_ALIKE = r"(?i)\[[\[\]()\s0-9.,;e+-]*\]"
"""Lists of lists, lists with ... in them, and other lists that are not read."""
_SCALAR, _WRAPPED = r"(?:np|numpy)\.\w+\(([^()]*)\)", r"(?s)(?:array|tensor)\(\s*([\[(].*[\])])\s*(?:,\s*\w+=.*)?\)"
"""How NumPy 2 writes the elements of a list, and how arrays and tensors write themselves."""
_SQL: dict[Kind, str] = {"float": "DOUBLE[]", "int": "BIGINT[]"}


class Place(NamedTuple):
    """Where lists may be: columns that hold the same notion, what the user said of them, and if it is a state."""

    columns: tuple[str, ...]
    role: Role | None = None
    state: bool = False

    @property
    def if_ids(self) -> Advice:
        """What to do where each text is an id."""
        said = Setting("roles", {self.columns[0]: "id"})
        return Advice("say ", said) if self.state else Advice("write it without brackets")


class ListCounts(NamedTuple):
    """How many values and lists some columns have, if numbers in them have fractions, and the lengths of the lists."""

    values: int = 0
    lists: int = 0
    fractions: bool = False
    lengths: frozenset[int] = frozenset()
    usual: int = 0

    def also(self, other: ListCounts) -> ListCounts:
        """Both together; the usual length is that of the first."""
        fractions, lengths = self.fractions or other.fractions, self.lengths | other.lengths
        return ListCounts(
            self.values + other.values, self.lists + other.lists, fractions, lengths, self.usual or other.usual
        )


def unpack(source: Source, places: Iterable[Place]) -> tuple[Source, list[str]]:
    """The source with lists instead of text where its states and actions are such, and a note on each column."""
    lists: dict[str, Field] = {}
    notes: list[str] = []
    for place in places:
        texts = tuple(n for n in place.columns if any(field.kind == "string" for _, field in source.fields_in(n)))
        if place.role in ("id", "category") or not _begins_with_lists(source, texts):
            continue
        looked = _look(source, texts)
        if looked.fractions or place.role == "number":
            _refuse_strays(source, place._replace(columns=texts), looked)
            kind: Kind = "float" if looked.fractions else "int"
            words = f"text (lists of {looked.usual})"
            lists |= dict.fromkeys(texts, Field("list", words, element=kind, width=looked.usual))
            notes += [_read_as_vector(source, place, looked.usual)] if place.role is None else []
        elif place.state and looked.lists == looked.values:
            notes.append(_taken_as_ids(source, place))
    return replace(source, pieces=tuple(_with(piece, lists) for piece in source.pieces)), notes


def _with(piece: Piece, lists: Mapping[str, Field]) -> Piece:
    texts = {name for name, field in piece.fields.items() if field.kind == "string"}
    mine = {name: field for name, field in lists.items() if name in texts}
    read = {name: Conversion(field, _values(name, field.element or "float")) for name, field in mine.items()}
    return Converted(piece, read) if read else piece


def _holders(source: Source, columns: Sequence[str]) -> Iterator[tuple[int, Piece, str]]:
    """Every column of every piece that holds it as text."""
    for position, piece in enumerate(source.pieces):
        for name in columns:
            if name in piece.fields and piece.fields[name].kind == "string":
                yield position, piece, name


def _begins_with_lists(source: Source, columns: Sequence[str]) -> bool:
    """Whether there is a list in the first rows of a piece."""
    if not columns:
        return False
    with reading(source.name), connect() as connection:
        for _, piece, name in _holders(source, columns):
            rows = f"SELECT {quote(name)} FROM {piece.relation(connection)} WHERE {quote(name)} IS NOT NULL"
            query = f"SELECT coalesce(bool_or({_looks_like_one(name)}), false) FROM ({rows} LIMIT {LOOKED})"
            if connection.execute(query).fetchall()[0][0]:
                return True
    return False


def _look(source: Source, columns: Sequence[str]) -> ListCounts:
    """All values of some columns."""
    found = ListCounts()
    with reading(source.name), connect() as connection:
        for _, piece, name in _holders(source, columns):
            size = f"CASE WHEN {_is_list(name)} THEN {_length(name)} END"
            fraction = f"{_has_fraction(name)} AND {_looks_like_one(name)}"
            rows = (
                f"SELECT {quote(name)} AS x, {size} AS size, {fraction} AS fraction FROM {piece.relation(connection)}"
            )
            query = (
                "SELECT count(x), count(size), coalesce(bool_or(fraction), false),"
                f" coalesce(min(size), 0), coalesce(max(size), 0), coalesce(mode(size), 0) FROM ({rows})"
            )
            values, lists, fractions, low, high, usual = connection.execute(query).fetchall()[0]
            found = found.also(ListCounts(values, lists, fractions, frozenset({low, high} if lists else ()), usual))
    return found


def _refuse_strays(source: Source, place: Place, looked: ListCounts) -> None:
    """An error about the rows that have no list, or one of another length."""
    if looked.lists == 0:
        problem, stray = "Text looks like lists of numbers, but not like plain ones", "{2}"
    elif looked.lists < looked.values:
        problem, stray = "Text that is no list of numbers stands among lists of them", "NOT {0}"
    elif len(looked.lengths) > 1:
        problem, stray = "Lists of numbers have different lengths", f"{{1}} <> {looked.usual}"
    else:
        return
    for position, piece, name in _holders(source, place.columns):
        with reading(piece.files[0]), connect() as connection:
            numbered = f"SELECT {quote(name)}, row_number() OVER () - 1 AS position FROM {piece.relation(connection)}"
            wrong = (
                f"{quote(name)} IS NOT NULL AND {stray.format(_is_list(name), _length(name), _looks_like_one(name))}"
            )
            query = f"SELECT position, {quote(name)}, count(*) OVER () FROM ({numbered}) WHERE {wrong}"
            rows = connection.execute(f"{query} ORDER BY 1 LIMIT {SHOWN}").fetchall()
        if rows:
            where, places = source.locate(position, [row for row, _, _ in rows])
            raise DataError(
                problem,
                where=where,
                column=name,
                rows=places,
                total=rows[0][2],
                expected=f"{looked.usual or 'the same number of'} numbers on every row, such as [0.1, 0.2]",
                got=repr(rows[0][1])[:80],
                hint=Advice("mend these rows; or, if each text is an id, ", place.if_ids),
            )


def _read_as_vector(source: Source, place: Place, width: int) -> Advice:
    held = f"{source.name}: column {place.columns[0]!r} holds lists of {width} numbers as text"
    return Advice(f"{held} and is read as a vector; if each text is an id, ", place.if_ids)


def _taken_as_ids(source: Source, place: Place) -> Advice:
    held = f"{source.name}: column {place.columns[0]!r} holds lists of whole numbers as text"
    said = Setting("roles", {place.columns[0]: "number"})
    return Advice(f"{held}, and each text is taken as an id; if the numbers are quantities, say ", said)


def _bare(column: str) -> str:
    """The text without what NumPy writes around arrays and their elements."""
    scalars = f"regexp_replace(trim(CAST({quote(column)} AS VARCHAR)), {literal(_SCALAR)}, '\\1', 'g')"
    return f"regexp_replace({scalars}, {literal(f'^{_WRAPPED}$')}, '\\1')"


def _is_list(column: str) -> str:
    return f"regexp_full_match({_bare(column)}, {literal(_LIST)})"


def _looks_like_one(column: str) -> str:
    alike = f"regexp_full_match({_bare(column)}, {literal(_ALIKE)}) AND {_has_fraction(column)}"
    return f"({_is_list(column)} OR {alike})"


def _has_fraction(column: str) -> str:
    return f"regexp_matches({_bare(column)}, '(?i)[0-9][.]|[.][0-9]|[0-9]e|nan|inf')"


def _numbers(column: str) -> str:
    return f"regexp_extract_all({_bare(column)}, {literal('(?i)' + _NUMBER)})"


def _length(column: str) -> str:
    return f"len({_numbers(column)})"


def _values(column: str, kind: Kind) -> str:
    return f"TRY_CAST({_numbers(column)} AS {_SQL[kind]})"
