"""Transition counts: how often each (logger, s, a, s′) was logged, and what it earned.

The grouping is made on raw values; the *result* is encoded here into dense numbers of states, actions and loggers,
once, and everything in the tabular case is computed from this record. Terminated rows have no next state (−1); of rows
after which nobody knows what came it is −2, until :mod:`mixope.requests.followed` makes transitions of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray, IntArray, distinct, number_tuples, sum_by
from mixope.base.errors import MixopeError
from mixope.requests.grouping import Aggregate, Grouping, GroupSums
from mixope.requests.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from mixope.logs import Schema

#: What one row is worth in a score: its coefficients are the columns of a score table, its sums are kept a group.
BASIS = ("rows", "reward", "inverse", "inverse_reward", "starts")

ENDED, UNFOLLOWED = -1, -2
"""What stands for the next state of a row that ended its episode, and of one after which nobody knows what came."""
SUMS = ("rows", "reward", "squares", "starts", "inverse", "inverse_reward", "inverse_squared", "scatter")
"""What is added up over the rows of a group."""
_ALWAYS = (
    Aggregate("rows", "count"),
    Aggregate("reward", "sum", ("reward",)),
    Aggregate("squares", "sum", ("reward", "reward")),
    Aggregate("lowest", "min", ("reward",)),
    Aggregate("highest", "max", ("reward",)),
    Aggregate("starts", "sum", ("start",)),
)
_WITH_PROPENSITY = (
    Aggregate("inverse", "sum", ("inverse",)),
    Aggregate("inverse_reward", "sum", ("inverse", "reward")),
    Aggregate("inverse_squared", "sum", ("inverse", "inverse")),
)


def transition_keys(schema: Schema) -> tuple[str, ...]:
    """The columns that identify a kind of transition."""
    return ("policy_id", *schema.observation, *schema.action, *schema.next_observation, "terminated")


def transition_grouping(schema: Schema) -> Grouping:
    """Counts, rewards, starts, and inverse propensities where they were logged."""
    aggregates = (*_ALWAYS, *(_WITH_PROPENSITY if schema.has_propensity else ()))
    keys = transition_keys(schema)
    return Grouping(keys, aggregates, belongs_to=str([schema.types.get(key, "") for key in keys]))


@dataclass(frozen=True)
class Transitions:
    """Encoded transition counts; arrays over groups g = (logger, s, a, s′)."""

    observations: AnyArray
    factors: tuple[str, ...]
    actions: AnyArray
    loggers: tuple[str, ...]
    logger: IntArray
    state: IntArray
    action: IntArray
    next_state: IntArray
    rows: FloatArray
    reward: FloatArray
    lowest: FloatArray
    highest: FloatArray
    starts: FloatArray
    inverse: FloatArray | None = None
    inverse_reward: FloatArray | None = None
    inverse_squared: FloatArray | None = None
    squares: FloatArray | None = None
    """Σ r²: what tells the noise of rewards from differences between pairs."""
    scatter: FloatArray | None = None
    """Σ n (r̄ − mean)² over the groups that were merged into each, where some were: what a sum of rewards forgets."""

    @property
    def n_states(self) -> int:
        """States seen, as s or as s′."""
        return len(self.observations)

    @property
    def n_groups(self) -> int:
        """Distinct (logger, s, a, s′)."""
        return len(self.rows)

    @property
    def n_rows(self) -> float:
        """Logged rows."""
        return float(self.rows.sum())

    @property
    def terminated(self) -> IntArray:
        """The groups that end an episode for good."""
        return np.flatnonzero(self.next_state == ENDED)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray]:
        return distinct(self.state * len(self.actions) + self.action, self.n_states * len(self.actions))

    @property
    def pair(self) -> IntArray:
        """The logged (s, a) pair of every group."""
        return self._pairs[1]

    @property
    def pair_code(self) -> IntArray:
        """The number of every logged pair among all pairs of states and actions, rising."""
        return self._pairs[0]

    @property
    def pair_state(self) -> IntArray:
        """The state of every logged pair."""
        return self._pairs[0] // len(self.actions)

    @property
    def pair_action(self) -> IntArray:
        """The action of every logged pair."""
        return self._pairs[0] % len(self.actions)

    @property
    def n_pairs(self) -> int:
        """Distinct logged (s, a)."""
        return len(self._pairs[0])

    @cached_property
    def pair_rows(self) -> FloatArray:
        """Logged rows of every pair."""
        return sum_by(self.pair, self.rows, self.n_pairs)

    @cached_property
    def start_law(self) -> FloatArray:
        """μ₀: the share of first observations in every state (zeros where no episode's start was logged)."""
        counts = sum_by(self.state, self.starts, self.n_states)
        total = counts.sum()
        return counts / total if total > 0 else counts

    def as_rows(self) -> Rows:
        """The groups as one batch of rows, each with its count: a group is a row that happened n times."""
        ended = self.next_state < 0
        observations, nothing = self.observations, np.zeros(self.n_groups)
        inverse = np.full(self.n_groups, np.nan) if self.inverse is None else self.inverse
        return Rows(
            observation=observations[self.state],
            action=self.actions[self.action],
            reward=np.divide(self.reward, self.rows, out=nothing, where=self.rows > 0),
            next_observation=observations[np.where(ended, self.state, self.next_state)],
            terminated=ended,
            start=self.starts > 0,
            propensity=np.divide(self.rows, inverse, out=np.full(self.n_groups, np.nan), where=inverse != 0),
            logger=np.asarray(self.loggers)[self.logger],
            count=self.rows,
            rewards=self.reward,
            starts=self.starts,
            inverse=self.inverse,
            inverse_reward=self.inverse_reward,
            inverse_squared=self.inverse_squared,
            state=self.state,
            next_state=self.next_state,
            action_code=self.action,
            pair=self.pair,
        )

    def logger_rows(self) -> FloatArray:
        """Rows of every logger."""
        return sum_by(self.logger, self.rows, len(self.loggers))

    def logger_means(self) -> FloatArray:
        """What every logger earned a step."""
        sums = sum_by(self.logger, self.reward, len(self.loggers))
        return sums / self.logger_rows()


def restrict(transitions: Transitions, groups: IntArray) -> Transitions:
    """Only some groups; states, actions and loggers keep their numbers."""
    arrays = {name: value[groups] for name in _GROUP_ARRAYS if (value := getattr(transitions, name)) is not None}
    return replace(transitions, **arrays)


_GROUP_ARRAYS = ("logger", "state", "action", "next_state", "lowest", "highest", *SUMS)


def empty_scores(n_groups: int) -> FloatArray:
    """A score table of zeros, laid out by column: what is never written takes no memory, and columns need no copy."""
    return np.zeros((len(BASIS), n_groups)).T


def start_error(scores: FloatArray, rows: FloatArray, starts: FloatArray) -> float:
    """The standard error of the start law, had starts the spread of the logged states: √(starts · Var c).

    c are a table's coefficients of first rows, k (V(s) − E V) / starts, over all rows whether they are first or not.
    """
    column = scores[:, BASIS.index("starts")]
    mean = float(rows @ column) / float(rows.sum())
    return float(np.sqrt(starts.sum() * (rows @ (column - mean) ** 2) / rows.sum()))


def transition_cells(transitions: Transitions) -> IntArray:
    """A number for every (s, a, s′), whoever logged it."""
    code = transitions.pair * (transitions.n_states + 2) + transitions.next_state + 2
    return np.asarray(np.unique(code, return_inverse=True)[1], dtype=np.int64)


def encode(sums: GroupSums, schema: Schema) -> Transitions:
    """Number states, actions and loggers in the order of their values."""
    table = sums.table
    if table is None or table.num_rows == 0:
        raise MixopeError("no rows were counted")
    state, next_state, observations = _encode_states(table, schema)
    actions, action = np.unique(_values(table, schema.action[0]), return_inverse=True)
    loggers, logger = np.unique(_values(table, "policy_id").astype(str), return_inverse=True)
    present = [a for a in (*_ALWAYS, *_WITH_PROPENSITY) if a.name in table.column_names]
    return Transitions(
        observations=observations,
        factors=schema.observation if schema.observation_kind == "factors" else (),
        actions=actions,
        loggers=tuple(loggers.tolist()),
        logger=logger.astype(np.int64),
        state=state,
        action=action.astype(np.int64),
        next_state=next_state,
        **{a.name: sums.column(a.name) for a in present},
    )


def _values(table: pa.Table, name: str) -> AnyArray:
    return np.asarray(table.column(name).to_numpy())


def _encode_states(table: pa.Table, schema: Schema) -> tuple[IntArray, IntArray, AnyArray]:
    """Codes of s and s′ in one numbering, and the observation behind every code."""
    n = table.num_rows
    ended = np.asarray(table.column("terminated").to_numpy(), dtype=bool)
    known = np.all([table.column(name).is_valid().to_numpy() for name in schema.next_observation], axis=0)
    alive = np.flatnonzero(~ended & known)
    columns = [
        np.concatenate([_values(table, now), _values(table.take(alive), then)])
        for now, then in zip(schema.observation, schema.next_observation, strict=True)
    ]
    code, first = number_tuples(columns)
    whole = all(column.dtype.kind in "iu" for column in columns)
    observations = np.stack([column[first].astype(np.int64 if whole else object) for column in columns], axis=1)
    next_state = np.where(ended, ENDED, UNFOLLOWED)
    next_state[alive] = code[n:]
    return code[:n], next_state, observations[:, 0] if schema.observation_kind == "id" else observations


def noise_by_action(rows: Transitions, worth: FloatArray) -> FloatArray:
    """The variance of one row about the mean worth of its pair, for every action; of all rows where none repeats.

    Groups that were merged are told apart by what their rewards were off.
    """
    count = sum_by(rows.pair, rows.rows)
    off = worth - (sum_by(rows.pair, rows.rows * worth) / count)[rows.pair]
    inside = 0.0 if rows.scatter is None else rows.scatter
    within = sum_by(rows.action, rows.rows * off**2 + inside, len(rows.actions))
    known = sum_by(rows.pair_action, np.maximum(count - 1.0, 0.0), len(rows.actions))
    overall = float(within.sum()) / max(float(known.sum()), 1.0)
    return np.divide(within, known, out=np.full_like(within, overall), where=known > 0)
