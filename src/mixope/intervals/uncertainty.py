"""From a choice and the scores of an estimate to its interval, or to the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import FloatArray, IntArray
from mixope.estimand import Estimand
from mixope.intervals.blocks import SHORTEST, block_length, block_scores
from mixope.intervals.choice import BLOCKS, IntervalChoice
from mixope.intervals.clustered import Interval, few_episodes, quantile, standard_error
from mixope.intervals.registry import SCORE_INTERVALS

NOT_FINITE = "the scores of this estimate are not finite"
ONE_EPISODE = "an interval needs at least two episodes, these logs have one"
WHOLE_EPISODES = "it weighs whole episodes, which cannot be cut into blocks; choose t, normal or likelihood"
NO_BLOCKS = (
    "blocks are for the long-run average: of a discounted value or a horizon the start law is part, and blocks of steps"
    " do not know how few starts there were; choose t, normal or likelihood"
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


@dataclass(frozen=True)
class Uncertainty:
    """An interval and its standard error, or why there is none, and what should be known of it."""

    interval: Interval | None = None
    standard_error: float | None = None
    because: str | None = None
    alerts: tuple[str, ...] = ()
    n_blocks: int | None = None


def judge_scores(
    choice: IntervalChoice, value: float, scores: Scores, level: float, estimand: Estimand, n_episodes: int
) -> Uncertainty:
    """The chosen interval, with a word where there are few episodes."""
    by_episode, by_step = scores.by_episode, scores.by_step
    if choice.name == BLOCKS and estimand.kind != "average":
        return Uncertainty(because=NO_BLOCKS)
    if by_episode is None or not (np.isfinite(value) and bool(np.all(np.isfinite(by_episode)))):
        return Uncertainty(because=NOT_FINITE)
    if by_step is not None and len(by_step) * scores.steps >= SHORTEST:
        return _from_blocks(value, scores, level, n_episodes)
    if choice.name == BLOCKS:
        short = f"blocks need at least {SHORTEST} steps, these logs have fewer"
        return Uncertainty(because=WHOLE_EPISODES if by_step is None else short)
    if n_episodes < 2:
        return Uncertainty(because=ONE_EPISODE)
    found = SCORE_INTERVALS[choice.name if choice.name in SCORE_INTERVALS else "t"](value, by_episode, level)
    said = few_episodes(n_episodes)
    return Uncertainty(found, standard_error(by_episode), alerts=(said,) if said else ())


def _from_blocks(value: float, scores: Scores, level: float, n_episodes: int) -> Uncertainty:
    assert scores.by_step is not None
    length = block_length(scores.by_step)
    blocks = block_scores(scores.by_step, length, scores.lengths)
    error = standard_error(blocks)
    half = quantile(level, len(blocks) - 1) * error
    steps = length * scores.steps
    found = Interval(value - half, value + half, level, f"batch means, {len(blocks)} blocks of {steps} steps")
    one = f"there {'is 1 episode' if n_episodes == 1 else f'are {n_episodes:,} episodes'}"
    said = (
        f"{one}: the interval rests on {len(blocks)} blocks of {steps} steps taken for independent, not on independent"
        " episodes; it is too narrow if the process remembers longer than a block"
    )
    return Uncertainty(found, error, alerts=(said,), n_blocks=len(blocks))
