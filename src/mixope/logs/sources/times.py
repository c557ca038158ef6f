"""Times as the order of the rows of an episode, where no column counts its steps.

A time is a timestamp, a date, text as ISO 8601 has it (``2026-11-16T09:30:00.5+01:00``), or a number, such as seconds
since 1970. Timestamps and text are read as whole nanoseconds since 1970; text without an offset is taken as UTC. They
say what came after what, and nothing else: a long pause is one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from mixope.base.errors import Advice, Setting
from mixope.logs.database import connect
from mixope.logs.names import TIMES, Assignment
from mixope.logs.sources import Piece, Source, literal, quote, reading
from mixope.logs.sources.converted import Conversion, Converted
from mixope.logs.types import Field

Form = Literal["moments", "text", "numbers"]

_DAY, _CLOCK = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_OFFSET = r"[+-]\d{2}(?::?\d{2})?"
ISO = rf"\s*{_DAY}(?:[T ]{_CLOCK}\s?(?:Z|UTC|{_OFFSET})?)?\s*"
READ = Field("int", "time in nanoseconds", exact=True)


def order_by_time(source: Source, found: dict[str, Assignment]) -> tuple[Source, str | None, list[str]]:
    """The source, the column whose times order the rows of an episode (None: none does), and notes on others.

    A column that was taken for the step and holds times is no step: it is taken out of ``found``.
    """
    if "step" in found:
        raw = found["step"].columns[None]
        if _form(source, raw) not in ("moments", "text"):
            return source, None, []
        del found["step"]
        return _read(source, raw), raw, []
    taken = {column for assignment in found.values() for column in assignment.columns.values()}
    named = [name for name in source.names if name.lower() in TIMES and name not in taken]
    forms = {name: _form(source, name) for name in named} if _wanted(source, found) else {}
    usable = [name for name, form in forms.items() if form is not None]
    if len(usable) != 1:
        return source, None, _ignored(named, usable)
    return _read(source, usable[0]), usable[0], []


def _wanted(source: Source, found: Mapping[str, Assignment]) -> bool:
    """Whether times may order rows: there are episodes, and nobody said that the order of rows is right."""
    return "episode_id" in found and "step" not in source.columns


def _ignored(named: list[str], usable: list[str]) -> list[str]:
    if len(usable) > 1:
        both = " and ".join(map(repr, usable))
        said = f"columns {both} were ignored; if one of them is the order of the rows of an episode, say so: "
        return [Advice(said, Setting("columns", {"step": usable[0]}))]
    ignored = "was ignored: if rows of an episode are not in its order, sort them by it"
    return [f"column {named[0]!r} {ignored}"] if named else []


def _form(source: Source, raw: str) -> Form | None:
    """How a column holds times, the same way in all pieces; None where it does not."""
    forms = {_form_in(piece, raw) for piece in source.pieces}
    return forms.pop() if len(forms) == 1 else None


def _form_in(piece: Piece, raw: str) -> Form | None:
    field = piece.fields.get(raw)
    if field is None:
        return None
    if field.kind == "time":
        return "moments"
    if field.kind in ("int", "float") and not field.wide:
        return "numbers"
    return "text" if field.kind == "string" and _begins_with_times(piece, raw) else None


def _begins_with_times(piece: Piece, raw: str) -> bool:
    """Whether the first text is a time; if others are none, that is an error later on."""
    with reading(piece.files[0]), connect() as connection:
        some = f"SELECT {quote(raw)} AS x FROM {piece.relation(connection)} WHERE {quote(raw)} IS NOT NULL LIMIT 1"
        found = connection.execute(f"SELECT regexp_full_match(CAST(x AS VARCHAR), {literal(ISO)}) FROM ({some})")
        return bool((found.fetchone() or (False,))[0])


def _read(source: Source, raw: str) -> Source:
    """The source with times as nanoseconds."""
    return replace(source, pieces=tuple(_converted(piece, raw) for piece in source.pieces))


def _converted(piece: Piece, raw: str) -> Piece:
    kind = piece.fields[raw].kind
    if kind == "time":
        return Converted(piece, {raw: Conversion(READ, f"epoch_ns({quote(raw)})")})
    return Converted(piece, {raw: Conversion(READ, _of_text(raw), total=False)}) if kind == "string" else piece


def _of_text(raw: str) -> str:
    """ISO text as nanoseconds. The offset is taken off by hand: not every DuckDB looks at it."""
    text = f"CAST({quote(raw)} AS VARCHAR)"
    plain = f"replace(regexp_extract({text}, {literal(f'{_DAY}(?:[T ]{_CLOCK})?')}), 'T', ' ')"
    offset = f"replace(regexp_extract({text}, {literal(f':.*?({_OFFSET})' + chr(92) + 's*$')}, 1), ':', '')"
    hours, minutes = (f"coalesce(TRY_CAST(substr({offset}, {start}, 2) AS BIGINT), 0)" for start in (2, 4))
    sign = f"CASE WHEN starts_with({offset}, '-') THEN -1 ELSE 1 END"
    ahead = f"({sign}) * ({hours} * 60 + {minutes}) * 60000000000"
    known = f"regexp_full_match({text}, {literal(ISO)})"
    return f"CASE WHEN {known} THEN epoch_ns(TRY_CAST({plain} AS TIMESTAMP_NS)) - {ahead} END"
