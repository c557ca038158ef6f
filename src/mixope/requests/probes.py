"""Probes: what the last scan adds up by episode, besides scores, to see whether all episodes met the same world.

With r̄ the mean reward of a kind of transition (s, a, s′) over all rows, and random signs g(s, a) and h(s′),

    R = Σ (r − r̄),   Q = Σ (r − r̄)²,   T = Σ step (r − r̄),   N = rows whose transition has rewards that vary,
    M_k = Σ g_k(s, a) [ h_k(s′) − mean of h_k(s′) over the rows of (s, a) ].

Every summand has mean zero given what came before it, whoever acted, if rewards and next states follow one law; so R
and M_k of one part of the episodes differ from those of another by chance only. A few random signs see a change of any
next states without knowing which; rows after which nobody knows what came add nothing to M. See
:mod:`mixope.checks.steadiness` for what is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.requests.clusters import Clusters
from mixope.requests.grouping import Aggregate, GroupSums
from mixope.requests.transitions import UNFOLLOWED, Transitions, transition_cells

SIGNS = 6
"""How many M_k."""
_MEAN, _VARIES = "mean_reward", "reward_varies"
_ROUNDING = 1e-9
"""Rewards of a transition that differ by no more than this share of their size are the same reward."""


@dataclass(frozen=True)
class Probes:
    """Columns over groups to join with the rows, and what to add up by episode."""

    columns: Mapping[str, FloatArray]
    aggregates: tuple[Aggregate, ...]

    def beside(self, other: Probes) -> Probes:
        """Both."""
        return Probes({**self.columns, **other.columns}, (*self.aggregates, *other.aggregates))


@dataclass(frozen=True)
class EpisodeProbes:
    """R, Q, T, M (episodes × signs) and N."""

    reward: FloatArray
    reward_squared: FloatArray
    reward_by_step: FloatArray
    moves: FloatArray
    n_random: FloatArray

    def summed(self, clusters: Clusters) -> EpisodeProbes:
        """By cluster; the same where these are episodes."""
        if not clusters.named:
            return self
        columns = (getattr(self, each.name) for each in fields(self))
        return EpisodeProbes(
            *(
                clusters.sums(c)
                if c.ndim == 1
                else np.stack([clusters.sums(k) for k in c.T], axis=1)
                if c.shape[1]
                else np.zeros((len(clusters), 0))
                for c in columns
            )
        )


def make_probes(transitions: Transitions, seed: int = 0) -> Probes:
    """The columns of these counts; next states that are certain everywhere leave no M_k."""
    t = transitions
    cell = transition_cells(t)
    mean = (sum_by(cell, t.reward) / sum_by(cell, t.rows))[cell]
    moves = _moves(t, seed)
    columns = {_MEAN: mean, _VARIES: _varies(t, cell), **moves}
    aggregates = [
        Aggregate("random", "sum", (_VARIES,)),
        Aggregate("expected", "sum", (_MEAN,)),
        Aggregate("earned_squared", "sum", ("reward", "reward")),
        Aggregate("earned_expected", "sum", ("reward", _MEAN)),
        Aggregate("expected_squared", "sum", (_MEAN, _MEAN)),
        Aggregate("earned_by_step", "sum", ("reward", "step")),
        Aggregate("expected_by_step", "sum", (_MEAN, "step")),
        *(Aggregate(f"sum_{name}", "sum", (name,)) for name in moves),
    ]
    return Probes(columns, tuple(aggregates))


def _varies(t: Transitions, cell: IntArray) -> FloatArray:
    """One where the rewards of the kind of transition are not all the same, else zero."""
    lowest, highest = np.full(cell.max(initial=0) + 1, np.inf), np.full(cell.max(initial=0) + 1, -np.inf)
    np.minimum.at(lowest, cell, t.lowest)
    np.maximum.at(highest, cell, t.highest)
    varies = highest - lowest > _ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    return varies[cell].astype(np.float64)


def _moves(t: Transitions, seed: int) -> dict[str, FloatArray]:
    known = t.next_state != UNFOLLOWED
    generator, count = np.random.default_rng([seed, 37]), np.maximum(sum_by(t.pair, t.rows * known), 1.0)
    columns = {}
    for k in range(SIGNS):
        before, after = generator.choice([-1.0, 1.0], t.n_pairs), generator.choice([-1.0, 1.0], t.n_states + 1)
        reached = np.where(known, after[t.next_state], 0.0)
        residual = known * before[t.pair] * (reached - (sum_by(t.pair, t.rows * reached) / count)[t.pair])
        if np.abs(residual).max(initial=0.0) > 1e-9:
            columns[f"move{k}"] = residual
    return columns


def read_probes(groups: GroupSums) -> EpisodeProbes:
    """From sums by episode; an episode without a random reward differs from what was expected by rounding alone."""
    random = groups.column("random")
    q = groups.column("earned_squared") - 2 * groups.column("earned_expected") + groups.column("expected_squared")
    names = [name for name in groups.grouping.names if name.startswith("sum_move")]
    moves = [groups.column(name) for name in names]

    def off(name: str) -> FloatArray:
        return np.where(random > 0, groups.column(name) - groups.column(name.replace("earned", "expected")), 0.0)

    return EpisodeProbes(
        reward=off("earned"),
        reward_squared=np.where(random > 0, np.maximum(q, 0.0), 0.0),
        reward_by_step=off("earned_by_step"),
        moves=np.stack(moves, axis=1) if moves else np.zeros((groups.n_groups, 0)),
        n_random=random,
    )
