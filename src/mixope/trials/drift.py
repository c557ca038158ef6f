"""Does an arm do the same in the same state all through the test? It does where the state is all that matters.

What the state leaves out builds up or wears off while a unit is watched. So every row has a score, by how much it moves
the long run of its arm, and the scores must not have a trend in the time since entry:

    score = d(s)/n(s) · (y − r(s) + h(s′) − (P h)(s)),        Σ score · (step − mean step of the state)  ≈  0

with d the long-run law of the arm and h its relative values. The sums of buckets of units give the t value. Arms that
drift alike, as with a season that the state does not hold, leave their difference as it is.
"""

from __future__ import annotations

import numpy as np

from mixope.arrays import FloatArray, sum_by
from mixope.diagnostics import Diagnostic
from mixope.trials.chains import chain_of, start_law
from mixope.trials.counts import Counts, t_value

WARN = 2.6
ALIKE = 2.0
"""Below this the arms do not drift apart."""


def drift_check(counts: Counts, treatment: int, control: int) -> Diagnostic:
    """The arm that drifts most; arms that drift alike do no harm."""
    trends = [_trend(counts, arm) for arm in (treatment, control)]
    first, second, apart = (t_value(each) for each in (*trends, trends[0] - trends[1]))
    most, name = max((abs(first), counts.arms[treatment]), (abs(second), counts.arms[control]))
    if most <= WARN:
        said = f"arms do the same in the same states all through the test ({most:.1f} standard errors at most)"
        return Diagnostic("drift", most, WARN, "pass", said)
    said = f"in the same states {name} does not do the same early and late ({most:.1f} standard errors)"
    if first * second > 0 and min(abs(first), abs(second)) > ALIKE and abs(apart) < ALIKE:
        return Diagnostic(
            "drift", abs(apart), WARN, "pass", f"{said}; all arms drift alike, so their difference stands"
        )
    said += ": something that the state does not hold builds up or wears off"
    return Diagnostic("drift", most, WARN, "warn", said)


def _trend(counts: Counts, arm: int) -> FloatArray:
    """By bucket, the scores of an arm times the time since entry, centred in each state."""
    n = counts.n_states
    chain = chain_of(counts, arm, start_law(counts))
    law = chain.long_run()
    worth = chain.excess(law)
    mine = counts.take((counts.arm == arm) & (counts.next_state >= 0))
    rows = sum_by(mine.state, mine.rows, n)
    weight = np.where(rows > 0, law / np.maximum(rows, 1.0), 0.0)
    centre = sum_by(mine.state, mine.steps, n) / np.maximum(rows, 1.0)
    ahead = worth[mine.next_state] - (chain.moves @ worth)[mine.state] - chain.reward[mine.state]
    early_and_late = mine.step_reward + mine.steps * ahead
    score = weight[mine.state] * (early_and_late - centre[mine.state] * (mine.reward + mine.rows * ahead))
    return sum_by(mine.bucket, score, int(counts.bucket.max()) + 1)
