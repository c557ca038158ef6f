"""How much of a value comes from later steps than were logged, and what they are taken to earn.

With μ_t = μ₀ (γP)ᵗ the mass of the target that is at step t, and r_π the reward of a step,

    m_t = Σ_s μ_t(s),   e_t = μ_t · r_π,        beyond H:  Σ_{t≥H} m_t / Σ_t m_t,  Σ_{t≥H} e_t.

The average restarts at an end: m_t is then the chance that an episode lasts so long, and where none ends, all of it
lies beyond any H. Nobody saw these steps: a chain goes on as it did, and a state that leaves something out may not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray
from mixope.base.estimand import Estimand
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy, pooled
from mixope.requests.problem import Problem

MOST_STEPS, LEAST_STEPS, TIMES = 2_000, 64, 4
"""Steps that are followed: so many times the mean length of the logged episodes."""
WORK = 50_000_000
"""Entries of P times steps."""
NOTHING = 1e-3
"""Of all mass: what is left when no more is followed."""
LATE = 0.75
"""From which share of the logged steps on these are the last ones."""


@dataclass(frozen=True)
class Beyond:
    """What lies beyond the logged steps: its share of all mass, and how far it moves the value.

    ``shift`` is the value less what it would be if later steps earned like the last logged ones; None where that is
    not known.
    """

    steps: int
    share: float
    shift: float | None = None


@dataclass(frozen=True)
class StepPath:
    """m_t and e_t of the first steps, and Σ m, Σ e of all; ``scale`` makes a value of the latter."""

    mass: FloatArray
    earned: FloatArray
    total_mass: float
    total_earned: float
    scale: float
    rate: float
    """What a step earns in the long run, where mass never ends."""

    def beyond(self, steps: int) -> Beyond | None:
        """From a number of steps on; None where so many were not followed."""
        endless = not np.isfinite(self.total_mass)
        if steps < 2 or (steps > len(self.mass) and (endless or self._left > NOTHING * self.total_mass)):
            return None
        if steps >= len(self.mass) and not endless:
            return Beyond(steps, max(self._left, 0.0) / self.total_mass, 0.0)
        late = slice(min(int(LATE * steps), steps - 1), steps)
        size = float(self.mass[late].sum())
        last = float(self.earned[late].sum()) / size if size > 0 else 0.0
        if endless:
            return Beyond(steps, 1.0, self.rate - last)
        mass = max(self.total_mass - float(self.mass[:steps].sum()), 0.0)
        earned = self.total_earned - float(self.earned[:steps].sum())
        return Beyond(steps, mass / self.total_mass, self.scale * (earned - mass * last))

    @property
    def _left(self) -> float:
        return self.total_mass - float(self.mass.sum())


def step_path(problem: Problem) -> StepPath | None:
    """m_t and e_t under the counted mixture; None where no first step is known."""
    flow, occupancy = problem.once(pooled)
    estimand = flow.problem.estimand
    if not flow.whole.knows_starts or flow.whole.starts[flow.states].sum() <= 0:
        return None
    steps, reward = _moves(flow), flow.state_reward()
    total, earned, scale = _totals(flow, occupancy)
    gamma = estimand.discount
    backwards = (gamma * steps).T.tocsr()
    law, mass, gained, left = flow.start, [], [], total
    for _ in range(_followed(flow, steps.nnz)):
        mass.append(float(law.sum()))
        gained.append(float(law @ reward))
        left -= mass[-1]
        if np.isfinite(total) and left <= NOTHING * total:
            break
        law = backwards @ law
    return StepPath(np.array(mass), np.array(gained), total, earned, scale, occupancy.value)


def _followed(flow: Flow, entries: int) -> int:
    logged, horizon = flow.whole.transitions, flow.problem.estimand.horizon
    length = float(logged.rows.sum()) / max(float(logged.starts.sum()), 1.0)
    most = min(MOST_STEPS, max(LEAST_STEPS, int(TIMES * length)), max(WORK // max(entries, 1), 2))
    return most if horizon is None else min(most, horizon)


def _moves(flow: Flow) -> sparse.csr_matrix:
    """P on the kept states, without what happens after an end."""
    rows, n = flow.rows, len(flow.states)
    alive = rows.next_state >= 0
    share = (flow.ratio / flow.state_count[rows.state])[alive]
    places = flow.number[rows.state[alive]], flow.number[rows.next_state[alive]]
    return sparse.csr_matrix((share, places), shape=(n, n))


def _totals(flow: Flow, occupancy: Occupancy) -> tuple[float, float, float]:
    """Σ m, Σ e, and the factor from the latter to the value."""
    estimand, law = flow.problem.estimand, float(occupancy.law.sum())
    if estimand.restarts:
        ended = flow.rows.next_state < 0
        share = flow.ratio / flow.state_count[flow.rows.state]
        ends = float((occupancy.law[flow.rows.state] * share)[ended].sum())
        return (np.inf, np.inf, 1.0) if ends <= 0 else (law / ends, occupancy.value * law / ends, ends / law)
    scale = 1.0 / estimand.horizon if estimand.horizon is not None else estimand.scale
    return law / scale, occupancy.value / scale, scale


def without_ends(estimand: Estimand, steps: int) -> Beyond | None:
    """Where no episode ends, the share follows from the estimand alone; of a total there is none."""
    if estimand.kind == "average":
        return Beyond(steps, 1.0)
    if estimand.kind == "discounted":
        return Beyond(steps, estimand.discount**steps)
    if estimand.horizon is not None:
        return Beyond(steps, max(1.0 - steps / estimand.horizon, 0.0))
    return None
