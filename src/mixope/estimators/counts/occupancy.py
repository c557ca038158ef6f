"""Where the target would be, and what is still to come: one answer for each estimand.

For a flow with matrix P and reward r_π the estimands differ only in the occupancy d, in the *tail* t(s, s′) that a row
still has before it (so that r + t is what a row is worth), and in the part of the score that belongs to episode starts.
With k = 1 − γ for the discounted value and k = 1 for the total of an episode (whose γ is 1 unless it is given):

    average               d = d P                t = V(s′) − η                    mass at ends × (V(s₀) − E_μ₀ V)
    discounted, episode   d = k μ₀ + γ d P       t = γ V(s′)                      k (V(s₀) − E_μ₀ V)
    horizon               d = Σ_t d_t / T        t = Σ_t d_t(s) V_{t+1}(s′) / Σ_t d_t(s)    (V_0(s₀) − E_μ₀ V_0) / T

The value is Σ d r_π, except that self-normalisation is by the kept mass. Of an episode, Σ d is the mean (discounted)
length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import must_fit
from mixope.behaviours import CountedMixture
from mixope.estimators.counts.flow import Flow, follow
from mixope.requests.problem import Problem
from mixope.solvers.outcome import Outcome, Solved


@dataclass(frozen=True)
class Occupancy:
    """d on all states (0 where not kept), the value, tails of the kept groups, and the start part of the score."""

    law: FloatArray
    value: float
    tail: FloatArray
    start_score: FloatArray
    solved: Solved
    goes_on: FloatArray
    """How much of every state's d counts a step later too: all of it, γ of it, what is not the last step."""


def occupy(flow: Flow) -> Occupancy:
    """Solve the estimand of the flow's problem."""
    estimand = flow.problem.estimand
    solve = _average if estimand.restarts else _summed if estimand.sums else _horizon
    return solve(flow)


def pooled(problem: Problem) -> tuple[Flow, Occupancy]:
    """All rows under the counted mixture, followed and solved once for everybody who asks."""
    return problem.once(_pooled)


def _pooled(problem: Problem) -> tuple[Flow, Occupancy]:
    flow = follow(problem, CountedMixture(), np.ones(problem.transitions.n_groups))
    return flow, occupy(flow)


def _spread(flow: Flow, values: FloatArray) -> FloatArray:
    """Values on kept states, as an array over all states."""
    everywhere = np.zeros(flow.rows.n_states)
    everywhere[flow.states] = values
    return everywhere


def _average(flow: Flow) -> Occupancy:
    n = len(flow.states)
    chain, reward = flow.chain(), flow.state_reward()
    law, solved = chain.stationary
    time = float(law[:n].sum())
    d = law[:n] / time
    value = float(d @ reward)
    gain = np.append(reward - value, np.zeros(chain.n_states - n))
    potential = chain.potential(gain)
    v = _spread(flow, potential[:n])
    after_end = float(potential[-1]) if flow.restarts else 0.0
    ended = flow.rows.next_state < 0
    tail = np.where(ended, after_end, v[flow.rows.next_state]) - value
    ends = float(law[-1]) / time if flow.restarts else 0.0
    start = ends * _spread(flow, potential[:n] - after_end)
    return Occupancy(_spread(flow, d), value, tail, start, solved, np.ones(flow.rows.n_states))


def _summed(flow: Flow) -> Occupancy:
    gamma, scale = flow.problem.estimand.discount, flow.problem.estimand.scale
    chain, reward, start = flow.chain(), flow.state_reward(), flow.start
    d, solved = chain.discounted_occupancy(scale * start, gamma)
    v = chain.discounted_value(reward, gamma)
    everywhere = _spread(flow, v)
    tail = np.where(flow.rows.next_state < 0, 0.0, gamma * everywhere[flow.rows.next_state])
    first = scale * _spread(flow, v - start @ v)
    lasting = np.full(flow.rows.n_states, gamma)
    return Occupancy(_spread(flow, d), float(d @ reward), tail, first, solved, lasting)


def _horizon(flow: Flow) -> Occupancy:
    horizon = flow.problem.estimand.horizon
    assert horizon is not None
    chain, reward, start = flow.chain(), flow.state_reward(), flow.start
    must_fit("the law of the states at every step of the horizon", (horizon, chain.n_states), "Use a discount instead")
    laws = chain.laws(start, horizon)
    source, alive = flow.number[flow.rows.state], np.flatnonzero(flow.rows.next_state >= 0)
    left, entered = source[alive], flow.number[flow.rows.next_state[alive]]
    value_to_go, carried_on = np.zeros(len(flow.states)), np.zeros(len(alive))
    for t in range(horizon - 1, -1, -1):
        carried_on += laws[t][left] * value_to_go[entered]
        value_to_go = reward + chain.transition @ value_to_go
    carried, visits = np.zeros(flow.rows.n_groups), laws.sum(axis=0)
    carried[alive] = carried_on
    tail = np.divide(carried, visits[source], out=np.zeros_like(carried), where=visits[source] > 0)
    d = visits / horizon
    first = _spread(flow, value_to_go - start @ value_to_go) / horizon
    earlier = visits - laws[-1]
    lasting = _spread(flow, np.divide(earlier, visits, out=np.zeros_like(visits), where=visits > 0))
    return Occupancy(_spread(flow, d), float(d @ reward), tail, first, Solved(Outcome.DIRECT, 0.0), lasting)
