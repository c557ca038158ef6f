"""Do states, actions and rewards stand in the row that they belong to?

rewards in step      A recorder that writes the reward of a step into the next row moves the value, and no sum over
                     rows sees it. But the reward is then better explained by the transition before it than by its
                     own (:mod:`mixope.requests.shifts`): Σ D over episodes, in standard deviations, is far above
                     zero. Where all rewards are alike, or the transition tells nothing about them, nothing can be
                     said, and nothing is.
rewards of others    Where some episodes only have their rewards a step late, their own rows still explain most, but
                     what these leave follows the row before: on counts Σ E over episodes; on vectors the episodes
                     that the row before explains better by two standard errors, of which chance makes 2.3 %.
states in step       A recorder that writes the state of the step before beside every action keeps rows that hang
                     together. But the action before then tells the next state beyond (s, a), and its reading as
                     stale states tells more than the rows as they stand (:mod:`mixope.requests.stale`). Both are
                     asked for: the first alone may be a state that leaves something out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtrc, chdtrc, ndtr, ndtri

from mixope.base.arrays import FloatArray
from mixope.checks.check import DAMAGED, Check
from mixope.checks.evidence import LogEvidence
from mixope.checks.steadiness import LEAST, normal_of_t
from mixope.checks.verdicts import Diagnostic
from mixope.requests.shifts import RewardShifts, Shifts, reward_echoes, reward_shifts
from mixope.requests.stale import Staleness, stale_states

WARN, FAIL = 4.0, 10.0
SOME_WARN = 3.5
STALE_WARN, STALE_FAIL = 2.5, 10.0
STALE_VECTORS_WARN = 4.0
"""Standard deviations; see the table in docs/trust.md."""
APART = 2.0
"""Standard errors by which the neighbour must explain an episode better than its own rows, on vectors."""


def rewards_in_step(shifts: RewardShifts) -> Diagnostic | None:
    """Whether a neighbouring row explains the rewards better than their own; None where nothing tells them apart."""
    found = [(z, row, when) for by_episode, row, when in _ways(shifts) if (z := excess(by_episode)) is not None]
    if not found:
        return None
    z, row, when = max(found)
    words = (
        f"the transition {row} explains the rewards better than their own, by {z:.1f} standard deviations; they may be"
        f" recorded one step {when}"
        if z > WARN
        else "no neighbouring row explains the rewards better than their own"
    )
    return IN_STEP.graded(z, WARN, FAIL, words)


def rewards_of_others(found: RewardShifts | Shifts) -> Diagnostic | None:
    """Whether the rewards of some episodes stand a step off; None where nothing could tell."""
    if isinstance(found, Shifts):
        ways = [(_of_episodes(found.late), "before", "late"), (_of_episodes(found.early), "after", "early")]
    else:
        ways = [(excess(found.late), "before", "late"), (excess(found.early), "after", "early")]
    known = [(z, row, when) for z, row, when in ways if z is not None]
    if not known:
        return None
    z, row, when = max(known)
    words = (
        f"rewards follow the row {row} beside their own, by {z:.1f} standard deviations; those of some episodes may be"
        f" recorded one step {when}, or the state leaves out what the row {row} shows"
        if z > SOME_WARN
        else "rewards follow their own row alone"
    )
    return OF_OTHERS.graded(z, SOME_WARN, np.inf, words)


def _of_episodes(deviates: FloatArray) -> float | None:
    """How unlikely so many episodes are, in standard deviations; None where too few can be judged."""
    known = deviates[np.isfinite(deviates)]
    if len(known) < 2 * LEAST:
        return None
    tail = float(bdtrc(np.count_nonzero(known > APART) - 1, len(known), ndtr(-APART))) if (known > APART).any() else 1.0
    return _normal(tail)


def _normal(tail: float) -> float:
    return float(-ndtri(min(max(tail, 1e-300), 1.0 - 1e-16)))


def states_in_step(found: Staleness) -> Diagnostic | None:
    """Whether actions were chosen in the states beside them; None where nothing could tell."""
    gain = excess(found.gain)
    if gain is None:
        return None
    warn, z = STALE_VECTORS_WARN, gain
    if found.chi_squared is not None:
        if found.degrees == 0:
            return None
        warn, z = STALE_WARN, min(2.0 * gain, _normal(float(chdtrc(found.degrees, max(found.chi_squared, 0.0)))))
    words = (
        "states of the step before predict actions and next states better, by"
        f" {z:.1f} standard deviations; the column of states may be one step late"
        if z > warn
        else "no sign that the column of states is a step late"
    )
    return STATES.graded(z, warn, STALE_FAIL, words)


def excess(by_episode: FloatArray) -> float | None:
    """The mean over episodes in standard deviations; None where they are too few, or all alike at zero."""
    n, spread = len(by_episode), float(np.std(by_episode))
    if n < 2 * LEAST or not by_episode.any():
        return None
    mean = float(by_episode.mean())
    return normal_of_t(mean / spread * np.sqrt(n - 1), n - 1) if spread > 0 else float(np.copysign(np.inf, mean))


def _ways(shifts: RewardShifts) -> tuple[tuple[FloatArray, str, str], ...]:
    return ((shifts.late, "of the row before", "late"), (shifts.early, "of the row after", "early"))


def _rewards_in_step(logs: LogEvidence) -> Diagnostic | None:
    if logs.sums.shifts is not None:
        return rewards_in_step(logs.sums.shifts.all_rows)
    if logs.cells is None or logs.sums.ordered is None:
        return None
    return rewards_in_step(reward_shifts(logs.sums.ordered, logs.cells))


def _rewards_of_others(logs: LogEvidence) -> Diagnostic | None:
    if logs.sums.shifts is not None:
        return rewards_of_others(logs.sums.shifts)
    if logs.cells is None or logs.sums.ordered is None:
        return None
    return rewards_of_others(reward_echoes(logs.sums.ordered, logs.cells))


def _states_in_step(logs: LogEvidence) -> Diagnostic | None:
    found = logs.sums.staleness
    if logs.transitions is not None and logs.sums.ordered is not None:
        found = stale_states(logs.transitions, logs.sums.ordered)
    return None if found is None else states_in_step(found)


IN_STEP = Check(
    "rewards in step", "data", DAMAGED, "shift the column of rewards within episodes", judge_logs=_rewards_in_step
)
OF_OTHERS = Check(
    "rewards of others",
    "data",
    DAMAGED,
    "find these episodes (a version of the recorder, a device); or put what matters into the state",
    judge_logs=_rewards_of_others,
)
STATES = Check(
    "states in step",
    "data",
    DAMAGED,
    "shift the column of states within episodes, and drop the first row of each",
    judge_logs=_states_in_step,
)
