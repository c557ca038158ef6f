"""The counts of every episode: how often it had each transition, and what these earned.

One GROUP BY over (episode, transition) gives n_{eg}. A log in which episode e occurs w_e times has the counts
Σ_e w_e n_{eg}; the episodes of a class of users, each as far as it belongs to it, have Σ_e τ_e n_{eg}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import MixopeError
from mixope.logs import EPISODE_KEYS, UNIT, Schema
from mixope.requests.by_episode import first_of_runs
from mixope.requests.clusters import number_units
from mixope.requests.grouping import Grouped, Grouping, GroupSums, Lookup
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import TRANSITION
from mixope.requests.transitions import Transitions, restrict, transition_grouping


@dataclass(frozen=True)
class EpisodeCounts:
    """Cells (episode, transition group) and the sums of each; ``logger`` is that of every episode."""

    transitions: Transitions
    logger: IntArray
    episode: IntArray
    group: IntArray
    sums: Mapping[str, FloatArray]
    unit: IntArray | None = None
    """Who an episode belongs to; None where every episode is its own."""
    times: FloatArray | None = None
    """How often an episode occurs, where that is not once."""

    @property
    def n_episodes(self) -> int:
        """Episodes in the logs."""
        return len(self.logger)

    def totals(self, weight: FloatArray) -> dict[str, Any]:
        """The sums of every transition group, each episode as often as ``weight`` says."""
        times = weight[self.episode]
        return {name: sum_by(self.group, times * cell, self.transitions.n_groups) for name, cell in self.sums.items()}

    def reweighted(self, weight: FloatArray) -> Transitions:
        """The counts of a log in which episode e occurs ``weight[e]`` times; what does not occur is dropped."""
        totals = self.totals(weight)
        return restrict(replace(self.transitions, **totals), np.flatnonzero(totals["rows"] > 0))

    def drawn(self, weight: FloatArray) -> EpisodeCounts:
        """The same log, episode by episode."""
        kept = self.totals(weight)["rows"] > 0
        cells = np.flatnonzero(kept[self.group])
        return replace(
            self,
            transitions=self.reweighted(weight),
            episode=self.episode[cells],
            group=(np.cumsum(kept) - 1)[self.group[cells]].astype(np.int64),
            sums={name: values[cells] for name, values in self.sums.items()},
            times=weight,
        )

    def scores(self, table: ScoreTable) -> ClusterScores:
        """A score table summed by episode."""
        return ClusterScores(sum_by(self.episode, table.over(self.group, self.sums), self.n_episodes))


def counts_by_episode(schema: Schema, numbers: Lookup) -> Grouped:
    """The request for the aggregates of the transition counts, by episode."""
    plain = transition_grouping(schema)
    aggregates = tuple(a for a in plain.aggregates if a.operation in ("count", "sum"))
    return Grouped(Grouping((*EPISODE_KEYS, *schema.unit, TRANSITION), aggregates, plain.belongs_to), numbers)


def episode_counts(groups: GroupSums, transitions: Transitions) -> EpisodeCounts:
    """The cells, from what the request brought."""
    first = first_of_runs(groups.keyed_by(EPISODE_KEYS), EPISODE_KEYS)
    group = groups.column(TRANSITION).astype(np.int64)
    episode = np.repeat(np.arange(len(first)), np.diff(np.append(first, groups.n_groups)))
    sums = {a.name: groups.column(a.name) for a in groups.grouping.aggregates}
    if float(sums["rows"].sum()) != transitions.n_rows:
        raise MixopeError("the scan by episode did not see the rows that were counted")
    unit = number_units(groups.values(UNIT)[first]) if UNIT in groups.grouping.keys else None
    return EpisodeCounts(transitions, transitions.logger[group[first]], episode.astype(np.int64), group, sums, unit)
