"""How much of the target may lie outside the part of the logs that was solved.

What the target would do counts, not what the loggers did: rows in states that it rightly avoids are no loss.

    leaving     Σ_s d(s) Σ_a π(a|s) · share of the rows of (s, a) that were left out, π over the actions logged in s;
                per step, or per episode where the total of one is asked for
    starting    starts outside the part: their share in μ₀ where an end is final, or where starts lead to several long
                runs; where the process starts again, that share times the ends per step
    elsewhere   for the average, whose long run could be another one: the share of the rows in other closed classes
                of what the target would do, as far as it can come there from a start or from the part; or the share of
                the starts from which it cannot come to the part, if that is larger

    doubtful    for the average, a long run that is believed though the target was seen in a heavier part before: how
                often it would be elsewhere if one row more had left the long run

The mass outside is their sum. A state whose logged actions are not all that the target does might lead anywhere, so no
start before it is lost; what is not logged there is the uncovered mass. Nor is a step lost that leads to a state which
nobody left: how it goes on is guessed, and what hangs on the guess is a check of its own
(:mod:`mixope.estimators.counts.frontier`).
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.estimators.counts.flow import Flow, restarting_edges
from mixope.requests.problem import Problem
from mixope.solvers.components import closed_classes, reached_from

_ROUNDING = 1e-9


def outside_mass(flow: Flow, law: FloatArray) -> float:
    """Of a target that is in the states of the whole problem by ``law``."""
    away = leaving(flow.whole, flow.given, flow.groups[~flow.lost], law)
    if flow.whole.estimand.kind == "episode":
        away *= max(float(law.sum()), 1.0)  # of episodes, not of steps
    if not flow.whole.estimand.restarts:
        return min(max(with_lost_starts(away, flow.whole, flow.states) + flow.doubt, 0.0), 1.0)
    if flow.restarts:
        away += ends_per_step(flow, law) * (1.0 - float(flow.whole.starts[flow.states].sum()))
    return min(max(away + elsewhere(flow) + flow.doubt, 0.0), 1.0)


def with_lost_starts(away: float, problem: Problem, states: IntArray) -> float:
    """Mass that is away, of all that starts: outside ``states`` everything is."""
    astray = 1.0 - float(problem.starts[states].sum())
    return astray + (1.0 - astray) * away


def leaving(problem: Problem, given: FloatArray, groups: IntArray, law: FloatArray) -> float:
    """The share of the target's steps whose logged continuation is not among ``groups``; ``given`` is c of all."""
    rows, kept = problem.transitions, np.zeros(problem.transitions.n_groups, dtype=bool)
    kept[groups] = True
    count = rows.rows * given
    of_pair, lost = sum_by(rows.pair, count), sum_by(rows.pair, count * ~kept)
    share = np.divide(lost, of_pair, out=np.zeros_like(lost), where=of_pair > 0)
    covered = sum_by(rows.pair_state, problem.pair_target * (of_pair > 0), rows.n_states)
    away = sum_by(rows.pair_state, problem.pair_target * share, rows.n_states)
    away = np.divide(away, covered, out=np.zeros_like(away), where=covered > 0)
    return float(np.abs(law) @ away) / max(float(np.abs(law).sum()), 1e-300)


def ends_per_step(flow: Flow, law: FloatArray) -> float:
    """The share of the target's steps that end an episode."""
    rows, ended = flow.rows, flow.rows.next_state < 0
    ends = sum_by(rows.state[ended], flow.ratio[ended], rows.n_states)
    count = flow.state_count
    share = np.divide(ends, count, out=np.zeros_like(ends), where=count > 0)
    return float(law @ share) / max(float(law.sum()), 1e-300)


def elsewhere(flow: Flow) -> float:
    """The rows of other long runs, or the starts that have no way to this one."""
    rows, used = flow.whole.transitions, flow.given > 0
    n = rows.n_states
    source, destination, _ = restarting_edges(flow.whole, used)
    inside = np.zeros(n + 1, dtype=bool)
    inside[flow.states], inside[n] = True, flow.restarts
    mass = sum_by(rows.state, rows.rows * used, n + 1)
    others = (closed_classes(source, destination, n + 1) >= 0) & ~inside
    starts = sum_by(rows.state, rows.starts * used, n)
    if not starts.any():
        return float(mass[others].sum() / mass.sum())
    begin = np.concatenate([np.flatnonzero(starts), np.flatnonzero(inside)])
    others &= reached_from(begin, source, destination, n + 1)
    goal = np.flatnonzero(inside | _open(flow.whole, used))
    lost = ~reached_from(goal, destination, source, n + 1)[:n]
    return max(float(mass[others].sum() / mass.sum()), float(starts[lost].sum() / starts.sum()))


def _open(problem: Problem, used: BoolArray) -> BoolArray:
    """States with rows in which the target does something that was not logged there; the restart is none."""
    rows = problem.transitions
    seen = sum_by(rows.pair, rows.rows * used) > 0
    covered = sum_by(rows.pair_state, problem.pair_target * seen, rows.n_states)
    visited = sum_by(rows.state, rows.rows * used, rows.n_states) > 0
    return np.append(visited & (covered < 1.0 - _ROUNDING), False)
