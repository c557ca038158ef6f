"""How far could the actions that were never logged move the value?

The outer band (:mod:`mixope.answers.bands`) answers for the worst world there could be, and is far wider than any
interval as soon as a little is uncovered. This is the answer for a world like the one that was logged: if the actions
never logged in a state differ from the logged ones as these differ from each other, all of them to the same side, the
value moves by

    shift = Σ_s d(s) u(s) · σ,      σ² = Σ_s d(s) Var_a q(s, a) / Σ_s d(s),

u(s) the target's probability of actions never logged in s, q(s, a) the fitted worth of a logged action, its variance
over the logged actions of a state, and the mean over the states with at least two. What matters is the shift relative
to the half-width of the interval, which knows nothing of it.

A larger gap is not refused for its size alone. Actions that were logged once in their state are the nearest to those
that never were: the value without them, less the value with them, times u₀/(u₁ − u₀), u₀ the uncovered mass and u₁
what it is without them, is what a gap like the one there is does to the value. In a world whose rare actions are like
the others it is chance, and well within the interval; where loggers avoid what the target does for a reason, it is
not. All this holds for gaps that chance leaves: at least four fifths of the gap must lie in states with no more than
five rows for each action. What is never done in a state that is often visited is avoided, and stays refused.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import sum_by
from mixope.base.errors import MixopeError
from mixope.behaviours import CountedMixture
from mixope.checks.check import FAR, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.counts.flow import Flow, follow
from mixope.estimators.counts.occupancy import Occupancy, occupy, pooled
from mixope.estimators.solution import Solution
from mixope.requests.problem import Problem

WARN, FAIL = 0.5, 20.0
"""Shares of the half-width; see the table in docs/trust.md."""
ROUNDING, SMALL = 1e-9, 0.005
"""More than the rounding of probabilities, and no more than what the check of the uncovered mass lets pass."""
REFUSED, HARMLESS = 0.10, 0.35
"""The uncovered mass that fails, and that fails though like gaps move the value by less than the half-width."""
THIN_ROWS, THIN_SHARE = 5, 0.8
"""Rows for each action below which a state is thin, and the share of a gap that lies there where chance left it."""
OUTSIDE, LOST = 0.05, 0.5
"""Of the target, outside the part that was solved; where there is more than the first, a gap is never harmless."""
CORRECTED = 0.05, 0.25
"""The limits where a value model on the factors stands in for what was never logged."""
DISTANT = 0.25, 0.75
"""Of what the target would do, the share that is far from all rows."""


def coverage_shift(problem: Problem) -> float:
    """The shift of a problem, from its counts."""
    flow, occupancy = pooled(problem)
    law = occupancy.law[flow.states]
    return float(law @ flow.uncovered()) / float(law.sum()) * action_spread(flow, occupancy)


def lone_shift(problem: Problem) -> float:
    """How far a gap like the one that there is moves the value, from pairs that were logged once; NaN: unknown.

    NaN where the gap is not one that chance leaves, where as good as nothing is logged once, and where the target
    cannot be followed without it.
    """
    rows = problem.transitions
    flow, occupancy = pooled(problem)
    missing = occupancy.law[flow.states] * flow.uncovered()
    thin = sum_by(rows.state, rows.rows, rows.n_states)[flow.states] <= THIN_ROWS * len(rows.actions)
    if float(missing[thin].sum()) < THIN_SHARE * float(missing.sum()):
        return float("nan")
    several = rows.pair_rows > 1
    try:
        without = follow(problem, CountedMixture(), several[rows.pair].astype(np.float64))
        other = occupy(without)
    except MixopeError:
        return float("nan")
    covered = sum_by(rows.pair_state[several], problem.pair_target[several], rows.n_states)
    gap = float(missing.sum()) / float(occupancy.law.sum())
    wider = float(other.law[without.states] @ np.clip(1.0 - covered[without.states], 0.0, 1.0)) / float(other.law.sum())
    if not (other.solved.ok and wider > gap + ROUNDING):
        return float("nan")
    return abs(other.value - occupancy.value) * gap / (wider - gap)


def uncovered_mass(evidence: Evidence) -> Diagnostic | None:
    """The target's probability of actions never logged where it would be; vectors are not counted."""
    if evidence.on_features:
        return None
    mass = evidence.solution.uncovered_mass
    words = f"{mass:.2%} of the target's steps are actions never logged in their state{_besides(evidence)}"
    return UNCOVERED.graded(mass, *gap_limits(evidence), words)


def _besides(evidence: Evidence) -> str:
    """What is known of a gap besides its size."""
    if evidence.solution.corrects_coverage:
        return " (the value model on the factors corrects for it as far as they tell)"
    reach = gap_reach(evidence)
    if reach is None:
        return ""
    return f"; by the actions that were logged once, a gap like this moves the value by {reach:.2g} half-widths"


def mass_outside(evidence: Evidence) -> Diagnostic | None:
    """How much of the target lies outside the part of the logs that was solved; vectors have no parts."""
    if evidence.on_features:
        return None
    mass = evidence.solution.outside_mass
    words = f"{mass:.2%} of the target may lie outside the part of the logs where it is followed"
    return ELSEWHERE.graded(mass, OUTSIDE, LOST, words)


def pairs_far_away(evidence: Evidence) -> Diagnostic | None:
    """A learned value is a guess where nobody went, and all networks may guess alike."""
    share = evidence.measures.far_pairs
    if share is None:
        return None
    words = (
        f"{share:.0%} of what the target would do lies farther from what was logged than 95 % of the logged rows lie"
        " from other episodes"
    )
    return FAR_AWAY.graded(share, *DISTANT, words)


def gap_limits(evidence: Evidence) -> tuple[float, float]:
    """Where the check of the uncovered mass warns, and where it fails."""
    if evidence.solution.corrects_coverage:
        return CORRECTED
    reach = gap_reach(evidence)
    return (SMALL, HARMLESS if reach is not None and reach <= 1.0 else REFUSED)


def gap_reach(evidence: Evidence) -> float | None:
    """The shift by a middling gap in half-widths of the interval; None where it was not asked, or cannot be told."""
    interval, shift = evidence.interval, evidence.readings.lone_shift
    if interval is None or shift is None or not (np.isfinite(shift) and interval.width > 0):
        return None
    return shift / (interval.width / 2)


def is_middling(solution: Solution) -> bool:
    """Whether the gap is large enough to be refused, and may be harmless all the same."""
    inside = solution.outside_mass <= OUTSIDE and not solution.corrects_coverage
    return inside and REFUSED < solution.uncovered_mass <= HARMLESS


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
    interval, shift = evidence.interval, evidence.readings.coverage_shift
    if interval is None or shift is None or evidence.solution.corrects_coverage:
        return None
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
    return BIAS.graded(share, WARN, FAIL, words)


UNCOVERED = Check(
    "uncovered mass",
    "coverage",
    FAR,
    "record the state as several columns, so that others like it can tell; read the outer band; log these actions",
    uncovered_mass,
)
ELSEWHERE = Check(
    "mass outside",
    "coverage",
    FAR,
    "ask for a horizon or a discount",
    mass_outside,
)
FAR_AWAY = Check("pairs far away", "coverage", FAR, "log there; ask about a nearer target", pairs_far_away)
BIAS = Check(
    "coverage bias",
    "coverage",
    FAR,
    "record the state as several columns, so that others like it can tell; log these actions",
    small_gaps,
)
