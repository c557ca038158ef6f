"""What an engine does: two verbs over logs, and no idea of any estimator.

``group_sums`` adds up row quantities by key (tabular counts, episode sums). ``map_fragments`` applies a function to
pieces of the canonical rows and hands back what it returns, each with its fragment's number; the driver
(:func:`reduce_fragments`) merges in fragment order and checks that nothing is missing, doubled or lost.
A cluster engine implements these two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from mixope.errors import MixopeError
from mixope.logs import Logs
from mixope.statistics.grouping import Grouping, GroupSums, Lookup

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Engine(Protocol):
    """Runs statistics over logs."""

    name: str

    def group_sums(self, logs: Logs, grouping: Grouping, lookup: Lookup | None = None) -> GroupSums:
        """Add up the quantities of all rows by key, joined with ``lookup`` where one is given; one scan."""
        ...

    def map_fragments(
        self,
        logs: Logs,
        function: Callable[[pa.Table], T],
        columns: Sequence[str],
        *,
        lookup: Lookup | None = None,
        by_episode: bool = False,
    ) -> Iterator[tuple[int, T]]:
        """Apply ``function`` to fragments of the rows, numbered from 0.

        With ``by_episode`` the rows of an episode stay together, in the order of their steps.
        """
        ...


class Mergeable(Protocol):
    """A statistic as the driver sees it."""

    @property
    def n_rows(self) -> int:
        """How many rows it has seen."""
        ...

    def merge(self: T, other: T) -> T:
        """Add two of them."""
        ...


M = TypeVar("M", bound=Mergeable)


def in_order(parts: Iterator[tuple[int, T]]) -> Iterator[T]:
    """What the fragments gave, in the order of their numbers; a hole or a duplicate is an error."""
    for wanted, (number, part) in enumerate(sorted(parts, key=lambda pair: pair[0])):
        if number != wanted:
            raise MixopeError(f"the engine returned fragment {number} where fragment {wanted} was expected")
        yield part


def reduce_fragments(parts: Iterator[tuple[int, M]], zero: M, expected_rows: int | None = None) -> M:
    """Merge partial statistics in fragment order; a hole, a duplicate or a lost row is an error."""
    total = zero
    for part in in_order(parts):
        total = total.merge(part)
    if expected_rows is not None and total.n_rows != expected_rows:
        raise MixopeError(f"the engine counted {total.n_rows} rows where the logs have {expected_rows}")
    return total
