"""Passes over rows: how a feature estimator sees logs whose states are vectors.

A pass applies a function to batches of rows and adds up what it returns; memory does not grow with the rows. A sample
(for landmarks and behaviour models) is drawn in a pass of its own, every row with the same probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.engines import Engine
from mixope.errors import DataError
from mixope.logs import EPISODE_KEYS, Logs
from mixope.logs.validation import explain_rows
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums
from mixope.statistics.moments import Moments
from mixope.statistics.rows import Rows, as_rows, row_columns
from mixope.statistics.trajectories import COLUMNS, Trajectories, merge_all, trajectories_of

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_ROWS = 40_000
_PIECE = "piece"


@dataclass(frozen=True)
class Scan:
    """Logs on an engine, with the passes that feature estimators need.

    With ``piece_steps``, what is summed by episode is summed by pieces of so many steps of each instead.
    """

    logs: Logs
    engine: Engine
    seed: int = 0
    sample_rows: int = SAMPLE_ROWS
    piece_steps: int | None = None
    passes: list[str] = field(default_factory=list, compare=False)

    @cached_property
    def sample(self) -> Rows:
        """About ``sample_rows`` rows, each with the same chance; all of them if there are fewer."""
        self.passes.append("sample")
        share = min(1.0, self.sample_rows / max(self.logs.total_rows(), 1))
        parts = [part for _, part in self.engine.map_fragments(self.logs, self._picker(share), self.columns)]
        rows = _in_order_of_content(_concatenate(parts))
        if len(rows) == 0:
            raise explain_rows(self.logs) or DataError("no row can be used", where=self.logs.name)
        self._refuse_bad(rows)
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The canonical columns of a row."""
        return row_columns(self.logs.schema)

    def _picker(self, share: float) -> Callable[[pa.Table], Rows]:
        generator = np.random.default_rng([self.seed, 17])

        def pick(table: pa.Table) -> Rows:
            if share < 1.0:
                table = table.take(np.flatnonzero(generator.random(table.num_rows) < share))
            return as_rows(table, self.logs.schema)

        return pick

    def _refuse_bad(self, rows: Rows) -> None:
        """NaN or infinity anywhere, or a propensity that is none: find the rows in the files and say so."""
        floats = [a for a in (rows.observation, rows.next_observation, rows.action, rows.reward) if a.dtype.kind == "f"]
        if not all(np.isfinite(a).all() for a in floats) or (rows.propensity <= 0).any():
            error = explain_rows(self.logs)
            if error:
                raise error

    def total(self, name: str, function: Callable[[Rows], Mapping[str, FloatArray]]) -> Moments:
        """One pass: the sums of what ``function`` returns for every batch."""
        self.passes.append(name)
        total = Moments()

        def part(table: pa.Table) -> Moments:
            return Moments(function(as_rows(table, self.logs.schema)), table.num_rows, name)

        for _, moments in self.engine.map_fragments(self.logs, part, self.columns):
            total = total.merge(moments)
        bad = [key for key, array in total.arrays.items() if not np.isfinite(array).all()]
        if bad:
            raise explain_rows(self.logs) or DataError(
                f"the sums of pass {name!r} are not finite",
                expected="finite rewards, states, actions and probabilities",
                got=f"{', '.join(bad)} not finite",
                hint="check the target's and the behaviour's densities on these logs",
            )
        return total

    def by_episode(self, name: str, function: Callable[[Rows], FloatArray], width: int) -> FloatArray:
        """One pass: the columns ``function`` gives for every row, summed by episode, in the order of their keys."""
        names = [f"x{k}" for k in range(width)]
        total = self._sum(name, function, names)
        return np.stack([total.column(n) for n in names], axis=1)

    @cached_property
    def pieces(self) -> IntArray:
        """How many pieces every episode has."""
        table = self._sum("pieces", lambda rows: np.ones((len(rows), 1)), ["rows"]).table
        assert table is not None
        changed = np.zeros(max(table.num_rows - 1, 0), dtype=bool)
        for key in EPISODE_KEYS:
            values = table.column(key).to_numpy()
            changed |= values[1:] != values[:-1]
        first = np.append(0, np.flatnonzero(changed) + 1)
        return np.diff(np.append(first, table.num_rows)).astype(np.int64)

    def _sum(self, name: str, function: Callable[[Rows], FloatArray], names: Sequence[str]) -> GroupSums:
        import pyarrow as pa

        self.passes.append(name)
        keys = (*EPISODE_KEYS, _PIECE) if self.piece_steps else EPISODE_KEYS
        grouping = Grouping(keys, tuple(Aggregate(n, "sum", (n,)) for n in names), name)

        def part(table: pa.Table) -> GroupSums:
            values = function(as_rows(table, self.logs.schema))
            keyed = table.select(list(EPISODE_KEYS))
            if self.piece_steps:
                step = np.asarray(table.column("step").to_numpy(), dtype=np.int64)
                keyed = keyed.append_column(_PIECE, pa.array(step // self.piece_steps))
            for k, column in enumerate(names):
                keyed = keyed.append_column(column, pa.array(np.ascontiguousarray(values[:, k])))
            return GroupSums.zero(grouping).update(keyed)

        columns = (*self.columns, "step") if self.piece_steps else self.columns
        return _merge_pairwise([p for _, p in self.engine.map_fragments(self.logs, part, columns)], grouping)

    def trajectories(self, name: str, function: Callable[[Rows], FloatArray]) -> Trajectories:
        """One pass over whole episodes: ``function`` gives log π − log b of every row."""
        self.passes.append(name)
        wanted = tuple(dict.fromkeys((*COLUMNS, *self.columns)))

        def part(table: pa.Table) -> Trajectories:
            return trajectories_of(table, function(as_rows(table, self.logs.schema)))

        return merge_all([p for _, p in self.engine.map_fragments(self.logs, part, wanted, by_episode=True)])


def _concatenate(parts: Sequence[Rows]) -> Rows:
    return Rows(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in Rows.__dataclass_fields__})


def _in_order_of_content(rows: Rows) -> Rows:
    """Sorted by what the rows hold, so that the order in which they were logged does not matter to a fit."""
    columns = [*rows.observation.reshape(len(rows), -1).T, *rows.action.reshape(len(rows), -1).T]
    codes = [
        np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)[1]
        for column in columns
    ]
    return rows.take(np.lexsort(codes))


def _merge_pairwise(parts: list[GroupSums], grouping: Grouping) -> GroupSums:
    """Merge as a tree, so that no group is copied more than log(parts) times."""
    while len(parts) > 1:
        parts = [parts[i].merge(parts[i + 1]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0] if parts else GroupSums.zero(grouping)
