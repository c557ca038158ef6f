"""Every logger's policy from the transition counts of the others.

A solution has a table of scores by group, or by cell where loggers are merged (:mod:`mixope.backtesting.others`). The
tables of a few loggers are summed by episode in one scan. Those of many would not fit in memory together: then the
counts of every episode are read once and the tables are summed over them, or, of logs too long for that, a few loggers
at a time by a scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixope.answers.resampling import episode_counts_request
from mixope.backtesting.held_out import HeldOut, refuse_whole_episodes
from mixope.backtesting.others import Others, others_of
from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import DataError
from mixope.base.estimand import Estimand
from mixope.estimators import Estimator, Remembering, check_takes, ignores_loggers
from mixope.estimators.asking import Rounds, answered
from mixope.policies import Policy, TabularPolicy
from mixope.requests.episode_counts import episode_counts
from mixope.requests.problem import Problem
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import NumberedSteps, OrderedRows
from mixope.requests.transitions import BASIS, Transitions, empty_scores
from mixope.session.session import Counted
from mixope.session.survey import Survey

MOST_SCORES = 10_000_000
"""Scores of groups that are held at once: about half a gigabyte with all that a scan makes of them."""
MOST_CELLS = 20_000_000
"""Rows of logs whose counts by episode are held where there are many loggers."""


def few_at_a_time(
    counted: Counted,
    rounds: Rounds,
    survey: Survey,
    estimator: Estimator,
    labels: Sequence[str],
    known: Mapping[str, Policy],
    seed: int,
    asked: Estimand | None = None,
) -> Iterator[list[HeldOut]]:
    """All loggers from the counts of the others; what is ``asked`` of each, or what its rows show as they are."""
    check_takes(estimator, "counts")
    rows = counted.transitions
    others = others_of(rows, merged=ignores_loggers(estimator))
    size, episodes = loggers_at_a_time(rows.n_groups), None
    if size < len(labels) and rows.n_rows <= MOST_CELLS:
        (groups,) = rounds.ask([episode_counts_request(counted)])
        counts = episode_counts(groups, rows)
        episodes = replace(counts, group=others.place[counts.group])
        size = loggers_at_a_time(max(len(BASIS) * others.n_places, len(episodes.logger)))
    ordered = None
    if isinstance(estimator, Remembering):
        (steps,) = rounds.ask([NumberedSteps(counted.numbers)])
        ordered = steps.in_key_order()
    for few in (labels[low : low + size] for low in range(0, len(labels), size)):
        solved = [_solved(counted, others, survey, estimator, label, known, seed, asked, ordered) for label in few]
        held, tables = [one for one, _ in solved], [table for _, table in solved]
        if episodes is None:
            scores = _scanned(counted, rounds, others, tables)
        else:
            scores = [None if table is None else episodes.scores(ScoreTable(table)) for table in tables]
        yield _with_scores(held, scores, survey.episodes.logger)


def loggers_at_a_time(n_scores: int) -> int:
    """How many tables of so many scores are held and summed together."""
    return max(MOST_SCORES // max(n_scores, 1), 1)


def _solved(
    counted: Counted,
    others: Others,
    survey: Survey,
    estimator: Estimator,
    label: str,
    known: Mapping[str, Policy],
    seed: int,
    asked: Estimand | None,
    ordered: OrderedRows | None = None,
) -> tuple[HeldOut, FloatArray | None]:
    """Solve for one logger's policy from the counts of the others; its scores are by place."""
    rows = counted.transitions
    j = rows.loggers.index(label)
    policy = known.get(label) or counted_policy(rows, j)
    steps = survey.episodes.of(j).horizon
    estimand = asked or (Estimand("horizon", horizon=steps) if steps else Estimand())
    found = HeldOut(j, label, "known" if label in known else "counted", policy, estimand, strange=strange_rows(rows, j))
    rest, places = others.without(j)
    policies = {name: other for name, other in known.items() if name != label}
    asked_for = {"numbers": counted.numbers, "by_episode": counted.by_episode}
    problem = Problem.of_logged(rest, policy, estimand, policies, seed=seed, **asked_for)
    tables: list[ScoreTable] = []

    def note(requests: Sequence[Any]) -> tuple[Any, ...]:
        """Scores are summed later, those of several loggers together; who remembers sees the others' rows in order."""
        if ordered is not None:
            mine = _rows_of_others(ordered, rows, j, places)
            return tuple(mine if isinstance(request, NumberedSteps) else None for request in requests)
        if not all(isinstance(request, ScoreTable) for request in requests):
            refuse_whole_episodes(estimator.name, requests)
        tables.extend(requests)
        return (None,) * len(requests)

    try:
        solution = answered(lambda: estimator.solve(problem), note)
    except DataError as error:
        return replace(found, refusal=error.problem), None
    finally:
        problem.forget()
    table = None
    if tables:
        table = empty_scores(others.n_places)
        table[places] = tables[0].coefficients
    uncovered = max(solution.uncovered_mass, found.strange)
    if ordered is not None and solution.scores is not None:
        found = replace(found, scores=solution.scores.by_cluster)
    return replace(found, solution=replace(solution, uncovered_mass=uncovered)), table


def _rows_of_others(ordered: OrderedRows, rows: Transitions, logger: int, places: IntArray) -> OrderedRows:
    """The episodes that others wrote, with their transitions numbered as they are counted without that logger."""
    writer = rows.logger[ordered.group[ordered.episodes.first]]
    theirs, number = ordered.take(np.flatnonzero(writer != logger)), np.full(rows.n_groups, -1)
    number[places] = np.arange(len(places))
    return replace(theirs, group=number[theirs.group])


def counted_policy(transitions: Transitions, logger: int) -> TabularPolicy:
    """π̂_j: how often the logger took each action in each of its states; elsewhere, how often it took it at all."""
    mine = np.flatnonzero(transitions.logger == logger)
    n_states, n_actions = transitions.n_states, len(transitions.actions)
    code = transitions.state[mine] * n_actions + transitions.action[mine]
    counts = sum_by(code, transitions.rows[mine], n_states * n_actions).reshape(n_states, n_actions)
    visited = np.flatnonzero(counts.sum(axis=1))
    return TabularPolicy(
        counts[visited] / counts[visited].sum(axis=1, keepdims=True),
        transitions.observations[visited],
        transitions.actions,
        default=counts.sum(axis=0) / counts.sum(),
    )


def strange_rows(transitions: Transitions, logger: int) -> float:
    """The share of a logger's rows whose action nobody else took in that state."""
    mine = np.flatnonzero(transitions.logger == logger)
    pair, rows = transitions.pair[mine], transitions.rows[mine]
    alone = sum_by(pair, rows, transitions.n_pairs) == transitions.pair_rows
    return float(rows[alone[pair]].sum() / rows.sum())


def _scanned(
    counted: Counted, rounds: Rounds, others: Others, tables: Sequence[FloatArray | None]
) -> list[ClusterScores | None]:
    """Tables by place, summed by episode in one scan."""
    requests = [ScoreTable(table[others.place], counted.numbers) for table in tables if table is not None]
    summed = iter(rounds.ask(requests))
    return [None if table is None else next(summed) for table in tables]


def _with_scores(held: Sequence[HeldOut], scores: Sequence[ClusterScores | None], logger: IntArray) -> list[HeldOut]:
    """Every logger with the scores of the others' episodes; its own say nothing of a prediction from the others."""
    return [
        one if found is None else replace(one, scores=found.by_cluster[logger != one.number])
        for one, found in zip(held, scores, strict=True)
    ]
