"""How rows are cut into pieces: at places that depend on their number alone, whatever files and batches they came in.

Logs of up to ``MOST_ORDERED`` rows are also read in the order of their episodes and steps. Every engine then adds up
the same numbers in the same order, so that results are the same to the last bit whatever the order of the rows, the
files, the threads or the engine. Longer logs are read as they lie: there, sums may differ in their last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from mixope.logs import EPISODE_KEYS
from mixope.requests.by_episode import first_of_runs
from mixope.requests.trajectories import MOST_ORDERED

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_ROWS, _MOST_ROWS, _PIECES = 1 << 13, 1 << 16, 8
ORDER = (*EPISODE_KEYS, "step")
"""The columns by which rows are put in order."""


def piece_rows(total: int) -> int:
    """Rows of a piece: about eight pieces, so that several cores have something to do, within bounds."""
    return min(max(total // _PIECES + 1, _LEAST_ROWS), _MOST_ROWS)


def in_order(total: int) -> bool:
    """Whether logs of so many rows are read in order."""
    return total <= MOST_ORDERED


def even_pieces(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """The rows of all tables, ``size`` at a time; one empty piece if there are none."""
    return _pieces(tables, lambda table, held, _: range((size - held) % size or size, table.num_rows + 1, size), size)


def episode_pieces(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Rows that are in order, cut between episodes, as soon as ``size`` rows are together."""

    def borders(table: pa.Table, held: int, last: pa.Table | None) -> Iterable[int]:
        found: list[int] = first_of_runs(table, EPISODE_KEYS).tolist()
        return found[1:] if last is not None and table.num_rows and _same_episode(last, table) else found

    return _pieces(tables, borders, size)


Borders = Callable[["pa.Table", int, "pa.Table | None"], Iterable[int]]
"""Where a table may be cut, by its rows, the number of rows that wait before it, and the last of these."""


def _pieces(tables: Iterable[pa.Table], borders: Borders, size: int) -> Iterator[pa.Table]:
    """Cut at the first border at which ``size`` rows are together."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    held, any_piece = 0, False
    for table in tables:
        start = 0
        for border in borders(table, held, waiting[-1] if held else None):
            if held + border - start >= size:
                yield pa.concat_tables([*waiting, table.slice(start, border - start)])
                waiting, held, start, any_piece = [], 0, border, True
        if start < table.num_rows or not (waiting or any_piece):
            waiting.append(table.slice(start))
            held += table.num_rows - start
    if held or not any_piece:
        yield pa.concat_tables(waiting)


def _same_episode(left: pa.Table, right: pa.Table) -> bool:
    return all(left.column(key)[-1].as_py() == right.column(key)[0].as_py() for key in EPISODE_KEYS)
