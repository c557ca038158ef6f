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
(:mod:`mixope.estimators.own_on_features`). The value of the pool is that of all rows together, not the mean of the
loggers' values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.behaviours import CountedMixture
from mixope.errors import MixopeError, UsageError
from mixope.estimand import Estimand
from mixope.estimators.solution import Solution, of_logged
from mixope.estimators.state_ratio import solve_on_counts
from mixope.policies import uniform
from mixope.problem import Problem
from mixope.statistics.episodes import EpisodeTotals
from mixope.statistics.transitions import Transitions, empty_scores, restrict

NOTHING_LEFT = 1e-6
"""Where γⁿ is below this, what comes after n steps does not count."""
FROM_STEPS, FROM_EPISODES, FROM_CHAIN = "mean of the steps", "mean of the episodes", "solved from the rows"
_UNSOLVED = "some episodes were cut, or lack their first steps, and nothing was solved for what is missing"


@dataclass(frozen=True)
class Own:
    """A value, how it was had, and scores by episode (of all episodes; 0 on those of others).

    ``mine`` are the episodes behind it. Of a chain, ``table`` has the scores of transitions (on counts), ``by_piece``
    those of pieces of episodes (on features, where blocks are wanted).
    """

    mine: BoolArray
    value: float
    scores: FloatArray
    method: str
    table: FloatArray | None = None
    by_piece: FloatArray | None = None


@dataclass(frozen=True)
class Pieces:
    """Rewards and rows by step or by pieces of a few, ``lengths`` of them per episode: what blocks are made from.

    ``lay`` turns a score table into scores by step, where states are counted.
    """

    reward: FloatArray
    rows: FloatArray
    lengths: IntArray
    lay: Callable[[FloatArray], FloatArray] | None = None

    def scores(self, own: Own) -> FloatArray:
        """Of a chain, its own; of a mean, (Σ r − value · rows) / all rows. 0 on the episodes of others."""
        mine = np.repeat(own.mine, self.lengths)
        if own.table is not None and self.lay is not None:
            return np.where(mine, self.lay(own.table), 0.0)
        if own.by_piece is not None:
            return np.where(mine, own.by_piece, 0.0)
        earned = np.where(mine, self.reward - own.value * self.rows, 0.0)
        return np.asarray(earned / float(self.rows[mine].sum()))


@dataclass(frozen=True)
class OwnChains:
    """What is known before the last scan: chains of cut episodes, one per logger and the pool's last; None: not asked.

    On counts, ``tables`` are the scores of transitions: one table for all loggers, whose rows are not each other's, and
    the pool's. On features, there are Σ γᵗ r by episode, and rewards by pieces where blocks are wanted.
    """

    chains: tuple[Solution | MixopeError | None, ...]
    tables: tuple[FloatArray | None, FloatArray | None] = (None, None)
    returns: FloatArray | None = None
    pieces: Pieces | None = None

    @property
    def to_sum(self) -> list[Solution]:
        """The tables, to be summed by episode in the last scan."""
        return [Solution(0.0, scores=table) for table in self.tables]


def own_values(
    estimand: Estimand, totals: EpisodeTotals, solved: OwnChains, returns: FloatArray | None, summed: FloatArray
) -> tuple[Own | str, ...]:
    """Every logger's own value or why it has none, and the pool's last.

    ``summed`` are the tables of ``solved`` by episode.
    """
    everybody, whole = len(solved.chains) - 1, settled(estimand, totals)
    found: list[Own | str] = []
    for who, chain in enumerate(solved.chains):
        mine = np.ones(len(whole), dtype=np.bool_) if who == everybody else totals.logger == who
        if bool(whole[mine].all()) or (estimand.restarts and chain is None):
            found.append(_mean(estimand, totals, mine, returns))
        elif isinstance(chain, Solution):
            side = int(who == everybody)
            found.append(_from_chain(chain, mine, solved.tables[side], summed[:, side]))
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


def _mean(estimand: Estimand, totals: EpisodeTotals, mine: BoolArray, returns: FloatArray | None) -> Own:
    """Over the steps of some episodes, or over the episodes themselves."""
    earned = totals.reward if returns is None else estimand.scale * returns
    size = totals.rows if estimand.restarts else np.ones(len(mine))
    total = float(size[mine].sum())
    value = float(earned[mine].sum()) / total
    method = FROM_STEPS if estimand.restarts else FROM_EPISODES
    return Own(mine, value, np.where(mine, earned - value * size, 0.0) / total, method)


def _from_chain(chain: Solution, mine: BoolArray, table: FloatArray | None, summed: FloatArray) -> Own:
    """On counts with the scores that the last scan summed, on features with its own."""
    scores = chain.whole_episodes
    if scores is None:
        return Own(mine, chain.value, np.where(mine, summed, 0.0), FROM_CHAIN, table=table)
    by_piece = None if chain.pieces is None else chain.episode_scores
    return Own(mine, chain.value, np.where(mine, scores, 0.0), FROM_CHAIN, by_piece=by_piece)


def own_on_counts(transitions: Transitions, estimand: Estimand) -> OwnChains:
    """The chains of every logger's rows and of all rows, where episodes may have been cut."""
    pool = _chain(transitions, estimand)
    of_pool = pool.scores if isinstance(pool, Solution) else None
    pool = _without_table(pool)
    if len(transitions.loggers) == 1:
        return OwnChains((pool, pool), (of_pool, of_pool))
    table, chains = empty_scores(transitions.n_groups), []
    in_turn = np.argsort(transitions.logger, kind="stable")
    ends = np.cumsum(np.bincount(transitions.logger, minlength=len(transitions.loggers)))
    for mine in np.split(in_turn, ends[:-1]):
        chain = _chain(restrict(transitions, mine), estimand)
        if isinstance(chain, Solution) and chain.scores is not None:
            _write(table, mine, chain.scores)
        chains.append(_without_table(chain))
    known = any(isinstance(chain, Solution) for chain in chains)
    return OwnChains((*chains, pool), (table if known else None, of_pool))


def _write(table: FloatArray, groups: IntArray, scores: FloatArray) -> None:
    """The scores of some groups, column by column: those that are all zero stay untouched."""
    for column, values in zip(table.T, scores.T, strict=True):
        if values.any():
            column[groups] = values


def _without_table(chain: Solution | MixopeError | None) -> Solution | MixopeError | None:
    """Its scores are in the table of all loggers, and nobody asks for its weights: memory is not held twice."""
    return replace(chain, scores=None, weights=None) if isinstance(chain, Solution) else chain


def _chain(mine: Transitions, estimand: Estimand) -> Solution | MixopeError | None:
    """Rows as a world with one action, which everybody takes: all ratios are 1."""
    if estimand.horizon is None and float(mine.rows[mine.terminated].sum()) == float(mine.starts.sum()):
        return None  # every episode ended
    alone = replace(mine, action=np.zeros_like(mine.action), actions=np.zeros(1, dtype=np.int64))
    problem = Problem.of_logged(alone, uniform([0]), estimand)
    try:
        found = of_logged(solve_on_counts(problem, CountedMixture()), problem.followed)
    except MixopeError as refusal:
        return refusal
    finally:
        problem.forget()
    if found.scores is None or not (found.solved.ok and np.isfinite(found.value)):
        return UsageError(found.solved.outcome.value)
    return found
