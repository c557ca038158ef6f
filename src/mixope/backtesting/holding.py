"""One logger left out: its policy, the rows of the others, and what they say of it.

Like is compared with like: the mean of T steps after a reset is not the long-run average, so where a logger's episodes
were all cut after the same number of steps its prediction is for that horizon. Where all of them ended for good, the
mean over rows is the average of a process that starts again, and that is predicted. The held-out policy is the known
one, or the frequencies of its own actions; in that case the two sides share the noise of its actions, and a comparison
errs towards agreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import FloatArray, IntArray, sum_by
from mixope.errors import DataError, MixopeError
from mixope.estimand import Estimand
from mixope.estimators import Estimator, Solution
from mixope.policies import Policy, TabularPolicy
from mixope.problem import Problem, restrict
from mixope.statistics.episodes import EpisodeTotals, episode_sums, score_lookup
from mixope.statistics.transitions import BASIS, Transitions
from mixope.tabular import Counted


@dataclass(frozen=True)
class HeldOut:
    """One question of the backtest, solved or refused; ``others`` are the groups of rows that answered."""

    number: int
    policy: Policy
    known: bool
    estimand: Estimand
    others: IntArray
    solution: Solution | None
    refusal: str = ""


def hold_out(
    rows: Transitions, episodes: EpisodeTotals, estimator: Estimator, label: str, known: Mapping[str, Policy], seed: int
) -> HeldOut:
    """Solve for one logger's policy from the counts of the others."""
    j = rows.loggers.index(label)
    policy = known.get(label) or counted_policy(rows, j)
    steps = episodes.of(j).horizon
    estimand = Estimand("horizon", horizon=steps) if steps else Estimand()
    rest = {name: found for name, found in known.items() if name != label}
    problem = Problem(without(rows, j), policy, estimand, rest, seed=seed)
    solution, refusal = None, ""
    try:
        solution = estimator.solve(problem)
    except DataError as error:
        refusal = error.problem
    if solution is not None:
        solution = replace(solution, uncovered_mass=max(solution.uncovered_mass, strange_rows(rows, j)))
    return HeldOut(j, policy, label in known, estimand, np.flatnonzero(rows.logger != j), solution, refusal)


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


def without(transitions: Transitions, logger: int) -> Transitions:
    """The rows of the other loggers; states keep their numbers, the loggers close ranks."""
    rest = restrict(transitions, np.flatnonzero(transitions.logger != logger))
    names = tuple(label for j, label in enumerate(transitions.loggers) if j != logger)
    return replace(rest, loggers=names, logger=rest.logger - (rest.logger > logger))


def strange_rows(transitions: Transitions, logger: int) -> float:
    """The share of a logger's rows whose action nobody else took in that state."""
    mine = transitions.logger == logger
    others = np.zeros(transitions.n_pairs, dtype=bool)
    others[transitions.pair[~mine]] = True
    rows = transitions.rows[mine]
    return float(rows[~others[transitions.pair[mine]]].sum() / rows.sum())


def sum_held_out(counted: Counted, held: list[HeldOut], seed: int) -> list[FloatArray | None]:
    """The scores of every solution by episode of the others, in one scan; they are embedded in the full table."""
    rows, tables = counted.transitions, []
    for one in held:
        if one.solution is not None and one.solution.scores is not None:
            table = np.zeros((rows.n_groups, len(BASIS)))
            table[one.others] = one.solution.scores
            tables.append(table)
    lookup, grouping = score_lookup(rows, counted.groups, counted.logs.schema, tables, seed)
    groups = counted.engine.group_sums(counted.logs, grouping, lookup)
    sums = episode_sums(groups, rows, len(tables), counted.logs.step_base, seed)
    if float(sums.rows.sum()) != rows.n_rows:
        raise MixopeError(
            f"the scores were summed over {sums.rows.sum():.0f} rows where {rows.n_rows:.0f} were counted"
        )
    columns = iter(sums.scores.T)
    return [
        next(columns)[sums.totals.logger != one.number]
        if one.solution is not None and one.solution.scores is not None
        else None
        for one in held
    ]
