"""Scores: what every row adds to a value, and how that is added up by cluster.

Where transitions are counted, the influence of a row on a value is linear in its basis (1, r, 1/p, r/p, first row of
its episode) with coefficients that depend on its transition only: a *score table*, groups × basis. It is applied in one
way

    Σ_basis  coefficient(group) · sum(basis)

to whatever holds sums of the basis by group: single rows, cells of (episode, transition), or a join in a scan. An
estimator asks for the scores of its table (:class:`ScoreTable`); the tables of one round become one lookup, so that it
is one scan however many targets and estimators ask (:mod:`mixope.requests.joined`). A cluster is an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, digest_arrays
from mixope.base.errors import UsageError
from mixope.logs import EPISODE_KEYS, Schema
from mixope.requests.grouping import Aggregate, Grouped, Grouping, GroupSums, Lookup
from mixope.requests.request import Batch
from mixope.requests.transitions import BASIS

FACTORS: Mapping[str, tuple[str, ...]] = {
    "rows": (),
    "reward": ("reward",),
    "inverse": ("inverse",),
    "inverse_reward": ("inverse", "reward"),
    "starts": ("start",),
}
"""The quantities of a row of which each of the basis is the product."""


@dataclass(frozen=True)
class ClusterScores:
    """Scores added up by cluster; ``by_piece`` are the same by pieces of episodes, where blocks of steps are wanted.

    ``lengths`` says how many pieces every cluster has, and ``start_error`` what pieces do not tell: the standard error
    of the start law, had starts the spread of the logged states (None: not known). ``late`` is Σ step · score.
    """

    by_cluster: FloatArray
    by_piece: FloatArray | None = None
    lengths: IntArray | None = None
    start_error: float | None = None
    late: FloatArray | None = None

    @classmethod
    def of_pieces(cls, scores: FloatArray, lengths: IntArray | None, start_error: float | None = None) -> ClusterScores:
        """From scores by piece; without lengths a piece is a cluster."""
        if lengths is None:
            return cls(scores)
        whole = np.asarray(np.add.reduceat(scores, np.cumsum(lengths) - lengths))
        return cls(whole, scores, lengths, start_error)


@dataclass(frozen=True)
class ScoreTable:
    """The request for the scores of some coefficients (groups as they were logged × basis), by cluster.

    ``numbers`` tells the group of a row by its raw values. Whoever holds the counts puts the tables of a round into one
    lookup and answers each with :class:`ClusterScores`; with ``by_step``, of single steps too.
    """

    coefficients: FloatArray
    numbers: Lookup | None = field(default=None, repr=False, compare=False)
    by_step: bool = False

    whole_episodes = False
    sees_unfollowed = True

    def fingerprint(self) -> str:
        """Of its coefficients, column by column: those that are never written take no memory."""
        used = [k for k in range(len(BASIS)) if self.coefficients[:, k].any()]
        return f"{used} {self.by_step} {digest_arrays([self.coefficients[:, k] for k in used])}"

    def over(self, group: IntArray, sums: Mapping[str, Any]) -> FloatArray:
        """Of cells: the group of each, and the sums of the basis in it."""
        found = np.zeros(len(group))
        for position, basis in enumerate(BASIS):
            column = self.coefficients[:, position]
            if basis in sums and column.any():
                found += column[group] * sums[basis]
        return found

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """Those of the sums by episode."""
        return self._alone.columns(schema)

    def of(self, batch: Batch) -> GroupSums:
        """Sums by episode, a column for each of the basis."""
        return self._alone.of(batch)

    @property
    def _alone(self) -> Grouped:
        if self.numbers is None:
            raise UsageError("this table was made from counts alone and cannot be summed over rows")
        import pyarrow as pa

        table, aggregates = self.numbers.table.select(list(self.numbers.keys)), []
        for position, basis in enumerate(BASIS):
            column = self.coefficients[:, position]
            if column.any():
                table = table.append_column(f"c_{basis}", pa.array(np.ascontiguousarray(column)))
                aggregates.append(Aggregate(f"score_{basis}", "sum", (f"c_{basis}", *FACTORS[basis])))
        grouping = Grouping(EPISODE_KEYS, tuple(aggregates), self.fingerprint())
        return Grouped(grouping, Lookup(table, self.numbers.keys))
