"""Whole episodes in step order: the cumulative log importance ratio of every row, or the number of its transition.

    log W_t = Σ_{u≤t} log π(a_u|s_u) − log b_t,   b_t = Π_{u≤t} p_u,  or Σ_k β_k Π_{u≤t} π_k(a_u|s_u) (balance)

Fragments hold whole episodes, so partial results are disjoint sets of episodes and merging is putting them side by
side. Episodes carry their keys; :meth:`Trajectories.in_key_order` puts them in the order of their keys, whatever the
order in which the fragments came.

Where states are counted, one pass gives the transition of every row (:class:`NumberedSteps`), and whatever depends on
the transition alone (a log-probability, a score) is laid along the episodes without reading the logs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.logs import EPISODE_KEYS, Schema
from mixope.requests.by_episode import first_of_runs
from mixope.requests.grouping import Lookup, joined
from mixope.requests.request import Batch
from mixope.requests.scores import ScoreTable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (*EPISODE_KEYS, "step", "reward", "propensity", "terminated")
MOST_ORDERED = 200_000
"""Up to so many rows, episodes are put in order for the checks."""
AT_A_TIME = 1 << 18
"""Rows along which scores are laid at a time."""
TRANSITION = "transition"
"""The column that holds the number of a row's transition."""


@dataclass(frozen=True)
class Trajectories:
    """Rows of whole episodes: log W_t and reward per row; length, end and key per episode."""

    log_weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    length: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    terminated: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    keys: pa.Table | None = field(default=None, compare=False, repr=False)

    @property
    def ends(self) -> BoolArray:
        """Which rows truly ended their episode."""
        last = np.zeros(self.n_rows, dtype=np.bool_)
        last[np.cumsum(self.length) - 1] = self.terminated
        return last

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return len(self.reward)

    @property
    def n_episodes(self) -> int:
        """Episodes seen."""
        return len(self.length)

    @property
    def first(self) -> IntArray:
        """The first row of every episode."""
        return (np.cumsum(self.length) - self.length).astype(np.int64)

    @property
    def episode(self) -> IntArray:
        """The episode of every row."""
        return np.repeat(np.arange(self.n_episodes), self.length)

    @property
    def step(self) -> IntArray:
        """t of every row, from 0 in every episode."""
        return np.arange(self.n_rows) - np.repeat(self.first, self.length)

    @property
    def last_log_weight(self) -> FloatArray:
        """log W of the whole episode."""
        return np.asarray(self.log_weight[self.first + self.length - 1])

    def merge(self, other: Trajectories) -> Trajectories:
        """Put the episodes side by side."""
        if not self.n_episodes or not other.n_episodes:
            return self if self.n_episodes else other
        both = {f.name: _beside(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return Trajectories(**both)

    def followed_by(self, other: Trajectories) -> Trajectories:
        """Put the episodes side by side; one that was cut at the border, the last here and the first there, is one."""
        both, border = self.merge(other), self.n_episodes
        if not border or not other.n_episodes or not _same_key(self.keys, other.keys):
            return both
        length = np.delete(both.length, border)
        length[border - 1] += other.length[0]
        kept = np.delete(np.arange(both.n_episodes), border)
        keys = None if both.keys is None else both.keys.take(kept)
        return replace(both, length=length, terminated=np.delete(both.terminated, border - 1), keys=keys)

    def take(self, chosen: IntArray) -> Trajectories:
        """Some episodes, in this order; one may be taken several times."""
        rows = self.rows_of(chosen)
        return Trajectories(
            self.log_weight[rows],
            self.reward[rows],
            self.length[chosen],
            self.terminated[chosen],
            None if self.keys is None else self.keys.take(chosen),
        )

    def rows_of(self, chosen: IntArray) -> IntArray:
        """The rows of some episodes, in this order."""
        length = self.length[chosen]
        begin = np.repeat(self.first[chosen] - (np.cumsum(length) - length), length)
        return np.asarray(begin + np.arange(int(length.sum())))

    def key_order(self) -> IntArray | None:
        """The episodes in the order of their keys; None where they are in it, or have no keys."""
        if self.keys is None:
            return None
        import pyarrow.compute as pc

        order = pc.sort_indices(self.keys, sort_keys=[(key, "ascending") for key in EPISODE_KEYS]).to_numpy()
        return None if np.array_equal(order, np.arange(len(order))) else order.astype(np.int64)

    def in_key_order(self) -> Trajectories:
        """The episodes in the order of their keys."""
        order = self.key_order()
        return self if order is None else self.take(order)


def _same_key(left: pa.Table | None, right: pa.Table | None) -> bool:
    """Whether the last key of one is the first of the other."""
    if left is None or right is None:
        return False
    return bool(left.slice(left.num_rows - 1).to_pylist() == right.slice(0, 1).to_pylist())


def _beside(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if isinstance(left, np.ndarray):
        return np.concatenate([left, right])
    import pyarrow as pa

    return pa.concat_tables([left, right])


def trajectories_of(table: pa.Table, log_ratio: FloatArray) -> Trajectories:
    """From rows of whole episodes in step order and the log ratio of every row."""
    first = first_of_runs(table, EPISODE_KEYS)
    length = np.diff(np.append(first, table.num_rows))
    ended = np.asarray(table.column("terminated").to_numpy(), dtype=np.bool_)
    return Trajectories(
        _cumulate(log_ratio, first, length),
        np.asarray(table.column("reward").to_numpy(), dtype=np.float64),
        length.astype(np.int64),
        ended[first + length - 1],
        table.select(list(EPISODE_KEYS)).take(first),
    )


def running_sums(log_prob: FloatArray, episode: IntArray) -> FloatArray:
    """Σ_{u≤t} within episodes; rows of an episode are together."""
    if len(episode) == 0:
        return np.zeros(0)
    first = np.append(0, np.flatnonzero(episode[1:] != episode[:-1]) + 1).astype(np.int64)
    return _cumulate(log_prob, first, np.diff(np.append(first, len(episode))))


def _cumulate(log_prob: FloatArray, first: IntArray, length: IntArray) -> FloatArray:
    """Running sums within episodes; −inf is counted apart, so that it does not spill into the next episode."""
    impossible = np.isneginf(log_prob)
    total = np.cumsum(np.where(impossible, 0.0, log_prob))
    zeros = np.cumsum(impossible)
    before = np.repeat(np.where(first > 0, total[first - 1], 0.0), length)
    zeros_before = np.repeat(np.where(first > 0, zeros[first - 1], 0), length)
    return np.where(zeros > zeros_before, -np.inf, total - before)


@dataclass(frozen=True)
class RatioColumns:
    """Where a row's ratio comes from: the target's log-probability by transition, and one or several denominators.

    No denominator stands for the recorded propensity. ``shares`` are the β_k of the balance heuristic.
    """

    target: FloatArray
    denominators: tuple[FloatArray, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class OrderedRows:
    """Rows of whole episodes in step order: the transition and propensity of each, besides rewards and lengths."""

    episodes: Trajectories
    group: IntArray
    propensity: FloatArray

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return self.episodes.n_rows

    def merge(self, other: OrderedRows) -> OrderedRows:
        """Put the episodes side by side; those of neighbours that cut an episode have it whole."""
        return OrderedRows(
            self.episodes.followed_by(other.episodes),
            np.concatenate([self.group, other.group]),
            np.concatenate([self.propensity, other.propensity]),
        )

    def in_key_order(self) -> OrderedRows:
        """The episodes in the order of their keys."""
        order = self.episodes.key_order()
        return self if order is None else self.take(order)

    def take(self, chosen: IntArray) -> OrderedRows:
        """Some episodes, in this order; one may be taken several times."""
        rows = self.episodes.rows_of(chosen)
        return OrderedRows(self.episodes.take(chosen), self.group[rows], self.propensity[rows])

    def repeat(self, weight: FloatArray) -> OrderedRows:
        """Episode e as often as ``weight[e]`` says."""
        return self.take(np.repeat(np.arange(self.episodes.n_episodes), weight.astype(np.int64)))

    def weighed(self, ratio: RatioColumns) -> Trajectories:
        """With log W_t from log-probabilities by transition."""
        episode = self.episodes.episode
        target = running_sums(ratio.target[self.group], episode)
        if ratio.denominators:
            parts = np.stack([running_sums(each[self.group], episode) for each in ratio.denominators])
            with np.errstate(divide="ignore"):  # the share of a logger without a known start is 0
                shares = np.log(np.asarray(ratio.shares))
            base = logsumexp(parts + shares[:, None], axis=0)
        else:
            with np.errstate(divide="ignore"):
                base = running_sums(np.log(self.propensity), episode)
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isneginf(target), -np.inf, target - base)
        return replace(self.episodes, log_weight=weight)

    def scores(self, table: ScoreTable) -> FloatArray:
        """A score table by row; laid along some rows at a time, so that little else is held."""
        first = np.zeros(len(self.group), dtype=np.bool_)
        first[self.episodes.first] = True
        laid = np.zeros(len(self.group))
        for low in range(0, len(laid), AT_A_TIME):
            some = slice(low, low + AT_A_TIME)
            laid[some] = table.over(self.group[some], self._basis(some, first[some]))
        return laid

    def _basis(self, rows: slice, first: BoolArray) -> Mapping[str, Any]:
        """What score tables are linear in, of some rows."""
        reward = self.episodes.reward[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / self.propensity[rows]
        return {
            "rows": 1.0,
            "reward": reward,
            "inverse": inverse,
            "inverse_reward": inverse * reward,
            "starts": first.astype(np.float64),
        }


@dataclass(frozen=True)
class NumberedSteps:
    """The request for the transition of every row, in step order; ``numbers`` keys transitions by their raw values."""

    numbers: Lookup

    whole_episodes = True
    joins_episodes = True
    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """What a trajectory needs, and the keys of a transition."""
        return tuple(dict.fromkeys((*COLUMNS, *self.numbers.keys)))

    def of(self, batch: Batch) -> OrderedRows:
        """The episodes of a batch."""
        table = joined(batch.table, self.numbers)
        column = table.column(TRANSITION)
        if column.null_count:
            raise UsageError("a row has a transition that was not counted; did the logs change between two scans?")
        propensity = np.asarray(table.column("propensity").to_numpy(), dtype=np.float64)
        group = np.asarray(column.to_numpy(), dtype=np.int64)
        return OrderedRows(trajectories_of(table, np.zeros(table.num_rows)), group, propensity)
