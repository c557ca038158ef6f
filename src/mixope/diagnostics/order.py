"""Do rewards stand in the row that earned them?

A recorder that writes the reward of a step into the next row moves the value, and no sum over rows sees it. But the
reward is then better explained by the transition before it than by its own (:mod:`mixope.statistics.shifts`): Σ D over
episodes, in standard deviations, is far above zero. Where all rewards are alike, or the transition tells nothing about
them, nothing can be said, and nothing is.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray
from mixope.diagnostics.steadiness import LEAST, normal_of_t
from mixope.diagnostics.verdicts import Diagnostic, graded
from mixope.statistics.shifts import RewardShifts

WARN, FAIL = 4.0, 10.0
"""Standard deviations; see the table in docs/trust.md."""


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
    return graded("rewards in step", z, WARN, FAIL, words)


def excess(by_episode: FloatArray) -> float | None:
    """The mean over episodes in standard deviations; None where they are too few, or all alike at zero."""
    n, spread = len(by_episode), float(np.std(by_episode))
    if n < 2 * LEAST or not by_episode.any():
        return None
    mean = float(by_episode.mean())
    return normal_of_t(mean / spread * np.sqrt(n - 1), n - 1) if spread > 0 else float(np.copysign(np.inf, mean))


def _ways(shifts: RewardShifts) -> tuple[tuple[FloatArray, str, str], ...]:
    return ((shifts.late, "of the row before", "late"), (shifts.early, "of the row after", "early"))
