"""A few short stretches of rows, spread evenly over long logs: what is found in them is a guess at the whole.

Of Parquet files some rows of some row groups are read, of tables some slices, of other formats the first rows of some
files. Rows that are derived from others (a next observation, say) are derived inside a stretch; where it cuts an
episode, a row is lost, which is nothing to a guess.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from mixope.logs import view
from mixope.logs.logs import Logs
from mixope.logs.plan import ReadingPlan
from mixope.logs.sources import Piece, reading
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.checksums import VERIFIED
from mixope.logs.sources.parquet import ParquetFiles

GOLDEN = 0.618033988749895
"""Its multiples are spread evenly in their digits: what repeats itself in the logs is not met at the same place."""
UNREAD = ("reward", "propensity")
"""Numbers that tell no kinds apart."""
DEEP = 3
"""So many stretches are skipped in a row group, at most: they have to be unpacked."""
FEW = 4
"""A part that cannot be cut is read whole where it has at most so many times the rows of a stretch."""


@dataclass(frozen=True)
class Stretch:
    """Some neighbouring rows of one source."""

    plan: ReadingPlan
    logs: Logs
    rows: int

    def query(self, connection: Any) -> str:
        """A SELECT of the canonical rows."""
        return f"{view.rows([self.plan], self.logs.schema, connection, 0)} LIMIT {self.rows}"


def stretches(logs: Logs, count: int, rows: int) -> list[Stretch]:
    """About ``count`` stretches of at most ``rows`` rows each; none where that would cost as much as a scan."""
    total = logs.total_rows()
    found = []
    for plan in logs.plans:
        mine = sum(plan.source.counts())
        places = _places(mine, max(1, round(count * mine / total)))
        for piece in _parts(plan, places, rows):
            size = piece.known_rows()
            if plan.derived and (size is None or size > FEW * rows):
                return []
            small = replace(plan, source=replace(plan.source, pieces=(piece,)))
            found.append(Stretch(small, logs, rows))
    return found


def _places(rows: int, count: int) -> list[int]:
    """One row of each of so many equal parts, at a place that is another in every one."""
    return [int((k + k * GOLDEN % 1.0) * rows / count) for k in range(count)]


def _parts(plan: ReadingPlan, places: Sequence[int], rows: int) -> Iterator[Piece]:
    """The parts in which some rows lie, each once."""
    pieces = plan.source.pieces
    ends = list(accumulate(sum(piece.counts()) for piece in pieces))
    for number, piece in enumerate(pieces):
        before = ends[number] - sum(piece.counts())
        mine = [place - before for place in places if before <= place < ends[number]]
        if mine:
            if isinstance(piece, ParquetFiles):
                yield from _of_parquet(plan, piece, mine, rows)
            else:
                yield from _others(piece, mine, rows)


def _of_parquet(plan: ReadingPlan, piece: ParquetFiles, places: Sequence[int], rows: int) -> Iterator[Piece]:
    """Rows about these, each in a row group of its own; not the first ones, which may be of the same kind in all."""
    read = {column.raw for name, column in plan.columns.items() if name not in UNREAD}
    columns = [name for name, field in piece.fields.items() if name in read and field.kind != "other"]
    where = [(file, group) for file, sizes in enumerate(piece.groups) for group in range(len(sizes))]
    ends = list(accumulate(size for sizes in piece.groups for size in sizes))
    for position, place in {bisect_right(ends, place): place for place in places}.items():
        file, group = where[position]
        inside = place - (ends[position] - piece.groups[file][group])
        chosen = group if piece.chosen is None else piece.chosen[group]
        table = _some_rows(piece.files[file], chosen, columns, rows, min(inside // rows, DEEP))
        yield ArrowTable(table, (piece.files[file],), piece.constants)


def _some_rows(name: str, group: int, columns: Sequence[str], rows: int, skipped: int) -> Any:
    """So many rows of a row group, after so many times as many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(name), pq.ParquetFile(name, **VERIFIED) as file:
        batch = next(islice(file.iter_batches(rows, [group], list(columns)), skipped, None), None)
        return file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch])


def _others(piece: Piece, places: Sequence[int], rows: int) -> Iterator[Piece]:
    """The smallest parts that the format allows, as many as there are places, evenly."""
    parts = [part for _, part in piece.split(rows)]
    total = max(sum(piece.counts()), 1)
    for position in dict.fromkeys(place * len(parts) // total for place in places):
        yield parts[position]
