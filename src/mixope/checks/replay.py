"""Does the model replay the logs?

    replay                   the path of rewards by step (early, middle, late), as the counts of all rows predict it for
                             those who wrote the logs, beside what was seen
    replay, by logger        the rows of each logger, predicted from those of all
    replay, later steps      the later steps, predicted from the rows of the earlier ones
    replay, later episodes   the later half of every logger's episodes, predicted from the earlier half

A path that is not replayed tells of a state that leaves something out, of a world that drifts, of rows that were
dropped for what came of them (:mod:`mixope.requests.replay`). It is judged by its size. With t the quantile that a
healthy log passes once in :data:`ALARMS`⁻¹ times, whichever of the m means is the farthest off,

    value = max over means of  (|seen − predicted| − t · error)₊ / max(half-width of the interval, 1.96 · error)

is by how many half-widths the level is off beyond chance: in very many rows a deviation may be sure and not matter. An
interval may have hardly any width, where a target ends in a state that is certain; then the deviation has its own.
Totals of an episode are off by as much at every one of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from mixope.base.arrays import BoolArray, IntArray
from mixope.checks.check import REPLAYED, Check
from mixope.checks.evidence import Evidence
from mixope.checks.steadiness import late_half
from mixope.checks.verdicts import Diagnostic
from mixope.requests.episodes import EpisodeSums
from mixope.requests.replay import MOST_LOGGERS, MOST_ROWS, Laid, Replay, Replays, lay, replay, replay_by_logger
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import Transitions

ALARMS = 2e-3
"""How often chance alone makes one of the means of a check so far off."""
WARN, FAIL = 0.1, 10.0
"""Half-widths of the interval; see the table in docs/trust.md."""
LEAST = 12
"""Episodes below which the spread between them is not known."""
COVERED = 0.5
"""The share of the rows that must have others of their state and action to be predicted from."""
LEVEL_95 = 1.96
OF_RANGE = 0.01
"""Where there is no interval: the share of the range of rewards that stands in for its half-width."""
ROUNDING = 1e-9
"""Of the rewards: deviations below it are what floats leave."""


@dataclass(frozen=True)
class Worst:
    """The mean that is the farthest off beyond chance: which, what was seen, by how much it is off, and how surely."""

    number: int
    seen: float
    predicted: float
    deviates: float
    error: float
    beyond: float
    """How far it is off beyond chance, per step."""


def replay_logs(transitions: Transitions, sums: EpisodeSums) -> Replays | None:
    """The logs replayed, from rows in their order; None of too few episodes.

    Of many rows, some episodes; early and later steps are then compared by sums of all of them, where pairs are
    frequent enough.
    """
    if len(sums.rows) < LEAST:
        return None
    early = sums.early if sums.early is not None and bool((sums.early.covered >= COVERED).all()) else None
    unit = sums.totals.unit
    early = None if early is None else early.by_unit(unit)
    if sums.ordered is None:
        return None if early is None else Replays(early, None, None, None)
    in_turn = np.argsort(sums.totals.logger, kind="stable")  # the same to the last digit, however files were cut
    share = min(1.0, MOST_ROWS / sums.ordered.n_rows)
    kept = np.floor(share * (np.arange(len(in_turn)) + 1)) > np.floor(share * np.arange(len(in_turn)))
    chosen = in_turn[kept if int(kept.sum()) >= LEAST else slice(None)]
    same = len(chosen) == len(in_turn) and bool(np.all(in_turn[1:] > in_turn[:-1]))
    ordered = sums.ordered if same else sums.ordered.take(chosen)
    whose = None if unit is None else np.unique(unit[chosen], return_inverse=True)[1].astype(np.int64)
    return replay_ordered(transitions, ordered, sums.totals.logger[chosen], early, unit=whose)


def replay_ordered(
    transitions: Transitions,
    ordered: OrderedRows,
    logger: IntArray,
    whole: Replay | None = None,
    seed: int = 0,
    unit: IntArray | None = None,
) -> Replays:
    """The same from rows in their order, and that of all steps where it is known.

    ``logger`` and ``unit`` are of every episode.
    """
    rows = lay(transitions, ordered, logger, seed, unit)
    if not len(rows.step):
        return Replays(whole, None, None, None, transitions.loggers)
    everything, half = np.ones(len(rows.step), dtype=np.bool_), (int(rows.step.max()) + 1) // 2
    late, usable = (found[rows.episode] for found in late_half(logger))

    def by_unit(found: Replay | None) -> Replay | None:
        return None if found is None else found.by_unit(unit)

    return Replays(
        by_unit(replay(rows, everything, everything)) if whole is None else whole,
        by_unit(replay_by_logger(rows)) if 1 < rows.n_loggers <= MOST_LOGGERS else None,
        by_unit(_out_of_time(rows, rows.step < half, rows.step >= half)),
        by_unit(_out_of_time(rows, usable & ~late, usable & late)),
        transitions.loggers,
    )


def _out_of_time(rows: Laid, train: BoolArray, test: BoolArray) -> Replay | None:
    """One mean over the rows to be predicted, where most of them can be."""
    enough = all(len(np.unique(rows.episode[part])) >= LEAST for part in (train, test))
    found = replay(rows, train, test, 1) if enough else None
    return found if found is not None and found.covered[0] >= COVERED else None


def model_replays_logs(evidence: Evidence) -> tuple[Diagnostic, ...]:
    """The checks of one estimate, in half-widths of its interval."""
    interval = evidence.interval
    half = None if interval is None else interval.width / 2
    episodes = evidence.survey.episodes
    length = float(episodes.rows.mean()) if evidence.estimand.kind == "episode" else 1.0
    return judge_replays(evidence.replays, half, length, evidence.survey.lowest, evidence.survey.highest)


def judge_replays(
    found: Replays | None, half_width: float | None, length: float, lowest: float, highest: float
) -> tuple[Diagnostic, ...]:
    """Each replay as a check; a mean counts ``length`` times in the value."""
    if found is None:
        return ()
    rounding = ROUNDING * max(abs(lowest), abs(highest))
    half = OF_RANGE * (highest - lowest) if half_width is None else half_width / length
    said = (
        (REPLAY, found.whole, _path),
        (BY_LOGGER, found.by_logger, _by_logger),
        (LATER_STEPS, found.later_steps, _later_steps),
        (LATER_EPISODES, found.later_episodes, _later_episodes),
    )
    checks = []
    for check, one, words in said:
        worst = None if one is None else farthest(one)
        if one is None or worst is None:
            continue
        value = max(worst.beyond - rounding, 0.0) / max(half, LEVEL_95 * worst.error, rounding, 1e-300)
        sentence = words(one, worst, found.loggers)
        checks.append(check.graded(value, WARN, FAIL, sentence + (_cause(check) if value > WARN else "")))
    return tuple(checks)


def farthest(found: Replay) -> Worst | None:
    """The mean that is off the most beyond chance (of those within it, the least likely one); None without any."""
    known = np.flatnonzero((found.size > 0) & (found.covered >= COVERED) & (found.degrees >= 1))
    if not len(known):
        return None
    off, error, degrees = found.off[known], found.error[known], found.degrees[known]
    most = stdtrit(degrees, 1.0 - ALARMS / (2 * len(known)))
    beyond = np.maximum(np.abs(off) - most * error, 0.0)
    sure = (error > 0) & (np.abs(off) > ROUNDING * float(np.abs(found.seen).max()))
    t = np.divide(off, error, out=np.zeros_like(off), where=sure)
    at = int(np.argmax(beyond) if beyond.any() else np.argmin(stdtr(degrees, -np.abs(t))))
    k = int(known[at])
    seen = float(found.seen[k])
    return Worst(k, seen, seen - float(off[at]), float(t[at]), float(error[at]), float(beyond[at]))


def _path(found: Replay, worst: Worst, loggers: tuple[str, ...]) -> str:
    return _beside("the model says", worst, f"at {steps_of(found, worst.number)}")


def _by_logger(found: Replay, worst: Worst, loggers: tuple[str, ...]) -> str:
    return _beside("the rows of all loggers predict", worst, f"for {loggers[worst.number]}")


def _later_steps(found: Replay, worst: Worst, loggers: tuple[str, ...]) -> str:
    who = f"the steps before {int(found.first[0]):,} predict"
    return _beside(who, worst, f"from there to step {int(found.last[0]):,}")


def _later_episodes(found: Replay, worst: Worst, loggers: tuple[str, ...]) -> str:
    return _beside("early episodes predict", worst, "in the late ones")


def _beside(who: str, worst: Worst, where: str) -> str:
    seen = f"the logs show {worst.seen:.3g} ({abs(worst.deviates):.1f} standard errors off)"
    return f"{who} {worst.predicted:.3g} per step {where}, {seen}"


def steps_of(found: Replay, k: int) -> str:
    """The steps of a band, in words."""
    first, last = int(found.first[k]), int(found.last[k])
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def _cause(check: Check) -> str:
    if check is BY_LOGGER:
        return ": a label, a reward or the world differs between them, or what is not in the state does"
    if check is LATER_EPISODES:
        return ": the world changed meanwhile, or who was logged did"
    return ": what comes next does not follow from the recorded state alone, or the world drifts"


IN_THE_STATE = (
    "put what differs into the state (the user's history, the step, the season); ask for a horizon no longer than the"
    " logs"
)
REPLAY = Check("replay", "stationarity", REPLAYED, IN_THE_STATE, model_replays_logs)
BY_LOGGER = Check(
    "replay, by logger",
    "stationarity",
    REPLAYED,
    "evaluate one logger's rows, or put what differs into the state",
)
LATER_STEPS = Check("replay, later steps", "stationarity", REPLAYED, IN_THE_STATE)
LATER_EPISODES = Check(
    "replay, later episodes",
    "stationarity",
    REPLAYED,
    "find the date; evaluate the rows of the world that will be",
)
