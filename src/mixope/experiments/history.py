"""Does a unit's past add to its state? If it does, the state is not all that the future depends on.

On one half of the units the next state and the metric are predicted from the state, and from the state together with
the one before it; on the other half the two are compared, and then the halves change places. Where the state is enough,
more history fits noise and loses. Each bucket of units gives one gain, so that a t value says whether it is chance.

Whether it matters is another question: with the period before as part of the state, how far does the long-run
difference move?

Units that differ for ever show in one period back hardly at all, and in the mean of all their earlier states plainly
(:mod:`mixope.experiments.pace`). Where these tell the next state, the chain of all units is nobody's, and no finite
history stands in for it: that is a warning. Where they tell the metric alone, which no state depends on, arms differ by
what they did before.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import BoolArray, FloatArray, IntArray, sum_by
from mixope.base.errors import Advice, Setting
from mixope.checks import Check, Diagnostic
from mixope.checks.check import EXPERIMENT
from mixope.experiments.chains import chain_of
from mixope.experiments.counts import SUMS, Counts, Histories, jackknife_error, t_value
from mixope.experiments.pace import Pace

PRIOR = 10.0
"""Rows that the prediction without history is worth where history is short."""
SIGNIFICANT = 3.0
GROUPS = 16
"""Buckets are taken together for what takes long to solve."""
MOST_STATES = 1_500
"""With more states and histories than this the long run is not solved again."""
LEAST_SHARE = 0.0005
"""What the whole past must explain of the next state, beyond the state, to matter."""
HISTORY = Check(
    "history",
    "stationarity",
    EXPERIMENT,
    Advice(
        "add ",
        Setting("lags", 1),
        ", or the column that holds the history; of units that differ for ever, a column with what each was like before"
        " the test",
    ),
)


def history_check(
    histories: Histories, treatment: int, control: int, half_width: float, pace: Pace | None = None
) -> Diagnostic:
    """Whether history adds to the state, and whether the answer would move with it."""
    found = _of_one_period(histories, treatment, control, half_width)
    if pace is None or found.status != "pass" or pace.next_state <= SIGNIFICANT or pace.share <= LEAST_SHARE:
        return found
    said = (
        f"what units were like all the time before helps to predict their next state (t = {pace.next_state:.1f},"
        f" {pace.share:.1%} of what the state leaves over): they differ for ever, in their pace or in where they"
        " settle, and the chain of all of them may take the long-run difference for too large or too small"
    )
    return HISTORY.diagnostic(pace.next_state, SIGNIFICANT, "warn", said)


def _of_one_period(histories: Histories, treatment: int, control: int, half_width: float) -> Diagnostic:
    next_t, reward_t = _gains(histories)
    most = max(next_t, reward_t)
    what = "the next state" if next_t >= reward_t else "the metric"
    if not most > SIGNIFICANT:
        said = "the state before adds nothing to the state in predicting the next state or the metric of other units"
        return HISTORY.diagnostic(most, SIGNIFICANT, "pass", said)
    move, error = _moved(histories, treatment, control)
    said = f"the state before helps to predict {what} of other units (t = {most:.1f}), so that the state is not all"
    if np.isnan(move):
        return HISTORY.diagnostic(most, SIGNIFICANT, "warn", f"{said}; too many states to see what that does")
    if abs(move) + 2 * error < half_width / 4:
        said += f"; with it in the state the difference moves by {move:+.3g}, which is little against its interval"
        return HISTORY.diagnostic(most, SIGNIFICANT, "pass", said)
    said += f"; with it in the state the difference moves by {move:+.3g} (standard error {error:.2g})"
    return HISTORY.diagnostic(most, SIGNIFICANT, "warn", said)


def _gains(histories: Histories) -> tuple[float, float]:
    """t of the gain in log-likelihood of the next state, and of the gain in squared error of the metric."""
    counts = histories.counts
    fold = counts.bucket % 2
    n_buckets = int(counts.bucket.max()) + 1
    likelihood, error, rows = np.zeros(n_buckets), np.zeros(n_buckets), np.zeros(n_buckets)
    pair = counts.arm * counts.n_states + counts.state
    past = counts.arm * counts.n_states * histories.n_before + histories.past
    for held in (0, 1):
        fit, judged = fold != held, fold == held
        likelihood += _likelihood_gain(counts, pair, past, fit, judged, n_buckets)
        error += _error_gain(counts, pair, past, fit, judged, n_buckets)
        rows += sum_by(counts.bucket[judged], counts.rows[judged], n_buckets)
    used = rows > 0
    return t_value(likelihood[used] / rows[used]), t_value(error[used] / rows[used])


def _likelihood_gain(
    counts: Counts, pair: IntArray, past: IntArray, fit: BoolArray, judged: BoolArray, n: int
) -> FloatArray:
    moving = counts.next_state >= 0
    step, rows = counts.next_state + 1, counts.rows
    plain = _share(_joined(pair, step), pair, rows, fit & moving, None)
    with_past = _share(_joined(past, step), past, rows, fit & moving, plain)
    used = judged & moving & (plain > 0)
    gain = rows[used] * np.log(with_past[used] / plain[used])
    return sum_by(counts.bucket[used], gain, n)


def _share(joint: IntArray, given: IntArray, rows: FloatArray, fit: BoolArray, prior: FloatArray | None) -> FloatArray:
    """P(next | given) as fitted on some groups, for every group; shrunk to a prior where there is one."""
    top = sum_by(joint[fit], rows[fit], int(joint.max()) + 1)[joint]
    bottom = sum_by(given[fit], rows[fit], int(given.max()) + 1)[given]
    if prior is None:
        return np.where(bottom > 0, top / np.maximum(bottom, 1.0), 0.0)
    return (top + PRIOR * prior) / (bottom + PRIOR)


def _error_gain(
    counts: Counts, pair: IntArray, past: IntArray, fit: BoolArray, judged: BoolArray, n: int
) -> FloatArray:
    """Σ (y − m₀)² − (y − m₁)² by bucket: the squares of y cancel."""
    rows, reward = counts.rows, counts.reward
    plain = _mean(pair, rows, reward, fit, None)
    with_past = _mean(past, rows, reward, fit, plain)
    gain = 2 * reward * (with_past - plain) + rows * (plain**2 - with_past**2)
    used = judged & np.isfinite(plain)
    return sum_by(counts.bucket[used], gain[used], n)


def _mean(
    given: IntArray, rows: FloatArray, reward: FloatArray, fit: BoolArray, prior: FloatArray | None
) -> FloatArray:
    size = int(given.max()) + 1
    n, total = sum_by(given[fit], rows[fit], size)[given], sum_by(given[fit], reward[fit], size)[given]
    if prior is None:
        return np.where(n > 0, total / np.maximum(n, 1.0), np.nan)
    return (total + PRIOR * prior) / (n + PRIOR)


def _joined(left: IntArray, right: IntArray) -> IntArray:
    numbers: IntArray = np.unique(left * (int(right.max()) + 1) + right, return_inverse=True)[1].ravel()
    return numbers


def _moved(histories: Histories, treatment: int, control: int) -> tuple[float, float]:
    """How far the long-run difference moves with the state before beside the state, with its standard error."""
    longer = with_history(histories)
    if longer.n_states > MOST_STATES:
        return float("nan"), float("nan")

    def move(both: tuple[Counts, Counts]) -> float:
        plain, deep = (_difference(each, treatment, control) for each in both)
        return deep - plain

    plain = histories.merged()
    groups = np.unique(plain.bucket % GROUPS)
    chosen = ((plain.take(plain.bucket % GROUPS != g), longer.take(longer.bucket % GROUPS != g)) for g in groups)
    others = np.array([move(each) for each in chosen])
    return move((plain, longer)), float(jackknife_error(others))


def _difference(counts: Counts, treatment: int, control: int) -> float:
    values = [(chain := chain_of(counts, arm)).long_run() @ chain.reward for arm in (treatment, control)]
    return float(values[0] - values[1])


def with_history(histories: Histories) -> Counts:
    """The same rows with (before, state) as the state."""
    fine, after = histories.counts, histories.next_past
    codes, numbers = np.unique(np.concatenate([histories.past, after[after >= 0]]), return_inverse=True)
    numbers = numbers.ravel()
    state, later = numbers[: len(after)], np.full(len(after), -1, dtype=np.int64)
    later[after >= 0] = numbers[len(after) :]
    names = tuple((str(code // fine.n_states), *fine.states[code % fine.n_states]) for code in codes.tolist())
    sums = (getattr(fine, name) for name in SUMS)
    return Counts(fine.arms, ("before", *fine.columns), names, fine.bucket, fine.arm, state, later, *sums)
