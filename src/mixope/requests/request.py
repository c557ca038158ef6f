"""Requests: what an estimator may ask of the logs, and the one function that answers them on some rows.

A request is a statistic: small, frozen, picklable, pure. It names the canonical columns that it reads and turns a batch
of rows into a *partial* that merges with those of other batches, in any pieces and on any machine:

    of(batch) -> partial,     partial.merge(partial) -> partial          a commutative monoid

:func:`partials` is all that ever runs on rows. An engine decides where it runs; :func:`merge_in_order` puts the parts
together as a fixed tree over the fragments, so that the bits of a sum do not depend on who finished first.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray
from mixope.base.errors import MixopeError
from mixope.logs import UNFOLLOWED, Schema
from mixope.requests.rows import FOLDS, Rows, as_rows, drawn, fold_of, row_columns, unfollowed_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
SLICE = 4096
"""Rows of a slice: enough for a matrix product to run at full speed, few enough to stay out of main memory."""


class Mergeable(Protocol):
    """A partial result."""

    def merge(self: T, other: T) -> T:
        """Both together."""
        ...


@runtime_checkable
class Request(Protocol):
    """One statistic of the rows."""

    @property
    def whole_episodes(self) -> bool:
        """Whether a batch must hold whole episodes, in the order of their steps."""
        ...

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """The canonical columns that it reads."""
        ...

    def of(self, batch: Batch) -> Mergeable:
        """The statistic of some rows."""
        ...


def sees_unfollowed(request: Request) -> bool:
    """Whether a request is shown the rows after which nobody knows what came, too.

    What is made of rows and what follows them is not; what is made of episodes is, or of rows for themselves.
    """
    return bool(getattr(request, "sees_unfollowed", False))


class RowRequest:
    """What requests have in common that read whole rows, in any pieces."""

    whole_episodes = False

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Everything that a row holds, and its step."""
        return (*row_columns(schema), "step")


class SlicedRequest(RowRequest, ABC):
    """A request whose work per row is large: it sees a fragment in slices of a few thousand rows of one fold each."""

    @abstractmethod
    def add(self, total: Any, batch: Batch) -> Any:
        """The total (None at first) with one slice added; it may be changed in place."""

    def of(self, batch: Batch) -> Any:
        """The statistic of some rows."""
        total = None
        for piece in slices(batch.table, batch.schema):
            total = self.add(total, piece)
        return self.add(None, batch) if total is None else total


