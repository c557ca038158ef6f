"""Does the target end up in states that nothing leaves?

Logs in which an episode goes on after its end, with rows of nothing (padding to one length, a last state that is
written again and again), say that the world is a state in which one stays for ever and earns the same at every step.
The long run is then that state, whoever acts, and its interval has no width. So the share of the target's steps is
taken in states of which all rows lead back to them and earn one and the same; where states are numbers, in rows that
lead exactly where they begin, from where no other row leads away.

Where what is earned there is 0, a discounted value and one of a horizon are what they would be if episodes ended, and
nothing is said.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import BoolArray, sum_by
from mixope.base.errors import Advice, MixopeError, Setting
from mixope.checks.check import FAR, Check
from mixope.checks.evidence import Evidence, Parked
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.counts.occupancy import pooled
from mixope.requests.problem import Problem
from mixope.requests.transitions import Transitions

LEAST_ROWS = 10
"""A state with fewer rows may be left by others."""
SHARE = 0.05
"""Of the target's steps, the share that warns; see docs/trust.md."""


def parked_states(rows: Transitions) -> BoolArray:
    """The states of which every row leads back to them and earns the same; none where that is all there is."""
    n = rows.n_states
    visits = sum_by(rows.state, rows.rows, n)
    seen = visits > 0
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, rows.state, rows.lowest)
    np.maximum.at(highest, rows.state, rows.highest)
    leaves = sum_by(rows.state, rows.rows * (rows.next_state != rows.state), n) > 0
    found = (visits >= LEAST_ROWS) & ~leaves & (lowest == highest)
    return np.zeros(n, dtype=np.bool_) if bool(np.all(found == seen)) else found


def parked_on_counts(problem: Problem) -> Parked | None:
    """The target's share in such states, and what they earn; None where there are none."""
    rows = problem.transitions
    states = parked_states(rows)
    if not states.any():
        return None
    try:
        _, occupancy = pooled(problem)
    except MixopeError:
        return None
    mass, total = occupancy.law * states, float(occupancy.law.sum())
    earned = sum_by(rows.state, rows.reward, rows.n_states) / np.maximum(sum_by(rows.state, rows.rows), 1.0)
    return Parked(float(mass.sum()) / total, float(mass @ np.abs(earned)) / total)


def absorbing_states(evidence: Evidence) -> Diagnostic | None:
    """The check; None where the target goes to no such state, or where nothing hangs on it."""
    measures, parked = evidence.measures, evidence.readings.parked
    if measures.parked_share is not None:
        parked = Parked(measures.parked_share, measures.parked_reward or 0.0)
    if parked is None or (not evidence.estimand.restarts and parked.earned == 0.0):
        return None
    much = parked.share > SHARE
    words = f"{parked.share:.1%} of the target's steps are in states that no row leaves and that always earn the same"
    return ABSORBING.diagnostic(parked.share, SHARE, "warn" if much else "pass", words)


ABSORBING = Check(
    "absorbing states",
    "data",
    FAR,
    Advice(
        "mark the row that leads there as terminated (",
        Setting("columns", {"terminated": ...}),
        "), or drop the padding; if nothing really happens there, ask for a discounted value: ",
        Setting("estimand", "discounted"),
    ),
    absorbing_states,
)
