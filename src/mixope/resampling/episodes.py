"""The counts of every episode, from one scan: a log with episodes left out or repeated is then a weighted sum.

One GROUP BY over (episode, transition) gives n_{eg}; the log in which episode e occurs w_e times has the same
transitions with counts Σ_e w_e n_{eg}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.counting import TRANSITION, Counted, number_transitions
from mixope.errors import MixopeError
from mixope.logs import EPISODE_KEYS
from mixope.problem import restrict
from mixope.statistics.grouping import Grouping
from mixope.statistics.transitions import BASIS, Transitions, transition_grouping


@dataclass(frozen=True)
class EpisodeCounts:
    """Cells (episode, transition group) and the sums of each; ``logger`` is that of every episode."""

    transitions: Transitions
    logger: IntArray
    episode: IntArray
    group: IntArray
    sums: Mapping[str, FloatArray]

    @property
    def n_episodes(self) -> int:
        """Episodes in the logs."""
        return len(self.logger)

    def reweighted(self, weight: FloatArray) -> Transitions:
        """The counts of a log in which episode e occurs ``weight[e]`` times; what does not occur is dropped."""
        rows, times = self.transitions, weight[self.episode]
        totals: dict[str, Any] = {
            name: sum_by(self.group, times * cell, rows.n_groups) for name, cell in self.sums.items()
        }
        return restrict(replace(rows, **totals), np.flatnonzero(totals["rows"] > 0))

    def scores(self, table: FloatArray) -> FloatArray:
        """A score table (groups × basis) summed by episode."""
        cells = np.zeros(len(self.group))
        for position, basis in enumerate(BASIS):
            coefficient = table[:, position]
            if coefficient.any():
                cells += coefficient[self.group] * self.sums[basis]
        return sum_by(self.episode, cells, self.n_episodes)


def count_episodes(counted: Counted) -> EpisodeCounts:
    """One scan: the aggregates of the transition counts, by episode."""
    plain = transition_grouping(counted.logs.schema)
    aggregates = tuple(a for a in plain.aggregates if a.operation in ("count", "sum"))
    grouping = Grouping((*EPISODE_KEYS, TRANSITION), aggregates, plain.belongs_to)
    groups = counted.engine.group_sums(counted.logs, grouping, number_transitions(counted))
    assert groups.table is not None
    changed = np.zeros(groups.n_groups, dtype=bool)
    for key in EPISODE_KEYS:
        values = groups.table.column(key).to_numpy()
        changed[1:] |= values[1:] != values[:-1]
    group = groups.column(TRANSITION).astype(np.int64)
    first = np.append(0, np.flatnonzero(changed)).astype(np.int64)
    sums = {a.name: groups.column(a.name) for a in aggregates}
    if float(sums["rows"].sum()) != counted.transitions.n_rows:
        raise MixopeError("the scan by episode did not see the rows that were counted")
    return EpisodeCounts(
        counted.transitions, counted.transitions.logger[group[first]], np.cumsum(changed).astype(np.int64), group, sums
    )
