"""Logs with states and actions that can be counted: the passes, in order.

    1  transition counts (one scan)
    2  solve every target and estimator from them (trajectory estimators: one pass over whole episodes)
    3  scores by episode (one scan for all), which also checks that the rows of every episode fit together
    4  intervals, diagnostics, verdicts

Any number of targets and estimators share the scans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from mixope.arrays import FloatArray, digest_arrays
from mixope.assembly import Question, assemble, judge
from mixope.counting import Counted, count, order_rows
from mixope.diagnostics import Diagnostic
from mixope.diagnostics.agreement import loggers_agree
from mixope.diagnostics.approximation import approximation
from mixope.diagnostics.coverage import small_gaps
from mixope.diagnostics.steadiness import logs_are_steady, value_is_steady
from mixope.engines import in_order
from mixope.errors import MixopeError
from mixope.estimand import Estimand
from mixope.estimate import Estimate, LoggerShare
from mixope.estimators import AnyEstimator, Solution, TrajectoryEstimator, make
from mixope.estimators.weight_bins import WeightBin, weight_bins
from mixope.intervals import IntervalChoice, Scores, Uncertainty
from mixope.intervals.approximation import widen
from mixope.logs.validation import explain_episodes, explain_rows
from mixope.problem import Problem
from mixope.resampling import EpisodeCounts, Refit, count_episodes, refitted_uncertainty, tabulate
from mixope.statistics.episodes import EpisodeSums, episode_sums, score_lookup
from mixope.statistics.grouping import Lookup
from mixope.statistics.ordered_rows import OrderedRows
from mixope.statistics.probes import make_probes
from mixope.statistics.trajectories import COLUMNS, RatioColumns, Trajectories, merge_all, trajectories
from mixope.statistics.transitions import Transitions, transition_keys
from mixope.survey import LoggerSummary, Survey, dropped_alert
from mixope.targets import check_labels, resolve_policy

__all__ = ["Counted", "count", "run", "solve_one", "sum_scores"]


@dataclass(frozen=True)
class Answered:
    """One estimator on one target, solved, and the interval it is to have."""

    question: Question
    problem: Problem
    estimator: AnyEstimator
    solution: Solution
    interval: IntervalChoice


def run(
    counted: Counted,
    targets: Mapping[str, Any],
    estimators: Sequence[str | AnyEstimator],
    *,
    estimand: Estimand,
    level: float = 0.95,
    loggers: Mapping[str, Any] | None = None,
    interval: IntervalChoice = IntervalChoice(),
    beside: Sequence[str | AnyEstimator] = (),
    seed: int = 0,
    skipped: list[tuple[str, str]] | None = None,
) -> list[Estimate]:
    """Every estimator on every target; two scans in all, one more for each trajectory estimator.

    An estimator that does not apply raises, or is noted in ``skipped`` (its name and the reason) where one is given.
    Those ``beside`` come after the others of a target, and are never refitted.
    """
    logs = counted.logs
    known = {str(label): resolve_policy(policy, logs) for label, policy in (loggers or {}).items()}
    check_labels(known, counted.transitions.loggers)
    made = [(make(name), interval) for name in estimators]
    made += [(make(name), interval.without_refits) for name in beside]
    questions = [
        Question(name, resolve_policy(policy, logs), estimand, level, seed) for name, policy in targets.items()
    ]
    asked = [(q, Problem(counted.transitions, q.target, estimand, known, seed=seed)) for q in questions]
    solved = []
    for (question, problem), (estimator, choice) in product(asked, made):
        try:
            solved.append(Answered(question, problem, estimator, solve_one(counted, problem, estimator), choice))
        except MixopeError as refusal:
            if skipped is None:
                raise
            skipped.append((estimator.name, str(refusal).splitlines()[0]))
    sums = sum_scores(counted, [answer.solution for answer in solved], seed)
    survey = _survey(counted, sums)
    return _assembled(counted, survey, solved, sums)


def _assembled(counted: Counted, survey: Survey, solved: list[Answered], sums: EpisodeSums) -> list[Estimate]:
    of_logs = _checks_of_logs(counted.transitions, sums)
    shared = Shared(counted, survey)
    estimates = []
    for number, answer in enumerate(solved):
        scores = sums.scores[:, number]
        solution = answer.solution
        off = solution.measures.get("approximation", 0.0)
        sure = widen(shared.uncertainty(answer, scores), solution.value, off, survey.n_episodes)
        predicted = approximation(solution.measures, sure.standard_error)
        corrects = solution.corrects_coverage
        gaps = () if corrects else small_gaps(answer.problem, solution.uncovered_mass, sure.interval)
        estimates.append(
            assemble(
                survey,
                answer.question,
                answer.estimator.name,
                replace(solution, weight_bins=_bins(counted.transitions, solution)),
                scores,
                _shares(counted.transitions, solution),
                uncertainty=sure,
                further=(
                    *of_logs,
                    *value_is_steady(scores, sums.totals, sums.steps_of(number), sums.mean_step),
                    *gaps,
                    *(() if predicted is None else (predicted,)),
                ),
            )
        )
    return estimates


def _checks_of_logs(rows: Transitions, sums: EpisodeSums) -> tuple[Diagnostic, ...]:
    """Whatever is asked of these logs: do loggers, and do episodes, agree on the world?"""
    agreement = loggers_agree(rows)
    steady = logs_are_steady(sums.probes, sums.totals.logger, sums.mean_step) if sums.probes is not None else ()
    return steady if agreement is None else (agreement, *steady)


@dataclass(frozen=True)
class Shared:
    """What the intervals of a run share, each a scan if asked for: rows in order for blocks, counts for refits."""

    counted: Counted
    survey: Survey

    @cached_property
    def rows(self) -> OrderedRows:
        """Every step in its order."""
        return order_rows(self.counted)

    @cached_property
    def counts(self) -> EpisodeCounts:
        """The transitions of every episode."""
        return count_episodes(self.counted)

    def uncertainty(self, answer: Answered, by_episode: FloatArray) -> Uncertainty:
        """The interval that was chosen, or why there is none."""
        choice, solution, survey = answer.interval, answer.solution, self.survey
        if choice.refits:
            return self._refitted(answer)
        scores = Scores(by_episode)
        table = solution.scores
        if table is not None and choice.wants_blocks(survey.n_episodes, survey.n_rows, answer.question.estimand):
            scores = Scores(by_episode, self.rows.scores(table), self.rows.episodes.length)
        return judge(survey, answer.question, solution, scores, choice)

    def _refitted(self, answer: Answered) -> Uncertainty:
        by_trajectory = isinstance(answer.estimator, TrajectoryEstimator)
        refit = Refit(
            tabulate(answer.problem),
            answer.estimator,
            self.counts,
            self.rows if by_trajectory else None,
            answer.question.seed,
        )
        return refitted_uncertainty(refit, answer.interval, answer.question.level)


def solve_one(counted: Counted, problem: Problem, estimator: AnyEstimator) -> Solution:
    """One estimator on one target, with a pass over whole episodes where it needs one."""
    if isinstance(estimator, TrajectoryEstimator):
        joined, ratio = estimator.columns(problem)
        return estimator.solve_trajectories(problem, _whole_episodes(counted, joined, ratio))
    return estimator.solve(problem)


def _whole_episodes(counted: Counted, joined: Mapping[str, FloatArray], ratio: RatioColumns) -> Trajectories:
    import pyarrow as pa

    keys = transition_keys(counted.logs.schema)
    assert counted.groups.table is not None
    table = counted.groups.table.select(list(keys))
    belongs_to = digest_arrays(list(joined.values()))
    for name, values in joined.items():
        table = table.append_column(name, pa.array(values))
    parts = counted.engine.map_fragments(
        counted.logs,
        lambda rows: trajectories(rows, ratio, belongs_to),
        COLUMNS,
        lookup=Lookup(table, keys),
        by_episode=True,
    )
    return merge_all(list(in_order(parts)), int(counted.transitions.n_rows))


def sum_scores(counted: Counted, solutions: Sequence[Solution], seed: int) -> EpisodeSums:
    """The last scan: all score tables by episode. Trajectory scores are by episode already, in the same order."""
    tables = [s.scores for s in solutions if s.scores is not None]
    schema, rows = counted.logs.schema, counted.transitions
    lookup, grouping = score_lookup(rows, counted.groups, schema, tables, seed, make_probes(rows, seed))
    groups = counted.engine.group_sums(counted.logs, grouping, lookup)
    sums = episode_sums(groups, rows, len(tables), counted.logs.step_base, seed)
    if float(sums.rows.sum()) != rows.n_rows:
        raise MixopeError(f"the second scan saw {sums.rows.sum():.0f} rows where the first counted {rows.n_rows:.0f}")
    scores, by_step = (np.full((len(sums.rows), len(solutions)), np.nan) for _ in range(2))
    summed = iter(range(len(tables)))
    for column, solution in enumerate(solutions):
        if solution.scores is not None:
            table = next(summed)
            scores[:, column] = sums.scores[:, table]
            by_step[:, column] = np.nan if sums.by_step is None else sums.by_step[:, table]
        elif solution.episode_scores is not None:
            scores[:, column] = solution.episode_scores
    return replace(sums, scores=scores, by_step=by_step)


def _survey(counted: Counted, sums: EpisodeSums) -> Survey:
    """What the logs are, what was dropped, and what does not fit together; a real contradiction is an error."""
    rows = counted.transitions
    alerts = [*counted.logs.notes, *dropped_alert(counted.logs, int(rows.n_rows))]
    if sums.irregular_steps.any() or sums.broken_chain.any() or counted.logs.step_base < 0:
        error = explain_rows(counted.logs)
        if error:
            raise error
        for finding in explain_episodes(counted.logs):
            if finding.error is not None and finding.status == "error":
                raise finding.error
            alerts.append(finding.sentence)
    summaries = zip(rows.loggers, rows.logger_rows(), rows.logger_means(), strict=True)
    return Survey(
        logs=counted.logs,
        engine=counted.engine.name,
        n_rows=int(rows.n_rows),
        n_episodes=len(sums.rows),
        loggers=tuple(LoggerSummary(label, int(n), float(mean)) for label, n, mean in summaries),
        lowest=float(rows.lowest.min()),
        highest=float(rows.highest.max()),
        alerts=tuple(dict.fromkeys(alerts)),
        episodes=sums.totals,
    )


def _bins(rows: Transitions, solution: Solution) -> tuple[WeightBin, ...]:
    """How the weights are spread; rows of one transition by one logger are taken to weigh the same."""
    return () if solution.weights is None else weight_bins(solution.weights.total / rows.rows, rows.rows)


def _shares(rows: Transitions, solution: Solution) -> tuple[LoggerShare, ...]:
    counts, means = rows.logger_rows(), rows.logger_means()
    shares = []
    for j, label in enumerate(rows.loggers):
        mine = (rows.logger == j).astype(np.float64)
        weight = size = None
        if solution.weights is not None:
            weight = float(solution.weights.total @ mine / solution.weights.total.sum())
            size = solution.weights.effective_sample_size(mine)
        shares.append(LoggerShare(label, int(counts[j]), float(means[j]), weight, size))
    return tuple(shares)
