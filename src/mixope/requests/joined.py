"""All that is asked by episode where transitions are counted, as one lookup: one scan, however many ask.

Score tables (:class:`~mixope.requests.scores.ScoreTable`) and the survey of the episodes
(:class:`~mixope.requests.episodes.EpisodeSurvey`) are columns by transition. They are joined to the rows by the raw
values of the transition, and summed by episode together; the same sums say whether the logs are still those that were
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mixope.logs import Logs
from mixope.requests.early_steps import EarlySteps, early_steps
from mixope.requests.episodes import (
    EpisodeSums,
    EpisodeSurvey,
    cluster_scores,
    episode_sums,
    return_of,
    score_lookup,
    sums_of_counts,
    sums_of_episodes,
)
from mixope.requests.grouping import Grouped, GroupSums
from mixope.requests.learning import luck_followed
from mixope.requests.odd_rewards import odd_in_order
from mixope.requests.probes import make_probes
from mixope.requests.repeats import make_marks, repeats_of_counts
from mixope.requests.replay import MOST_ROWS
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import ENDED, Transitions, transition_cells


@dataclass(frozen=True)
class Joined:
    """One request for some score tables and a survey, and what is read off its answer."""

    logs: Logs
    transitions: Transitions
    tables: Sequence[ScoreTable]
    survey: EpisodeSurvey
    early: EarlySteps | None
    request: Grouped

    @classmethod
    def of(
        cls,
        logs: Logs,
        groups: GroupSums,
        transitions: Transitions,
        tables: Sequence[ScoreTable],
        survey: EpisodeSurvey,
    ) -> Joined:
        """Tables by number."""
        rows, estimand = transitions, survey.estimand
        besides = () if estimand.restarts else (return_of(estimand, logs.step_base),)
        probes, marks = make_probes(rows, survey.seed), make_marks(rows, survey.seed)
        early = early_steps(rows, logs.step_base) if rows.n_rows > MOST_ROWS else None
        marks = marks if early is None else marks.beside(early.probes)
        columns = [table.coefficients for table in tables]
        lookup, grouping = score_lookup(rows, groups, logs.schema, columns, survey.seed, probes, besides, marks)
        return cls(logs, rows, tables, survey, early, Grouped(grouping, lookup))

    def scores(self, groups: GroupSums, ordered: OrderedRows | None) -> list[ClusterScores]:
        """Of every table; by step where that was asked for."""
        sums_of_counts(self.transitions, self.survey.seed).refuse_other(sums_of_episodes(groups), self.logs.name)
        found = cluster_scores(groups, len(self.tables), self.logs.step_base)
        return [
            replace(each, by_piece=ordered.scores(table), lengths=ordered.episodes.length)
            if table.by_step and ordered is not None
            else each
            for table, each in zip(self.tables, found, strict=True)
        ]

    def surveyed(self, groups: GroupSums, ordered: OrderedRows | None) -> EpisodeSums:
        """What the logs are; of logs that are not too long, also what is told by which row follows which."""
        rows, survey = self.transitions, self.survey
        sums_of_counts(rows, survey.seed).refuse_other(sums_of_episodes(groups), self.logs.name)
        sums = episode_sums(groups, rows, self.logs.step_base, survey.seed)
        learning = None if ordered is None else luck_followed(rows, ordered)
        odd = None if ordered is None else odd_in_order(ordered, transition_cells(rows), rows.next_state == ENDED)
        repeats = repeats_of_counts(groups, rows, ordered)
        sums = replace(sums, ordered=ordered, repeats=repeats, learning=learning, odd=odd)
        if self.early is None:
            return sums
        return replace(sums, early=self.early.read(groups, int(sums.rows.max(initial=0.0))))
