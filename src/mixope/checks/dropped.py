"""Could the rows after which nobody knows what came change the answer?

A row without a next observation, and without an end, is taken to have been cut by the recorder: its reward counts, and
what came next is taken to be what comes next elsewhere. Where the recorder stopped, such a row is like the row before
it, and little is lost. Where episodes ended, it is the very row on which something happened: the purchase, the cure,
the fall. So its reward is compared with that of the last row before it that leads somewhere, episode by episode. Of the
mean jump δ₀ that counts which neither chance nor drift explains: with δ_j the mean jump j rows earlier
and e their standard errors,

    (|δ₀| − t·e₀ − 1.5 · max_j (|δ_j| − t·e_j)₊)₊        t: the 97.5 % point of Student's law

Rewards that rise, fall or follow the season along the episode jump onto such rows as they jump before them. Times the
share of these rows this is how far the mean reward moves with them; half-widths of the interval are its measure.
Episodes of which no row leads anywhere have no row before: theirs are compared with the first rows of the others.
Where states are vectors, what needs a next state is made of the other rows: whatever they earn, such episodes are a
selection, and their share of all episodes counts as the share of rows does. Where states are counted, the rows count,
and only those that do not say what was done or earned are gone.
"""

from __future__ import annotations

from scipy import special

from mixope.base.errors import Advice, Setting
from mixope.checks.check import DAMAGED, Check
from mixope.checks.evidence import Evidence
from mixope.checks.verdicts import Diagnostic
from mixope.logs import Jumps
from mixope.session.survey import Dropped

SHARE = 0.2, 0.5
"""Where the share of rows that is gone, or of whole episodes, warns, and where it fails."""
SHIFT = 1.0, 3.0
"""The same for what they would move, in half-widths."""
ENDS = 0.5, 2.0
"""The same for ends that seem more frequent than they are."""
SEVERITY = ("pass", "warn", "fail")
DRIFT = 1.5
"""A jump is explained by one so much smaller among those before it: drift may grow, and seasons turn."""
OF_RANGE = 0.01
"""Where there is no interval: the share of the range of rewards that stands in for its half-width."""
MANY = 100
ROUNDING = 1e-9
"""Sums of rewards are not exact; no half-width is smaller than this share of the rewards."""


def dropped_rows(evidence: Evidence) -> Diagnostic | None:
    """The check of one estimate; None where each row leads somewhere."""
    survey, interval = evidence.survey, evidence.interval
    if survey.dropped is None:
        return None
    half = None if interval is None else interval.width / 2
    per_episode = evidence.problem is not None and evidence.problem.estimand.kind == "episode"
    counted = survey.logs.schema.discrete and not evidence.on_features
    judged = judge_dropped(
        survey.dropped, survey.lowest, survey.highest, half, per_episode=per_episode, counted=counted
    )
    ends = _ends_beside_cuts(evidence)
    return judged if ends is None else max(judged, ends, key=lambda one: SEVERITY.index(one.status))


def _ends_beside_cuts(evidence: Evidence) -> Diagnostic | None:
    """How far the value may be off on vectors, where of the rows at a cut those that ended are taken alone.

    U of N rows lead nowhere; then E ends seem to be E of N − U rows. Of a process that ends with a chance h per step a
    total discounted by γ is off by the share  γ h (U/N) / (1 − γ (1 − h)),  which is U/N without a discount.
    """
    totals, solution, interval = evidence.survey.episodes, evidence.solution, evidence.interval
    estimand = evidence.estimand
    weighed = evidence.on_features and solution.weights is not None
    if not weighed or interval is None or estimand.restarts or not totals.ended.any():
        return None
    rows, gamma = float(totals.rows.sum()), estimand.discount
    lost, h = float(totals.unfollowed.sum()) / rows, float(totals.ended.sum()) / rows
    off = abs(solution.value) * gamma * h * lost / (1.0 - gamma * (1.0 - h))
    reach = off / max(interval.width / 2, ROUNDING * abs(solution.value), 1e-300)
    words = (
        "where the recorder stopped, only rows that ended their episode say what came next: ends seem"
        f" {lost:.1%} more frequent than they are, which may move the value by {off:.2g}, {reach:.2g} half-widths of"
        " the interval; log next observations"
    )
    return DROPPED.graded(reach, *ENDS, words) if lost else None


def judge_dropped(
    dropped: Dropped,
    lowest: float,
    highest: float,
    half_width: float | None = None,
    *,
    per_episode: bool = False,
    counted: bool = False,
) -> Diagnostic:
    """The worst of the shares and the shift; without a half-width, the range of rewards is the measure.

    The shift is that of the mean over rows; of the mean over episodes where what is estimated is per episode. Where
    states are ``counted``, the share is that of the rows that say nothing.
    """
    jump = unexplained(dropped.jumps)
    shift = jump * dropped.rows / max(dropped.episodes if per_episode else dropped.of, 1)
    given = OF_RANGE * (highest - lowest) if half_width is None else half_width
    reach = shift / max(given, ROUNDING * max(abs(lowest), abs(highest)), 1e-300)
    unit = "reward per episode" if per_episode else "reward per step"
    moved = f"would move the {unit} by {shift:.2g}, {_in_words(reach, half_width)}"
    words = f"{_gone(dropped)}; {_beside(jump, moved, known=dropped.mean is not None)}"
    found = [
        DROPPED.graded(reach, *SHIFT, words),
        DROPPED.graded(dropped.gone / dropped.of if counted else dropped.share, *SHARE, words),
        DROPPED.graded(0.0 if counted else dropped.share_lost, *SHARE, words),
    ]
    return max(found, key=lambda one: SEVERITY.index(one.status))


def unexplained(jumps: Jumps) -> float:
    """What such a row earns more, or less, on average than chance and drift explain."""
    usual = max((_sure(numbers.mean, numbers.error, numbers.count) for numbers in jumps.usual), default=0.0)
    onto = max(_sure(jumps.onto.mean, jumps.onto.error, jumps.onto.count) - DRIFT * usual, 0.0)
    alone, first = jumps.alone, jumps.first
    other = _sure(alone.mean - first.mean, (alone.error**2 + first.error**2) ** 0.5, min(alone.count, first.count))
    weights = jumps.onto.count, alone.count
    return (weights[0] * onto + weights[1] * other) / max(sum(weights), 1)


def _sure(mean: float, error: float, count: int) -> float:
    """How far a mean is from 0 beyond chance."""
    return max(abs(mean) - float(special.stdtrit(count - 1, 0.975)) * error, 0.0) if count > 1 else 0.0


def _gone(dropped: Dropped) -> str:
    lost = dropped.jumps.lost
    altogether = f", among them all rows of {lost:,} of {dropped.episodes:,} episodes" if lost else ""
    return f"{dropped.rows:,} of {dropped.of:,} rows ({dropped.share:.2%}) have no next observation{altogether}"


def _beside(jump: float, moved: str, *, known: bool) -> str:
    if not known:
        return "what they earned is not known"
    if jump == 0:
        return "their rewards match what the preceding rows predict"
    return f"on average their rewards differ by {jump:.2g} from what the preceding rows predict, which {moved}"


def _in_words(reach: float, half_width: float | None) -> str:
    if half_width is None:
        return f"{reach:.2g}% of the range of rewards"
    return f"{reach:.2g} half-widths of the interval" if reach < MANY else f"over {MANY} half-widths of the interval"


DROPPED = Check(
    "dropped rows",
    "data",
    DAMAGED,
    Advice("mark ends (terminated, truncated, ", Setting("ends"), "), log the next observation"),
    dropped_rows,
)
