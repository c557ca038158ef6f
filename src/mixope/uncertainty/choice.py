"""Which interval is wanted, and the way to it from scores, or the reason why there is none.

auto         t over episodes; blocks of steps where the logs are a few long episodes
t, normal    scores summed by episode, with the t or the normal quantile          (clustered.py)
likelihood   empirical likelihood over episodes                                    (likelihood.py)
sequence     scores summed by episode, for a test that is watched: valid at all times (sequences.py)
blocks       batch means over blocks of steps, for one long episode or a few       (blocks.py)
bca, percentile   refits on resampled episodes                                     (refits.py)

To add one: a file, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, is_whole
from mixope.base.errors import UnknownName, UsageError
from mixope.base.estimand import Estimand
from mixope.uncertainty.blocks import SHORTEST, block_length, block_scores
from mixope.uncertainty.clustered import (
    Interval,
    Law,
    clustered_interval,
    degrees_of_freedom,
    few_episodes,
    quantile,
    standard_error,
)
from mixope.uncertainty.likelihood import likelihood_interval
from mixope.uncertainty.sequences import PLANNED, sequence_interval

FromScores = Callable[[float, FloatArray, float], Interval | None]

SCORE_INTERVALS: dict[str, FromScores] = {
    "t": clustered_interval,
    "normal": partial(clustered_interval, law="normal"),
    "likelihood": likelihood_interval,
    "sequence": sequence_interval,
}
"""Made from the value, the scores of the episodes and the level."""
REFIT_INTERVALS = ("bca", "percentile")
"""Made by refitting on resampled episodes: :func:`mixope.answers.resampling.refitted_uncertainty`."""
AUTO, BLOCKS, SEQUENCE = "auto", "blocks", "sequence"
INTERVALS = (AUTO, *SCORE_INTERVALS, BLOCKS, *REFIT_INTERVALS)
ALIASES = {"clustered": "t", "bootstrap": "bca"}
BLOCKED = ("average", "discounted")
"""The estimands whose scores may be cut into blocks of steps."""
FEW_LONG_EPISODES = 5
"""Fewer episodes than this say too little of the spread between them …"""
LONG_EPISODE = 500
"""… if each has at least so many steps that blocks of them say more (``benchmarks/few_episodes.py``)."""


@dataclass(frozen=True)
class IntervalChoice:
    """An interval by name; ``replicates``, ``jobs`` and ``progress`` matter to refits alone.

    ``planned`` matters to the sequence: the number of episodes at which it is narrowest, said before they are seen.
    """

    name: str = AUTO
    replicates: int = 500
    jobs: int | None = None
    progress: bool | Callable[[int, int], None] | None = field(default=None, compare=False)
    planned: int = PLANNED

    @property
    def anytime(self) -> bool:
        """Whether it holds at all times together."""
        return self.name == SEQUENCE

    @property
    def from_scores(self) -> FromScores:
        """The way to it from scores; that of t for those that have another, where only scores are at hand."""
        if self.anytime:
            return partial(sequence_interval, planned=self.planned)
        return SCORE_INTERVALS.get(self.name, clustered_interval)

    @property
    def refits(self) -> bool:
        """Whether it is made by refitting."""
        return self.name in REFIT_INTERVALS

    @property
    def without_refits(self) -> IntervalChoice:
        """What stands beside it: made from scores, at no cost."""
        return replace(self, name=AUTO) if self.refits else self

    def wants_blocks(self, n_episodes: int, n_rows: int, estimand: Estimand) -> bool:
        """Whether steps are to be cut into blocks.

        A discounted value depends on the start law besides, of which few episodes tell little: the spread of what
        states are worth stands in for that of the starts (:attr:`Scores.start_error`). A horizon and the total of an
        episode are mostly about what comes soon after a start.
        """
        if self.name == AUTO:
            few = n_episodes < FEW_LONG_EPISODES and n_rows >= LONG_EPISODE * n_episodes
            return (few or n_episodes == 1) and estimand.kind in BLOCKED
        return self.name == BLOCKS and estimand.kind in BLOCKED


def choose_interval(
    name: str | IntervalChoice = AUTO,
    replicates: int = 500,
    jobs: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    planned: int | None = None,
) -> IntervalChoice:
    """A choice from what a user says, checked before any work begins."""
    if isinstance(name, IntervalChoice):
        return name
    meant = ALIASES.get(name, name) if isinstance(name, str) else name
    if meant not in INTERVALS:
        raise UnknownName("interval", name, INTERVALS)
    if not is_whole(replicates) or replicates < 2:
        raise UsageError(f"replicates is how many resampled logs are refitted, at least 2, got {replicates!r}")
    if jobs is not None and (not is_whole(jobs) or jobs < 1):
        raise UsageError(f"jobs is a number of processes, at least 1 (None: as many as are worth it), got {jobs!r}")
    return IntervalChoice(meant, int(replicates), None if jobs is None else int(jobs), progress, as_planned(planned))


def as_planned(planned: int | None) -> int:
    """How much data a watched test was planned to bring, or what is taken where nobody says."""
    if planned is not None and (not is_whole(planned) or planned < 1):
        raise UsageError(f"planned is how much data a watched test is to bring, at least 1, got {planned!r}")
    return PLANNED if planned is None else int(planned)


# --- from scores to an interval

NOT_FINITE = "the scores of this estimate are not finite"
ONE_EPISODE = "an interval needs at least two episodes, these logs have one"
ONE_UNIT = "an interval needs at least two units, these logs have one"
UNITS_APART = (
    "blocks of steps are taken for independent, which the steps of one unit are not; choose t, normal or likelihood"
)
WHOLE_EPISODES = "it weighs whole episodes, which cannot be cut into blocks; choose t, normal or likelihood"
FOLDS_OVER_TIME = (
    "it was learned without each of a few folds of episodes, and what such values do as logs grow is not known; choose"
    " t or normal, and look once"
)
BY_FOLD = "it was learned without each of a few folds of episodes, too few for a likelihood; choose t or normal"
NO_BLOCKS = (
    "blocks are for the long-run average and discounted values: of a horizon, or of the total of an episode, the start"
    " law is the greater part, and blocks of steps do not know how few starts there were; choose t, normal or"
    " likelihood"
)


@dataclass(frozen=True)
class Scores:
    """What an estimate's interval is made from.

    ``by_step`` has the steps of all episodes in order, ``lengths`` entries an episode, each of them ``steps`` steps.
    """

    by_episode: FloatArray | None
    by_step: FloatArray | None = None
    lengths: IntArray | None = None
    steps: int = 1
    degrees: float | None = None
    """Of freedom behind the scores, where they are fewer than the episodes."""
    start_error: float = 0.0
    """What blocks do not tell: the standard error of the start law, had starts the spread of the logged states."""
    units: bool = False
    """Whether what is called an episode here is a unit that may have several."""
    at_most: float | None = None
    """Degrees of freedom that units of these sizes have."""


@dataclass(frozen=True)
class Uncertainty:
    """An interval and its standard error, or why there is none, and what should be known of it."""

    interval: Interval | None = None
    standard_error: float | None = None
    because: str | None = None
    alerts: tuple[str, ...] = ()
    n_blocks: int | None = None
    degrees: float | None = None
    """Of freedom of the t law, where it rests on scores."""


def judge_scores(
    choice: IntervalChoice, value: float, scores: Scores, level: float, estimand: Estimand, n_episodes: int
) -> Uncertainty:
    """The chosen interval, with a word where there are few episodes."""
    by_episode, by_step = scores.by_episode, scores.by_step
    if choice.name == BLOCKS and estimand.kind not in BLOCKED:
        return Uncertainty(because=NO_BLOCKS)
    if by_episode is None or not (np.isfinite(value) and bool(np.all(np.isfinite(by_episode)))):
        return Uncertainty(because=NOT_FINITE)
    if by_step is not None and len(by_step) * scores.steps >= SHORTEST:
        return _from_blocks(value, scores, level, n_episodes)
    if choice.name == BLOCKS and scores.units:
        return Uncertainty(because=UNITS_APART)
    if choice.name == BLOCKS:
        short = f"blocks need at least {SHORTEST} steps, these logs have fewer"
        return Uncertainty(because=WHOLE_EPISODES if by_step is None else short)
    if n_episodes < 2:
        return Uncertainty(because=ONE_UNIT if scores.units else ONE_EPISODE)
    said = few_episodes(n_episodes, units=scores.units)
    alerts = (said,) if said else ()
    if scores.degrees is not None:
        return replace(_from_folds(choice, value, by_episode, scores.degrees, level), alerts=alerts)
    way = choice.from_scores
    if scores.at_most is not None and choice.name not in {"likelihood", SEQUENCE}:
        law: Law = "normal" if choice.name == "normal" else "t"
        way = partial(clustered_interval, law=law, at_most=scores.at_most)
    degrees = degrees_of_freedom(by_episode, scores.at_most)
    return Uncertainty(way(value, by_episode, level), standard_error(by_episode), alerts=alerts, degrees=degrees)


def _from_folds(
    choice: IntervalChoice, value: float, by_episode: FloatArray, degrees: float, level: float
) -> Uncertainty:
    """Scores that belong to folds of episodes: their sum of squares is the jackknife's."""
    if choice.name in {"likelihood", SEQUENCE}:
        return Uncertainty(because=FOLDS_OVER_TIME if choice.anytime else BY_FOLD)
    law: Law = "normal" if choice.name == "normal" else "t"
    error = standard_error(by_episode)
    half = quantile(level, degrees, law) * error
    found = Interval(value - half, value + half, level, f"jackknife over folds, {law}")
    return Uncertainty(found, error, degrees=degrees)


