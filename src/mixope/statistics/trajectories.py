"""Trajectories: the cumulative log importance ratio of every row within its episode.

    log W_t = Σ_{u≤t} log π(a_u|s_u) − log b_t,   b_t = Π_{u≤t} p_u,  or Σ_k β_k Π_{u≤t} π_k(a_u|s_u) (balance)

Fragments hold whole episodes in step order, so partial results are disjoint sets of episodes and merging is putting
them side by side: commutative up to the order of episodes, which nothing depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from mixope.arrays import BoolArray, FloatArray, IntArray
from mixope.errors import MixopeError, UsageError
from mixope.logs import EPISODE_KEYS

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (*EPISODE_KEYS, "step", "reward", "propensity", "terminated")


@dataclass(frozen=True)
class RatioColumns:
    """Where a row's ratio comes from: the target's log-probability, and one or several denominators.

    No denominator stands for the recorded propensity. ``shares`` are the β_k of the balance heuristic.
    """

    target: str
    denominators: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()


@dataclass(frozen=True)
class Trajectories:
    """Rows of whole episodes: log W_t and reward a row; length and end an episode."""

    log_weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    length: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    terminated: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    belongs_to: str = ""

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
        """Put the episodes side by side; those of another target or ratio are refused."""
        return merge_all([self, other])


def trajectories(table: pa.Table, columns: RatioColumns, belongs_to: str = "") -> Trajectories:
    """From rows of whole episodes in step order, joined with the log-probabilities named by ``columns``."""
    first = _episode_starts(table)
    length = np.diff(np.append(first, table.num_rows))
    target = _cumulate(_column(table, columns.target), first, length)
    if columns.denominators:
        parts = np.stack([_cumulate(_column(table, name), first, length) for name in columns.denominators])
        base = logsumexp(parts + np.log(np.asarray(columns.shares))[:, None], axis=0)
    else:
        with np.errstate(divide="ignore"):
            base = _cumulate(np.log(_column(table, "propensity")), first, length)
    with np.errstate(invalid="ignore"):
        log_weight = np.where(np.isneginf(target), -np.inf, target - base)
    return _as_trajectories(table, log_weight, first, length, f"{columns} {belongs_to}")


def trajectories_of(table: pa.Table, log_ratio: FloatArray, belongs_to: str = "") -> Trajectories:
    """From rows of whole episodes in step order and the log ratio of every row."""
    first = _episode_starts(table)
    length = np.diff(np.append(first, table.num_rows))
    return _as_trajectories(table, _cumulate(log_ratio, first, length), first, length, belongs_to)


def running_sums(log_prob: FloatArray, episode: IntArray) -> FloatArray:
    """Σ_{u≤t} within episodes; rows of an episode are together."""
    first = np.append(0, np.flatnonzero(episode[1:] != episode[:-1]) + 1).astype(np.int64)
    return _cumulate(log_prob, first, np.diff(np.append(first, len(episode))))


def _as_trajectories(
    table: pa.Table, log_weight: FloatArray, first: IntArray, length: IntArray, belongs_to: str
) -> Trajectories:
    ended = np.asarray(table.column("terminated").to_numpy(), dtype=np.bool_)
    last = ended[first + length - 1]
    return Trajectories(log_weight, _column(table, "reward"), length.astype(np.int64), last, belongs_to)


def merge_all(parts: Sequence[Trajectories], expected_rows: int | None = None) -> Trajectories:
    """All episodes at once, without copying what was merged before; a lost row is an error."""
    full = [part for part in parts if part.n_episodes]
    if len({part.belongs_to for part in full}) > 1:
        raise UsageError("these trajectories belong to different targets or ratios and cannot be merged")
    merged = full[0] if full else Trajectories()
    if len(full) > 1:
        arrays = [f.name for f in fields(Trajectories) if f.name != "belongs_to"]
        joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in full]) for name in arrays}
        merged = replace(full[0], **joined)
    if expected_rows is not None and merged.n_rows != expected_rows:
        raise MixopeError(f"the engine gave back {merged.n_rows} rows where the logs have {expected_rows}")
    return merged


def _column(table: pa.Table, name: str) -> FloatArray:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def _episode_starts(table: pa.Table) -> IntArray:
    changed = np.zeros(max(table.num_rows - 1, 0), dtype=bool)
    for key in EPISODE_KEYS:
        values = table.column(key).to_numpy()
        changed |= values[1:] != values[:-1]
    return np.concatenate([[0], np.flatnonzero(changed) + 1]).astype(np.int64)


def _cumulate(log_prob: FloatArray, first: IntArray, length: IntArray) -> FloatArray:
    """Running sums within episodes; −inf is counted apart, so that it does not spill into the next episode."""
    impossible = np.isneginf(log_prob)
    total = np.cumsum(np.where(impossible, 0.0, log_prob))
    zeros = np.cumsum(impossible)
    before = np.repeat(np.where(first > 0, total[first - 1], 0.0), length)
    zeros_before = np.repeat(np.where(first > 0, zeros[first - 1], 0), length)
    return np.where(zeros > zeros_before, -np.inf, total - before)
