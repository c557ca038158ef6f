"""What a worker does, wherever it runs: answer some requests on one item, and bring home a part.

An item is a table, a fragment that the worker opens by itself, or a bucket with its share of every load. A worker keeps
nothing and knows nothing of the others, so the same item gives the same bytes whoever works on it, and however often.

What a user can mend is brought home as a value: workers that fail are tried again, and a damaged file must not be.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from mixope.base import pool
from mixope.base.errors import DataError, MixopeError, UsageError
from mixope.base.threads import one_thread
from mixope.engines.pieces import ORDER
from mixope.engines.sums import group_by
from mixope.logs import Fragment, Schema
from mixope.logs.database import connect
from mixope.logs.gathering import Bucket, Load, Share
from mixope.policies.own_code import said
from mixope.requests.grouping import Grouped
from mixope.requests.request import FragmentResult, Request, partials

if TYPE_CHECKING:
    import pyarrow as pa

    Item: TypeAlias = pa.Table | Fragment | tuple[Bucket, Sequence[Share]]


@dataclass(frozen=True)
class Job:
    """What is done with every item of a pass: small enough to be sent to every worker, once."""

    requests: tuple[Request, ...]
    schema: Schema
    columns: tuple[str, ...]
    ordered: bool = False
    """Whether rows are put in the order of episodes and steps first."""
    memory_limit: str | None = None

    def __call__(self, number: int, item: Item) -> FragmentResult | MixopeError:
        """The part of one item, or what is wrong with it."""
        try:
            with one_thread():
                return self._part(number, item)
        except MixopeError as error:
            return error

    def _part(self, number: int, item: Item) -> FragmentResult:
        sums = [request for request in self.requests if isinstance(request, Grouped)]
        if isinstance(item, Fragment) and not self.ordered and len(sums) == len(self.requests):
            return self._pushed_down(number, item, sums)
        rows = self._rows(item)
        if self.ordered:
            rows = rows.sort_by([(key, "ascending") for key in ORDER])
        return partials(rows, self.schema, self.requests, number)

    def _rows(self, item: Item) -> pa.Table:
        if isinstance(item, Fragment):
            return item.table(self.columns)
        if isinstance(item, tuple):
            bucket, shares = item
            return bucket.table(shares)
        return item

    def _pushed_down(self, number: int, fragment: Fragment, sums: Sequence[Grouped]) -> FragmentResult:
        """Sums by key alone: DuckDB adds up where the rows lie, in one thread, so that their order is one.

        What it says of a file that cannot be read names any of them; reading them one by one finds the right one.
        """
        try:
            return self._added_up(number, fragment, sums)
        except DataError:
            fragment.table(self.columns)
            raise

    def _added_up(self, number: int, fragment: Fragment, sums: Sequence[Grouped]) -> FragmentResult:
        with connect(self.memory_limit, 1) as connection, fragment.watching():
            rows = fragment.relation(connection, self.schema)
            found = tuple(group_by(connection, rows, each.grouping, each.lookup) for each in sums)
            seen = fragment.rows if fragment.keeps_all else None
            if seen is None:
                seen = connection.execute(f"SELECT count(*) FROM {rows}").fetchall()[0][0]
        return FragmentResult(number, int(seen), found)


def split(load: Load) -> list[Share] | MixopeError:
    """A load by bucket, or what is wrong with it."""
    try:
        return load.shares()
    except MixopeError as error:
        return error


def answered(sent: bytes, number: int, item: Item) -> FragmentResult | MixopeError:
    """The part of one item, by the job that was sent."""
    return unpacked(sent)(number, item)


def gathered(sent: bytes, bucket: Bucket, shares: Sequence[Share | MixopeError]) -> FragmentResult | MixopeError:
    """The part of a bucket; what was wrong with a load that should have filled it comes first."""
    good = [share for share in shares if isinstance(share, Share)]
    bad = [share for share in shares if isinstance(share, MixopeError)]
    return bad[0] if bad else unpacked(sent)(bucket.number, (bucket, good))


def share_for(bucket: int, shares: list[Share] | MixopeError) -> Share | MixopeError:
    """What a load has for a bucket."""
    return shares if isinstance(shares, MixopeError) else shares[bucket]


def packed(job: Job) -> bytes:
    """The job as bytes for any worker: what the user wrote in a script or in a file of this folder goes with it."""
    try:
        return pool.packed(job)
    except pool.UNSENDABLE as error:
        raise unsendable(error) from error


def unsendable(error: Exception) -> UsageError:
    """What is said where workers cannot be sent what they shall do."""
    return UsageError(
        f"what is asked of the rows cannot be sent to workers: {said(error)}; write the policy as a function or"
        " class of a module, or use an engine of this process: 'embedded' or 'memory'"
    )


@lru_cache(maxsize=2)
def unpacked(sent: bytes) -> Job:
    """The job that was sent, unpacked once in every worker."""
    job: Job = pickle.loads(sent)
    return job