@dataclass(frozen=True)
class Batch:
    """Some canonical rows, as a table and as arrays; what several requests compute from the arrays is computed once.

    A slice belongs to one fold of the episodes; ``fold`` says which.
    """

    table: pa.Table
    schema: Schema
    fold: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def rows(self) -> Rows:
        """As arrays."""
        return as_rows(self.table, self.schema)

    @cached_property
    def unfollowed(self) -> BoolArray:
        """After which rows nobody knows what came."""
        return unfollowed_of(self.table)

    @property
    def follows(self) -> BoolArray:
        """After which rows a state came, and it is known."""
        return ~(self.rows.terminated | self.unfollowed)

    @property
    def followed(self) -> Batch:
        """The other rows; this batch itself where there are no such ones."""
        return self if self._others is None else self._others

    @cached_property
    def _others(self) -> Batch | None:
        """A batch that held itself would not be freed when it is done with."""
        if not self.unfollowed.any():
            return None
        return Batch(self.table.take(np.flatnonzero(~self.unfollowed)), self.schema, self.fold)

    def laid(self, columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Columns of the rows that are followed as columns of all rows, with 0 for the others."""
        if self.followed is self:
            return dict(columns)
        found = {name: np.zeros(len(self)) for name in columns}
        for name, values in columns.items():
            found[name][~self.unfollowed] = values
        return found

    @cached_property
    def _by_loggers(self) -> dict[tuple[str, ...], Batch]:
        return {}

    def of_loggers(self, labels: tuple[str, ...]) -> Batch:
        """The rows of some loggers, the same batch whoever asks for them."""
        if labels not in self._by_loggers:
            mine = np.isin(np.asarray(self.table.column("policy_id").to_numpy()).astype(str), labels)
            chosen = self.table if mine.all() else self.table.take(np.flatnonzero(mine))
            self._by_loggers[labels] = Batch(chosen, self.schema, self.fold)
        return self._by_loggers[labels]


@dataclass(frozen=True)
class OfLoggers:
    """Another request on the rows of some loggers only: the same sums as if nobody else had logged anything."""

    request: Request
    labels: tuple[str, ...]

    @property
    def whole_episodes(self) -> bool:
        """As the other request."""
        return self.request.whole_episodes

    @property
    def sees_unfollowed(self) -> bool:
        """As the other request."""
        return sees_unfollowed(self.request)

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Who logged a row, besides what the other request reads."""
        return (*self.request.columns(schema), "policy_id")

    def of(self, batch: Batch) -> Any:
        """The other request's statistic of these loggers' rows."""
        return self.request.of(batch.of_loggers(self.labels))

    def add(self, total: Any, batch: Batch) -> Any:
        """The total with these loggers' rows of one slice added."""
        mine = batch.of_loggers(self.labels)
        if len(mine) == 0:
            return total
        if hasattr(self.request, "add"):
            return self.request.add(total, mine)
        part = self.request.of(mine)
        return part if total is None else total.merge(part)


@dataclass(frozen=True)
class FragmentResult:
    """What a worker brings home: which fragment it was, how many rows it had, and a partial for every request."""

    fragment: int
    rows: int
    partials: tuple[Any, ...]


def joins_episodes(request: Request) -> bool:
    """Whether the parts of a request that wants its episodes in order may cut one: neighbours put it together again.

    Then no episode has to fit in memory at once with all columns that are read of it.
    """
    return bool(getattr(request, "joins_episodes", False))


def partials(table: pa.Table, schema: Schema, requests: Sequence[Request], fragment: int = 0) -> FragmentResult:
    """The worker: all requests on the rows of one fragment."""
    batch = Batch(table, schema)

    def of(whole: Batch, request: Request) -> Batch:
        return whole if sees_unfollowed(request) else whole.followed

    sliced = [r for r in requests if hasattr(r, "add") and not r.whole_episodes]  # a slice may cut an episode
    totals: dict[int, Any] = dict.fromkeys(map(id, sliced))
    for piece in slices(table, schema) if sliced else ():
        for request in sliced:
            if len(mine := of(piece, request)):
                totals[id(request)] = request.add(totals[id(request)], mine)
    found = (totals[id(r)] if totals.get(id(r)) is not None else r.of(of(batch, r)) for r in requests)
    return FragmentResult(fragment, len(batch), tuple(found))


def slices(table: pa.Table, schema: Schema) -> Iterator[Batch]:
    """The rows by fold of their episodes, a few thousand at a time."""
    fold = fold_of(drawn(table), FOLDS)
    order = np.argsort(fold, kind="stable")
    cuts = np.searchsorted(fold[order], np.arange(FOLDS + 1))
    by_fold = table.take(order)
    for k in range(FOLDS):
        for low in range(int(cuts[k]), int(cuts[k + 1]), SLICE):
            yield Batch(by_fold.slice(low, min(SLICE, int(cuts[k + 1]) - low)), schema, k)


def wanted_columns(requests: Iterable[Request], schema: Schema) -> tuple[str, ...]:
    """The canonical columns behind some requests, and the one that tells which rows each is shown."""
    names = [name for request in requests for name in _columns_of(request, schema)]
    return tuple(dict.fromkeys(names))


def _columns_of(request: Request, schema: Schema) -> tuple[str, ...]:
    return (*request.columns(schema), *(() if sees_unfollowed(request) else (UNFOLLOWED,)))


def in_order(parts: Iterable[FragmentResult]) -> Iterator[FragmentResult]:
    """Parts in the order of their fragments, whatever order they came in; a hole or a double is an error."""
    waiting: dict[int, FragmentResult] = {}
    wanted = 0
    for part in parts:
        if part.fragment < wanted or part.fragment in waiting:
            raise MixopeError(f"the engine returned fragment {part.fragment} twice")
        waiting[part.fragment] = part
        while wanted in waiting:
            yield waiting.pop(wanted)
            wanted += 1
    if waiting:
        raise MixopeError(f"the engine lost fragment {wanted}: it returned fragment {min(waiting)} but not that one")


def merge_in_order(parts: Iterable[FragmentResult], expected_rows: int | None = None) -> FragmentResult | None:
    """All parts merged, as a fixed tree over the fragments; a hole, a double or a lost row is an error.

    Neighbours are merged in pairs, then pairs of pairs, as they come in: at most log₂(fragments) partials wait.
    """
    stack: list[tuple[int, _Open]] = []
    rows = 0
    for part in in_order(parts):
        rows += part.rows
        level, merged = 0, _Open.of(part)
        del part
        while stack and stack[-1][0] == level:
            level, merged = level + 1, stack.pop()[1].taking_in(merged)
        stack.append((level, merged))
        del merged
    if expected_rows is not None and rows != expected_rows:
        raise MixopeError(f"the engine saw {rows:,} rows in this scan, and the logs have {expected_rows:,}")
    while len(stack) > 1:
        last = stack.pop()[1]
        stack.append((0, stack.pop()[1].taking_in(last)))
        del last
    return stack[0][1].part if stack else None


@dataclass
class _Open:
    """A part whose partials are let go of one by one as they are merged: there is no room for all of them thrice."""

    fragment: int
    rows: int
    partials: list[Any]

    @classmethod
    def of(cls, part: FragmentResult) -> _Open:
        """Nobody else needs it."""
        return cls(part.fragment, part.rows, list(part.partials))

    def taking_in(self, other: _Open) -> _Open:
        """Both together; nothing is left in either."""
        left, right = self.partials[::-1], other.partials[::-1]
        self.partials, other.partials, both = [], [], []
        while left:
            both.append(left.pop().merge(right.pop()))
        return _Open(other.fragment, self.rows + other.rows, both)

    @property
    def part(self) -> FragmentResult:
        """Closed again."""
        return FragmentResult(self.fragment, self.rows, tuple(self.partials))


Name = Callable[[Any], str]
"""What stands in a key for something that is neither a plain value, nor an array, a record or a container."""


_PLAIN = (str, int, float, bool, bytes, np.generic)


def name_of(thing: Any) -> str:
    """A fingerprint where there is one; anything else is itself and nothing else, in this process alone."""
    return str(thing.fingerprint()) if callable(getattr(thing, "fingerprint", None)) else str(id(thing))


def content_key(thing: object, name: Name = name_of) -> str:
    """A hash of what something holds, so that two requests with the same content are one.

    Arrays count by their values, policies by their fingerprint, records by their fields; anything else that is neither
    a plain value nor a container is itself and nothing else. ``name`` says so otherwise.
    """
    digest = hashlib.sha256()
    _add(digest, thing, name)
    return digest.hexdigest()


def _add(digest: Any, thing: Any, name: Name) -> None:
    digest.update(f"<{type(thing).__module__}.{type(thing).__qualname__}>".encode())
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        digest.update(f"{thing.dtype}{thing.shape}".encode())
        digest.update(np.ascontiguousarray(thing).tobytes())
    elif callable(getattr(thing, "fingerprint", None)):
        digest.update(name(thing).encode())
    elif is_dataclass(thing) and not isinstance(thing, type):
        for each in fields(thing):
            if each.compare:
                digest.update(each.name.encode())
                _add(digest, getattr(thing, each.name), name)
    elif isinstance(thing, (dict, list, tuple)):
        digest.update(str(len(thing)).encode())
        for value in thing.items() if isinstance(thing, dict) else thing:
            _add(digest, value, name)
    elif thing is None or isinstance(thing, _PLAIN):
        digest.update(repr(thing).encode())
    elif isinstance(thing, np.ndarray) and all(v is None or isinstance(v, _PLAIN) for v in thing.ravel().tolist()):
        digest.update(f"{thing.shape}{thing.tolist()!r}".encode())
    elif hasattr(thing, "to_numpy"):
        _add_column(digest, thing)
    else:
        digest.update(name(thing).encode())


def _add_column(digest: Any, column: pa.ChunkedArray) -> None:
    """An Arrow column, by its type and its values."""
    values = column.to_numpy()
    digest.update(f"{getattr(column, 'type', values.dtype)}{len(values)}".encode())
    if values.dtype.kind == "O":
        digest.update(repr(values.tolist()).encode())
    else:
        digest.update(np.ascontiguousarray(values).tobytes())
