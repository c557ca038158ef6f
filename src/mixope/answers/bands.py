"""Partial identification: what the logs say if nothing is assumed of what they never saw.

An estimate renormalises the target over the actions that were logged in a state, which assumes that the others are
about as good. The outer band drops that: wherever the target would take an action never logged there, or follow a
row that leads out of the part of the logs in which it can be followed, it earns the least (the most) that was ever
logged, or a range that is given, and goes on in the worst (the best) state of that part. Where episodes end, the
unknown step may end them too. The equations are in :mod:`mixope.solvers.bounds`.

That is the honest answer and often a wide one: where some state is hardly covered, the worst that can happen is to be
sent there for good. ``continuation="alike"`` assumes that an unknown step leads where the logged actions of its state
lead, and leaves only its reward open; the band is then about the uncovered mass times the range of rewards.

The band is about coverage only: it takes the counts as they are, so the interval comes on top of it. It assumes that
an unknown step leads back to a state that the target can be followed from; states that no log has seen are beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, sum_by
from mixope.base.errors import UnknownName, UsageError
from mixope.base.estimand import Estimand
from mixope.estimators.counts.flow import Flow, with_restart
from mixope.estimators.counts.occupancy import pooled
from mixope.requests.problem import Problem
from mixope.session.questions import resolve_policy
from mixope.session.session import Counted
from mixope.solvers.bounds import Leaky, Side, average_bound, discounted_bound, horizon_bound

Continuation = Literal["worst", "alike"]
NEGLIGIBLE = 1e-12
"""Unknown mass below this is rounding: everything is covered and the band is a point."""


@dataclass(frozen=True)
class Band:
    """The lowest and the highest value that the logs allow, and the share of the target's steps between them."""

    low: float
    high: float
    uncovered_mass: float

    @property
    def finite(self) -> bool:
        """The total of an episode has no bound where unknown steps could follow each other for ever."""
        return bool(np.isfinite([self.low, self.high]).all())

    def __str__(self) -> str:
        return f"{self.low:.6g} to {self.high:.6g} ({self.uncovered_mass:.2%} of the target's steps are not covered)"


def outer_band(
    counted: Counted,
    target: Any,
    *,
    estimand: Estimand | None = None,
    reward_range: tuple[float, float] | None = None,
    continuation: Continuation = "worst",
) -> Band:
    """The outer band of a target on counted logs; ``reward_range`` defaults to the lowest and highest logged reward."""
    problem = Problem.of_logged(counted.transitions, resolve_policy(target, counted.logs), estimand or Estimand())
    return problem_band(problem, reward_range, continuation)


def problem_band(
    problem: Problem, reward_range: tuple[float, float] | None = None, continuation: Continuation = "worst"
) -> Band:
    """The outer band of an encoded question."""
    if continuation not in get_args(Continuation):
        raise UnknownName("continuation", continuation, get_args(Continuation))
    low, high = _range(problem, reward_range)
    flow, occupancy = pooled(problem)
    chain = known_part(flow)
    law = occupancy.law[flow.states]
    mass = float(law @ chain.unknown) / float(law.sum())
    if float(chain.unknown.max(initial=0.0)) <= NEGLIGIBLE:
        return Band(occupancy.value, occupancy.value, 0.0)
    if continuation == "alike":
        return Band(float(law @ chain.earned(low)), float(law @ chain.earned(high)), mass)
    return Band(_bound(flow, chain, low, "low"), _bound(flow, chain, high, "high"), mass)


def known_part(flow: Flow) -> Leaky:
    """P and r of the kept rows, the target not renormalised, on the kept states."""
    whole, rows, n = flow.whole.transitions, flow.rows, len(flow.states)
    pair = whole.pair[flow.groups]
    share = flow.whole.pair_target[pair] / sum_by(whole.pair, whole.rows)[pair]
    share = np.where((flow.frontier > 0) | flow.lost, 0.0, share)
    alive = rows.next_state >= 0
    source = flow.number[rows.state]
    moves = (share * rows.rows)[alive], (source[alive], flow.number[rows.next_state[alive]])
    return Leaky(
        transition=sparse.csr_matrix(moves, shape=(n, n)),
        reward=sum_by(source, share * rows.reward, n),
        unknown=_clean(1.0 - sum_by(source, share * rows.rows, n)),
        may_end=not bool(alive.all()),
    )


def _bound(flow: Flow, chain: Leaky, reward: float, side: Side) -> float:
    estimand = flow.problem.estimand
    if estimand.restarts:
        return _average(flow, chain, reward, side)
    if estimand.sums:
        return estimand.scale * _from_start(flow, discounted_bound(chain, reward, estimand.discount, side))
    assert estimand.horizon is not None
    return _from_start(flow, horizon_bound(chain, reward, estimand.horizon, side)) / estimand.horizon


def _from_start(flow: Flow, bound: FloatArray) -> float:
    """The mean of a bound over the start law; where no episode starts it may be infinite."""
    begun = flow.start > 0
    return float(flow.start[begun] @ bound[begun])


def _average(flow: Flow, chain: Leaky, reward: float, side: Side) -> float:
    """With a further state, in no time, for episodes that end and start again."""
    if not flow.restarts:
        return average_bound(chain, reward, side)
    ends = _clean(1.0 - chain.unknown - np.asarray(chain.transition.sum(axis=1)).ravel())
    restarting = Leaky(
        with_restart(chain.transition, ends, flow.start),
        np.append(chain.reward, 0.0),
        np.append(chain.unknown, 0.0),
    )
    return average_bound(restarting, reward, side, np.append(np.ones(len(chain.reward)), 0.0))


def _clean(mass: FloatArray) -> FloatArray:
    return np.where(mass > NEGLIGIBLE, mass, 0.0)


def _range(problem: Problem, given: tuple[float, float] | None) -> tuple[float, float]:
    rows = problem.transitions
    low, high = given or (float(rows.lowest.min()), float(rows.highest.max()))
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise UsageError(f"reward_range takes the lowest and the highest possible reward, got {given}")
    return low, high
