"""Rows in the order of their steps, as one number each: which transition.

Whatever depends on the transition alone (a log-probability, a score) can then be laid along the episodes without
reading the logs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from mixope.arrays import FloatArray, IntArray
from mixope.statistics.trajectories import RatioColumns, Trajectories, running_sums
from mixope.statistics.transitions import BASIS


@dataclass(frozen=True)
class OrderedRows:
    """Rows of whole episodes in step order: the transition and propensity of each, besides rewards and lengths."""

    episodes: Trajectories
    group: IntArray
    propensity: FloatArray

    def weighed(self, joined: Mapping[str, FloatArray], ratio: RatioColumns) -> Trajectories:
        """With log W_t from log-probabilities by transition, as a pass over the logs would give."""
        episode = self.episodes.episode
        target = running_sums(joined[ratio.target][self.group], episode)
        if ratio.denominators:
            parts = np.stack([running_sums(joined[name][self.group], episode) for name in ratio.denominators])
            base = logsumexp(parts + np.log(np.asarray(ratio.shares))[:, None], axis=0)
        else:
            with np.errstate(divide="ignore"):
                base = running_sums(np.log(self.propensity), episode)
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isneginf(target), -np.inf, target - base)
        return replace(self.episodes, log_weight=weight)

    def scores(self, table: FloatArray) -> FloatArray:
        """A score table (groups × basis) by row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / self.propensity
        reward, first = self.episodes.reward, np.zeros(len(self.group))
        first[self.episodes.first] = 1.0
        basis = {"rows": 1.0, "reward": reward, "inverse": inverse, "inverse_reward": inverse * reward, "starts": first}
        used = [(k, name) for k, name in enumerate(BASIS) if table[:, k].any()]
        return np.asarray(sum((table[self.group, k] * basis[name] for k, name in used), np.zeros(len(self.group))))


def repeat_episodes(data: Trajectories, weight: FloatArray) -> Trajectories:
    """Episode e as often as ``weight[e]`` says."""
    chosen = np.repeat(np.arange(data.n_episodes), weight.astype(np.int64))
    length = data.length[chosen]
    begin = np.repeat(data.first[chosen] - (np.cumsum(length) - length), length)
    rows = begin + np.arange(int(length.sum()))
    return replace(
        data,
        log_weight=data.log_weight[rows],
        reward=data.reward[rows],
        length=length,
        terminated=data.terminated[chosen],
    )