def _from_blocks(value: float, scores: Scores, level: float, n_episodes: int) -> Uncertainty:
    assert scores.by_step is not None
    length = block_length(scores.by_step)
    blocks = block_scores(scores.by_step, length, scores.lengths)
    error = float(np.hypot(standard_error(blocks), scores.start_error))
    degrees = max(len(blocks) - 1.0, 1.0)
    half = quantile(level, degrees) * error
    steps = length * scores.steps
    besides = " + start law" if scores.start_error else ""
    found = Interval(value - half, value + half, level, f"batch means, {len(blocks)} blocks of {steps} steps{besides}")
    one = f"there {'is 1 episode' if n_episodes == 1 else f'are {n_episodes:,} episodes'}"
    said = (
        f"{one}: the interval rests on {len(blocks)} blocks of {steps} steps taken for independent, not on independent"
        " episodes; it is too narrow if the process remembers longer than a block"
    )
    return Uncertainty(found, error, alerts=(said,), n_blocks=len(blocks), degrees=degrees)


def widen(uncertainty: Uncertainty, value: float, approximation: float, n_episodes: int) -> Uncertainty:
    """The same uncertainty with an error of approximation besides chance: half² = (q se)² + (q τ)², q the t quantile.

    τ is what the value is thought to be off because features cannot follow ratio and value exactly, judged by what
    changes when there are half as many (:mod:`mixope.estimators.features.scores`). It is not random between episodes,
    so no score sees it, and it can exceed chance by far where the dynamics are deterministic.
    """
    found, error = uncertainty.interval, uncertainty.standard_error
    if found is None or error is None or not (approximation > 0 and np.isfinite(approximation)):
        return uncertainty
    reach = quantile(found.level, max((uncertainty.n_blocks or n_episodes) - 1, 1)) * approximation
    low, high = value - np.hypot(value - found.low, reach), value + np.hypot(found.high - value, reach)
    wider = replace(found, low=float(low), high=float(high), method=f"{found.method} + approximation")
    return replace(uncertainty, interval=wider, standard_error=float(np.hypot(error, approximation)))
