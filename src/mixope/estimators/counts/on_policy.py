"""What those who wrote the logs earn by themselves, under the estimand of the target: each logger, and all together.

    no episode cut   average: Σ r / rows                score  (r − value) / rows
                     others: mean of k Σ γᵗ r           score  (k Σ γᵗ r − value) / episodes
    episodes cut     the chain of the rows themselves   score  ω (r + γV(s′) − V(s)) / rows + k (V(s₀) − E V) / starts

k is the estimand's scale; of an average the score has r − value for r, and the mass at ends for k. Where no episode is
cut nothing is assumed. An episode is *cut* if something that counts is missing from it: its first step, or what would
have come after its last one (it did not end, is shorter than the horizon, and what comes later is not discounted to
nothing). A mean over the rows of cut episodes is no long-run average: it has more of the first steps in it than a long
run has, and a policy whose first steps earn less would seem to beat itself.

The chain has no choices in it, so every importance ratio is 1. On counts it is solved exactly, as the state ratio of a
world with one action (:mod:`mixope.estimators.state_ratio`); on features by least squares
(:mod:`mixope.estimators.features.on_policy`). The value of the pool is that of all rows together, not the mean of the
loggers' values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.errors import MixopeError, UsageError
from mixope.base.estimand import Estimand
from mixope.behaviours import CountedMixture
from mixope.estimators.asking import Asking
from mixope.estimators.counts.solution import CountedSolution
from mixope.estimators.state_ratio import solve_on_counts
from mixope.policies import uniform
from mixope.requests.clusters import Clusters
from mixope.requests.episodes import EpisodeSurvey, EpisodeTotals
from mixope.requests.grouping import Lookup
from mixope.requests.problem import Problem
from mixope.requests.scores import ClusterScores, ScoreTable
from mixope.requests.trajectories import NumberedSteps, OrderedRows
from mixope.requests.transitions import Transitions, empty_scores, restrict

NOTHING_LEFT = 1e-6
"""Where γⁿ is below this, what comes after n steps does not count."""
FROM_STEPS, FROM_EPISODES, FROM_CHAIN = "mean of the steps", "mean of the episodes", "solved from the rows"
_UNSOLVED = "some episodes are truncated or lack their first steps, and the missing part was not estimated"


@dataclass(frozen=True)
class RewardPieces:
    """Rewards and rows by step or by pieces of a few, ``lengths`` of them per episode: what blocks are made from."""

    reward: FloatArray
    rows: FloatArray
    lengths: IntArray


@dataclass(frozen=True)
class OnPolicyValue:
    """A value, how it was had, and scores by episode (of all episodes; 0 on those of others).

    ``mine`` are the episodes behind it. Where blocks are wanted, ``pieces`` has the rewards by piece, and ``solved``
    the scores by piece of a chain.
    """

    mine: BoolArray
    value: float
    scores: FloatArray
    method: str
    pieces: RewardPieces | None = None
    solved: FloatArray | None = None

    @property
    def by_piece(self) -> FloatArray | None:
        """Scores by piece: of a chain, its own; of a mean, (Σ r − value · rows) / all rows. 0 on those of others."""
        if self.pieces is None:
            return None
        mine = np.repeat(self.mine, self.pieces.lengths)
        if self.solved is not None:
            return np.where(mine, self.solved, 0.0)
        earned = np.where(mine, self.pieces.reward - self.value * self.pieces.rows, 0.0)
        return np.asarray(earned / float(self.pieces.rows[mine].sum()))


OnPolicyValues = tuple[OnPolicyValue | str, ...]
"""Every logger's own value or why it has none, and the pool's last."""


def by_cluster(values: OnPolicyValues, clusters: Clusters) -> OnPolicyValues:
    """With the scores of units, where episodes belong to some; these are not cut into pieces."""
    if not clusters.named:
        return values
    return tuple(
        own
        if isinstance(own, str)
        else replace(own, mine=clusters.holding(own.mine), scores=clusters.scores(own.scores), pieces=None, solved=None)
        for own in values
    )


@dataclass(frozen=True)
class ChainValue:
    """A value solved from the rows of cut episodes, and its scores: of one logger's rows, or of all of them."""

    value: float
    scores: ClusterScores


def on_policy_values(
    estimand: Estimand,
    totals: EpisodeTotals,
    chains: Sequence[ChainValue | MixopeError | None],
    returns: FloatArray | None,
    pieces: RewardPieces | None = None,
) -> OnPolicyValues:
    """Of every logger and of the pool; a chain is None where none was asked for."""
    everybody, whole = len(chains) - 1, settled(estimand, totals)
    found: list[OnPolicyValue | str] = []
    for who, chain in enumerate(chains):
        mine = np.ones(len(whole), dtype=np.bool_) if who == everybody else totals.logger == who
        if bool(whole[mine].all()) or (estimand.restarts and chain is None):
            found.append(_mean(estimand, totals, mine, returns, pieces))
        elif isinstance(chain, ChainValue):
            scores = np.where(mine, chain.scores.by_cluster, 0.0)
            found.append(OnPolicyValue(mine, chain.value, scores, FROM_CHAIN, pieces, chain.scores.by_piece))
        else:
            found.append(_UNSOLVED if chain is None else chain.reason)
    return tuple(found)


