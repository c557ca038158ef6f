"""The in-memory engine: the canonical rows as one table, in slices. Simple on purpose: the oracle for other engines."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from mixope.engines.pieces import ORDER, episode_pieces, even_pieces, in_order, piece_rows
from mixope.engines.protocol import ByPasses, by_kind, run_parts
from mixope.logs import Logs
from mixope.requests.request import FragmentResult, Request, wanted_columns

if TYPE_CHECKING:
    import pyarrow as pa


class MemoryEngine(ByPasses):
    """Holds the needed columns of all rows in memory, and works on pieces of ``fragment_rows`` in ``threads``."""

    name = "memory"
    in_process = True

    def __init__(self, fragment_rows: int | None = None, threads: int | None = None) -> None:
        self.fragment_rows, self.threads = fragment_rows, threads

    def in_passes(
        self, logs: Logs, requests: Sequence[Request]
    ) -> Iterator[tuple[list[Request], Generator[FragmentResult]]]:
        """Slice after slice; whole episodes in step order for the requests that want them."""
        for mine, tables in self.cut(logs, requests):
            yield mine, run_parts(tables, logs.schema, mine, self.threads)

    def cut(self, logs: Logs, requests: Sequence[Request]) -> Iterator[tuple[list[Request], Iterator[pa.Table]]]:
        """The requests that can be answered together, each time with the pieces to answer them on."""
        total = logs.total_rows()
        size = self.fragment_rows or piece_rows(total)
        anyhow, whole = by_kind(requests)
        if anyhow:
            yield anyhow, even_pieces([_rows(logs, anyhow, ordered=in_order(total))], size)
        if whole:
            yield whole, episode_pieces([_rows(logs, whole, ordered=True)], size)


def _rows(logs: Logs, requests: Sequence[Request], *, ordered: bool) -> pa.Table:
    wanted = wanted_columns(requests, logs.schema)
    if not ordered:
        return logs.table(wanted)
    rows = logs.table(tuple(dict.fromkeys((*wanted, *ORDER))))
    return rows.sort_by([(key, "ascending") for key in ORDER])
