"""What hangs on the guess of how it goes on in states that nobody left.

Rows that lead to such a *frontier* state are taken to go on as from where they came (:mod:`mixope.solvers.frontier`).
Nothing in the logs tells whether that is so. What it can do to the value: let all frontier states earn the lowest, then
the highest mean reward of any state,

    span = F · (max_s r̃(s) − min_s r̃(s)),     F = Σ_{rows to the frontier} d(s) · (its share of the steps from s) · γ,

F being how often the target is at the frontier (each row for as many steps as it stands for): per step, or per episode
where the total of one is asked for; for a horizon, what is reached in the last step does not count. The extremes are
those of mean rewards, not of single ones (a customer who buys once in twenty weeks for 30 earns 1.50, and no state
earns 30), and of means as far as they differ by more than chance: each r̂(s) is drawn towards their common mean by
B(s) = τ²/(τ² + v(s)), v(s) its own variance, τ² the variance that is left between states (DerSimonian and Laird 1986).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray, sum_by
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy
from mixope.requests.problem import Problem
from mixope.requests.transitions import Transitions

_PRIOR = 10.0
"""Degrees of freedom that the noise of all pairs together is worth beside the noise of one."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Frontier:
    """How often the target is in states that nobody left, and how far the value moves between what they may earn."""

    mass: float = 0.0
    span: float = 0.0


def at_the_frontier(flow: Flow, occupancy: Occupancy) -> Frontier:
    """Of a flow."""
    if not flow.frontier.any():
        return Frontier()
    rows, there = flow.rows, flow.frontier > 0
    share = (flow.frontier * flow.ratio / flow.state_count[rows.state])[there]
    mass = float(np.sum((occupancy.law * occupancy.goes_on)[rows.state[there]] * share))
    mass = min(mass, float(occupancy.law.sum()))
    return frontier_of(mass, flow.whole)


def frontier_of(mass: float, problem: Problem) -> Frontier:
    """Of so much mass at the frontier; any state of the logs tells what states may earn."""
    if mass <= _ROUNDING:
        return Frontier()
    low, high = extreme_rewards(problem.transitions, problem.pair_target)
    return Frontier(mass, mass * (high - low))


def extreme_rewards(rows: Transitions, pair_target: FloatArray) -> tuple[float, float]:
    """The lowest and the highest mean reward of a state under the target, less what is chance."""
    n = rows.pair_rows
    mean = sum_by(rows.pair, rows.reward) / n
    total = sum_by(rows.pair_state, pair_target, rows.n_states)
    chance = np.divide(pair_target, total[rows.pair_state], out=np.zeros(rows.n_pairs), where=pair_target > 0)
    taken = np.flatnonzero(total > 0)
    value = sum_by(rows.pair_state, chance * mean, rows.n_states)[taken]
    variance = sum_by(rows.pair_state, chance**2 * reward_noise(rows) / n, rows.n_states)[taken]
    return _span(value, variance)


def reward_noise(rows: Transitions) -> FloatArray:
    """The variance of one reward about the mean of its pair, drawn towards that of all pairs."""
    n, total = rows.pair_rows, sum_by(rows.pair, rows.reward)
    squares = total**2 / n if rows.squares is None else sum_by(rows.pair, rows.squares)
    off = np.maximum(squares - total**2 / n, 0.0)
    off[off <= _ROUNDING * squares] = 0.0
    free = np.maximum(n - 1.0, 0.0)
    of_all = float(off.sum()) / max(float(free.sum()), 1.0)
    return np.asarray((off + _PRIOR * of_all) / (free + _PRIOR))


def _span(value: FloatArray, variance: FloatArray) -> tuple[float, float]:
    if not (variance > 0).all():
        return float(value.min()), float(value.max())
    weight = 1.0 / variance
    mean = float(weight @ value / weight.sum())
    excess = float(weight @ (value - mean) ** 2) - (len(value) - 1)
    scale = float(weight.sum() - weight @ weight / weight.sum())
    between = max(excess / scale, 0.0) if scale > 0 else 0.0
    drawn = mean + between / (between + variance) * (value - mean)
    return float(drawn.min()), float(drawn.max())
