"""What ``print(logs)`` shows, without reading a row: how many, in which files, which column is what, what was assumed.

logs of 2 files, 16,601 rows: states by factors, discrete actions, propensities recorded
  reward  ← total
  …
assumed: no step column; the rows of each episode are in the order of column 'date'
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from mixope.logs.schema import CANONICAL

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

WIDTH = 110
MOST_NOTES = 4
MOST_NAMES = 6
ABSENT = ("absent: unknown", "absent: false")
_STATES = {"id": "states are ids", "factors": "states are factors", "vector": "states are vectors of numbers"}
SHOWN = (
    *("assumed", "batches", "columns", "describe", "fingerprint", "from_arrays", "head", "in_memory", "inputs", "name"),
    *("notes", "past", "recorded", "save", "schema", "split", "table", "to_arrow", "to_frame", "total_rows"),
    *("where", "with_past", "with_unit"),
)
"""What completion offers of ``Logs``; the rest is for the library itself."""


def in_words(logs: Logs) -> str:
    """A few lines about some logs."""
    return "\n".join((_headline(logs), *_columns(logs), *_assumed(logs)))


def _headline(logs: Logs) -> str:
    schema = logs.recorded.schema
    known = [piece.known_rows() for source in logs.sources for piece in source.pieces]
    sure = [rows for rows in known if rows is not None]
    files = sum(len(piece.files) for source in logs.recorded.sources for piece in source.pieces)
    size = f"{sum(sure):,} rows" if len(sure) == len(known) else "rows not counted yet"
    where = f"{logs.name}, {files:,} files" if files > 1 else logs.name
    states = _STATES.get(schema.observation_kind, "states mix categories and numbers")
    return f"Logs of {where}: {size}; {states}, actions are {schema.action_kind}"


def _columns(logs: Logs) -> Iterator[str]:
    """Which column of the file is what; what the file lacks and is not derived is left out."""
    mapping = logs.schema.mapping
    ordered = (*(notion for notion in CANONICAL if notion in mapping), *(n for n in mapping if n not in CANONICAL))
    shown = {notion: mapping[notion] for notion in ordered if mapping[notion] not in ABSENT}
    width = max(map(len, shown))
    for notion, word in shown.items():
        names = (word,) if isinstance(word, str) else word
        more = f", … ({len(names):,} columns)" if len(names) > MOST_NAMES else ""
        yield f"  {notion.ljust(width)}  ← {', '.join(names[:MOST_NAMES])}{more}"


def _assumed(logs: Logs) -> Iterator[str]:
    for note in logs.assumed[:MOST_NOTES]:
        yield from wrap(f"assumed: {note}", WIDTH, subsequent_indent="  ", break_long_words=False)
    if len(logs.assumed) > MOST_NOTES:
        yield f"assumed: {len(logs.assumed) - MOST_NOTES} more, see logs.notes"
