"""The target against those who wrote the logs: what each of them earned, and what the target earns more.

Both are estimated from the same episodes, so the scores of the difference are the differences of the scores, and the
interval is the one that the target's own scores would have: by episode, or by blocks of steps of a few long episodes.
What features cannot follow widens it as it widens the target's. Refits know nothing of pairs: where they were asked
for, differences are made from scores all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixope.answers.estimate import Earned
from mixope.base.arrays import FloatArray
from mixope.base.estimand import Estimand
from mixope.estimators import Solution
from mixope.estimators.counts.on_policy import OnPolicyValue
from mixope.uncertainty import (
    Difference,
    IntervalChoice,
    Scores,
    Uncertainty,
    few_clusters,
    judge_scores,
    probability_positive,
    widen,
)

REFERENCE = "a reference line is no estimate of the target"
NO_SCORES = "the estimate of the target has no scores"
ONE_EPISODE = "one episode has no spread between episodes"


@dataclass(frozen=True)
class TargetScores:
    """A target's solution with its scores, ready to be set against what others earned."""

    solution: Solution
    scores: FloatArray | None
    """By episode; None where there are none."""
    by_step: Scores | None
    """By step or piece, where the target's own interval rests on blocks of these."""
    choice: IntervalChoice
    level: float
    estimand: Estimand
    stretch: float = 1.0
    """By how much the target's scores are stretched already, because loggers learned; those of others are alike."""
    unit_degrees: float | None = None
    """Of freedom at the most, where scores are by unit."""

    def against(self, own: OnPolicyValue | str) -> Earned:
        """What somebody earned, and the target less that; or why not."""
        if isinstance(own, str):
            return Earned(because=own)
        pieces = None if self.by_step is None else own.by_piece
        steps = None if pieces is None else self.stretch * pieces
        own = replace(own, scores=self.stretch * own.scores)
        uncertainty = self._judge(own.value, self._own_scores(own, steps), int(own.mine.sum()))
        found = self._difference(own, steps)
        return Earned(
            own.value,
            uncertainty.interval,
            found if isinstance(found, Difference) else None,
            own.method,
            found if isinstance(found, str) else uncertainty.because,
            own.scores,
        )

    def _own_scores(self, own: OnPolicyValue, steps: FloatArray | None) -> Scores:
        """Of its own episodes alone."""
        by_episode = own.scores[own.mine]
        if steps is None or own.pieces is None or self.by_step is None:
            return Scores(by_episode)
        lengths = own.pieces.lengths
        return Scores(by_episode, steps[np.repeat(own.mine, lengths)], lengths[own.mine], self.by_step.steps)

    def _difference(self, own: OnPolicyValue, steps: FloatArray | None) -> Difference | str:
        """The target less somebody, or why that cannot be judged."""
        if self.solution.is_reference:
            return REFERENCE
        if self.scores is None:
            return self.solution.no_interval_because or NO_SCORES
        if steps is None and int(own.mine.sum()) < 2:
            return ONE_EPISODE
        value, n = self.solution.value - own.value, len(self.scores)
        few = np.sqrt(few_clusters(int(own.mine.sum())) / few_clusters(n))  # its own episodes may be few of many
        scores = Scores(self.scores - few * own.scores, degrees=self.solution.degrees)
        if steps is not None and self.by_step is not None and self.by_step.by_step is not None:
            scores = replace(self.by_step, by_episode=scores.by_episode, by_step=self.by_step.by_step - steps)
        uncertainty = widen(self._judge(value, scores, n), value, self.solution.measures.approximation or 0.0, n)
        if uncertainty.interval is None or uncertainty.standard_error is None:
            return uncertainty.because or NO_SCORES
        better = probability_positive(value, uncertainty.standard_error, uncertainty.degrees or n - 1.0)
        return Difference(value, uncertainty.standard_error, uncertainty.interval, better)

    def _judge(self, value: float, scores: Scores, n_episodes: int) -> Uncertainty:
        if self.unit_degrees is not None:
            scores = replace(scores, units=True, at_most=self.unit_degrees)
        return judge_scores(self.choice.without_refits, value, scores, self.level, self.estimand, n_episodes)