def settled(estimand: Estimand, totals: EpisodeTotals) -> BoolArray:
    """The episodes that hold all that counts."""
    over = totals.ended == 1
    if estimand.horizon is not None:
        over = over | (totals.rows >= estimand.horizon)
    elif estimand.discount < 1.0:
        over = over | (estimand.discount**totals.rows <= NOTHING_LEFT)
    return np.asarray(over & (totals.starts == 1), dtype=np.bool_)


def _mean(
    estimand: Estimand,
    totals: EpisodeTotals,
    mine: BoolArray,
    returns: FloatArray | None,
    pieces: RewardPieces | None,
) -> OnPolicyValue:
    """Over the steps of some episodes, or over the episodes themselves."""
    earned = totals.reward if returns is None else estimand.scale * returns
    size = totals.rows if estimand.restarts else np.ones(len(mine))
    total = float(size[mine].sum())
    value = float(earned[mine].sum()) / total
    method = FROM_STEPS if estimand.restarts else FROM_EPISODES
    return OnPolicyValue(mine, value, np.where(mine, earned - value * size, 0.0) / total, method, pieces)


def on_policy_on_counts(
    transitions: Transitions, numbers: Lookup, estimand: Estimand, *, by_step: bool = False, seed: int = 0
) -> Asking[OnPolicyValues]:
    """The chains of every logger's rows and of all rows, where episodes may have been cut, and their scores.

    There is one score table for all loggers, whose rows are not each other's, and one for the pool.
    """
    values, tables = _chains(transitions, estimand)
    requests = [ScoreTable(table, numbers, by_step=by_step) for table in tables if table is not None]
    solved = [table is not None for table in tables]
    del tables
    survey, *answers = yield (EpisodeSurvey(seed, estimand), *requests, *([NumberedSteps(numbers)] if by_step else []))
    pieces = _steps(answers.pop()) if by_step else None
    found = iter(answers)
    loggers: Any
    pool: Any
    loggers, pool = (next(found) if there else None for there in solved)
    last = len(values) - 1
    chains = [
        ChainValue(v, pool if k == last else loggers) if isinstance(v, float) else v for k, v in enumerate(values)
    ]
    return on_policy_values(estimand, survey.totals, chains, survey.returns, pieces)


def _steps(rows: OrderedRows) -> RewardPieces:
    """Single steps."""
    episodes = rows.in_key_order().episodes
    return RewardPieces(episodes.reward, np.ones(len(episodes.reward)), episodes.length)


Values = list[float | MixopeError | None]


def _chains(transitions: Transitions, estimand: Estimand) -> tuple[Values, tuple[FloatArray | None, FloatArray | None]]:
    """The values of all loggers and of the pool, the table of all loggers, and that of the pool."""
    pool = _chain(transitions, estimand)
    of_pool = pool.scores if isinstance(pool, CountedSolution) else None
    if len(transitions.loggers) == 1:
        return [_value(pool)] * 2, (of_pool, of_pool)
    table, values = empty_scores(transitions.n_groups), []
    in_turn = np.argsort(transitions.logger, kind="stable")
    ends = np.cumsum(np.bincount(transitions.logger, minlength=len(transitions.loggers)))
    for mine in np.split(in_turn, ends[:-1]):
        chain = _chain(restrict(transitions, mine), estimand)
        if isinstance(chain, CountedSolution) and chain.scores is not None:
            _write(table, mine, chain.scores)
        values.append(_value(chain))
    known = any(isinstance(value, float) for value in values)
    return [*values, _value(pool)], (table if known else None, of_pool)


def _value(chain: CountedSolution | MixopeError | None) -> float | MixopeError | None:
    return chain.value if isinstance(chain, CountedSolution) else chain


def _write(table: FloatArray, groups: IntArray, scores: FloatArray) -> None:
    """The scores of some groups, column by column: those that are all zero stay untouched."""
    for column, values in zip(table.T, scores.T, strict=True):
        if values.any():
            column[groups] = values


def _chain(mine: Transitions, estimand: Estimand) -> CountedSolution | MixopeError | None:
    """Rows as a world with one action, which everybody takes: all ratios are 1."""
    if estimand.horizon is None and float(mine.rows[mine.terminated].sum()) == float(mine.starts.sum()):
        return None  # every episode ended
    alone = replace(mine, action=np.zeros_like(mine.action), actions=np.zeros(1, dtype=np.int64))
    problem = Problem.of_logged(alone, uniform([0]), estimand)
    try:
        found = solve_on_counts(problem, CountedMixture()).on_logged(problem.followed)
    except MixopeError as refusal:
        return refusal
    finally:
        problem.forget()
    if found.scores is None or not (found.solution.solved.ok and np.isfinite(found.value)):
        return UsageError(found.solution.solved.outcome.value)
    return found
