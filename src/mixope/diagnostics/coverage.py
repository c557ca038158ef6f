"""How far could the actions that were never logged move the value?

The outer band (:mod:`mixope.bands`) answers for the worst world there could be, and is far wider than any interval as
soon as a little is uncovered. This is the answer for a world like the one that was logged: if the actions never logged
in a state differ from the logged ones as these differ from each other, all of them to the same side, the value moves by

    shift = Σ_s d(s) u(s) · σ,      σ² = Σ_s d(s) Var_a q(s, a) / Σ_s d(s),

u(s) the target's probability of actions never logged in s, q(s, a) the fitted worth of a logged action, its variance
over the logged actions of a state, and the mean over the states with at least two. What matters is the shift relative
to the half-width of the interval, which knows nothing of it.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import sum_by
from mixope.diagnostics.evidence import Evidence
from mixope.diagnostics.verdicts import Diagnostic, graded
from mixope.estimators.flow import Flow
from mixope.estimators.occupancy import Occupancy, pooled
from mixope.problem import Problem

WARN, FAIL = 0.5, 20.0
"""Shares of the half-width; see the table in docs/trust.md."""
ROUNDING, SMALL = 1e-9, 0.005
"""More than the rounding of probabilities, and no more than what the check of the uncovered mass lets pass."""


def coverage_shift(problem: Problem) -> float:
    """The shift of a problem, from its counts."""
    flow, occupancy = pooled(problem)
    law = occupancy.law[flow.states]
    return float(law @ flow.uncovered()) / float(law.sum()) * action_spread(flow, occupancy)


def action_spread(flow: Flow, occupancy: Occupancy) -> float:
    """σ: how much the logged actions of a state differ in worth, where the target goes.

    Where no state has two, nothing is known of it, and the range of the logged rewards stands in.
    """
    rows, n = flow.rows, flow.rows.n_states
    count = sum_by(rows.pair, rows.rows)
    worth = sum_by(rows.pair, rows.reward + rows.rows * occupancy.tail) / count
    actions = sum_by(rows.pair_state, np.ones(rows.n_pairs), n)
    mean = sum_by(rows.pair_state, worth, n) / np.maximum(actions, 1.0)
    off = sum_by(rows.pair_state, (worth - mean[rows.pair_state]) ** 2, n)
    several = actions >= 2
    mass = float(occupancy.law[several].sum())
    if mass <= 0:
        return float(rows.highest.max() - rows.lowest.min())
    return float(np.sqrt(occupancy.law[several] @ (off[several] / (actions[several] - 1)) / mass))


def small_gaps(evidence: Evidence) -> Diagnostic | None:
    """The check where it can say something new: a gap too small for the check of its mass, beside a narrow interval."""
    problem, interval, uncovered = evidence.problem, evidence.interval, evidence.solution.uncovered_mass
    if not isinstance(problem, Problem) or interval is None or evidence.solution.corrects_coverage:
        return None
    if not is_small(uncovered):
        return None
    shift = problem.once(coverage_shift)
    return coverage_bias(0.0 if evidence.is_rounding(shift) else shift, interval.width / 2)


def is_small(uncovered: float) -> bool:
    """Whether the check applies to a gap of this mass."""
    return ROUNDING < uncovered <= SMALL


def coverage_bias(shift: float, half_width: float | None) -> Diagnostic | None:
    """The shift against the half-width of the interval; None without an interval."""
    if half_width is None:
        return None
    share = shift / half_width if half_width > 0 else (0.0 if shift == 0 else float("inf"))
    words = (
        "actions never logged could not move the value: the logged ones are worth the same"
        if shift == 0
        else f"actions never logged could move the value by about {shift:.3g}, {share:.2g} of the interval's half-width"
    )
    return graded("coverage bias", share, WARN, FAIL, words)
