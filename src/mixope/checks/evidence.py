"""Evidence: all that a check may look at, of one estimate and of the logs behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mixope.base.arrays import BoolArray, FloatArray, IntArray
from mixope.base.estimand import Estimand
from mixope.checks.verdicts import Diagnostic
from mixope.estimators.counts.reach import Beyond, StepPath, without_ends
from mixope.estimators.features.problem import FeatureProblem
from mixope.estimators.solution import Measures, Solution
from mixope.requests.clusters import Clusters
from mixope.requests.episodes import EpisodeSums
from mixope.requests.pasts import Pasts
from mixope.requests.problem import Problem
from mixope.requests.replay import Replays
from mixope.requests.transitions import Transitions, transition_cells
from mixope.requests.vector_pasts import VectorTrace
from mixope.session.survey import Survey
from mixope.uncertainty import Interval, Uncertainty

ROUNDING = 1e-9
"""Differences below this share of the value and the rewards are what floats leave, and say nothing."""


@dataclass(frozen=True)
class Parked:
    """The share of the target's steps in states that nothing leaves, and what these steps earn, by size, per step."""

    share: float
    earned: float


@dataclass(frozen=True)
class Carried:
    """How a target lives on the counts: ω by state, ρ by logged pair, what every logged transition has before it.

    ``kept`` are the logged transitions that the target can be followed through; ``mass`` is 1, or the length of an
    episode.
    """

    omega: FloatArray
    ratio: FloatArray
    tail: FloatArray
    kept: BoolArray
    mass: float


@dataclass(frozen=True)
class Readings:
    """What checks need of the flow behind a solution on counts: read off while it is there, for it takes much memory.

    A shift is None where it was not asked for, because the gap is not of the size of its check.
    """

    parked: Parked | None = None
    coverage_shift: float | None = None
    lone_shift: float | None = None
    effective_ends: float | None = None
    carried: Carried | None = None
    path: StepPath | None = None
    """What the target does and earns at its first steps."""


@dataclass(frozen=True)
class LogEvidence:
    """What the logs are, whatever is asked of them: counts of their transitions, where states are counted, and sums."""

    transitions: Transitions | None
    sums: EpisodeSums
    answers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What checks asked of the rows, by their names."""

    @cached_property
    def cells(self) -> IntArray | None:
        """The number of the (s, a, s′) of every transition."""
        return None if self.transitions is None else transition_cells(self.transitions)


@dataclass(frozen=True)
class Evidence:
    """A solution, its uncertainty, the problem it solves, and the logs; ``scores`` are by episode.

    ``problem`` and ``sums`` are None where a prediction is judged that saw a part of the logs only.
    """

    solution: Solution
    uncertainty: Uncertainty
    survey: Survey
    problem: Problem | FeatureProblem | None = None
    sums: EpisodeSums | None = None
    scores: FloatArray | None = None
    by_step: FloatArray | None = None
    of_logs: tuple[Diagnostic, ...] = ()
    """What was found about the logs, whatever was asked of them."""
    estimand: Estimand = field(default_factory=Estimand)
    readings: Readings = field(default_factory=Readings)
    replays: Replays | None = None
    """What the counts predict of the logs themselves, beside what was seen."""
    clusters: Clusters | None = None
    """What ``scores`` are by, where it is units."""
    pasts: Pasts | None = None
    """What happened before every row, and whether it tells more than the state."""
    vector_pasts: tuple[VectorTrace, ...] = ()
    """The same where states are vectors."""

    @property
    def n_clusters(self) -> int:
        """Episodes, or the units that they belong to."""
        return self.survey.n_episodes if self.clusters is None else len(self.clusters)

    @property
    def value(self) -> float:
        """The estimate."""
        return self.solution.value

    @property
    def measures(self) -> Measures:
        """What the estimator measured."""
        return self.solution.measures

    @property
    def interval(self) -> Interval | None:
        """With what approximation adds to it."""
        return self.uncertainty.interval

    def is_rounding(self, difference: float) -> bool:
        """Whether a difference in what is earned is no more than what floats leave of zero."""
        survey = self.survey
        return abs(difference) <= ROUNDING * max(abs(self.value), abs(survey.lowest), abs(survey.highest))

    @property
    def on_features(self) -> bool:
        """Whether nothing was counted: coverage is then not known pair by pair."""
        return self.problem is not None and self.counted is None

    @property
    def counted(self) -> Problem | None:
        """The problem, where states are counted."""
        return None if self.problem is None else self.problem.counted

    @cached_property
    def beyond(self) -> Beyond | None:
        """What lies later than most episodes were followed; None where that is not known."""
        steps = None if self.sums is None else self.sums.totals.followed_steps
        if steps is None or self.solution.is_reference:
            return None
        if self.readings.path is not None:
            return self.readings.path.beyond(steps)
        if not self.on_features or self.survey.episodes.ended.any():
            return None
        return without_ends(self.estimand, steps)

    @cached_property
    def effective_sample_size(self) -> float | None:
        """How many rows of the target's own the weighted logs are worth; None where nothing is weighed."""
        if self.solution.weights is not None:
            return self.solution.weights.effective_sample_size()
        return self.measures.effective_sample_size

    @cached_property
    def largest_share(self) -> float | None:
        """The share of the heaviest row (or episode) in all weight."""
        if self.measures.largest_share is not None:
            return self.measures.largest_share
        weights = self.solution.weights
        return None if weights is None else weights.largest / max(float(weights.total.sum()), 1e-300)

    @property
    def n_cut(self) -> float:
        """Rows whose ratio was truncated, whose calibration was raised to zero, or whose density was capped."""
        m = self.measures
        return (m.truncated_ratios or 0.0) + (m.clipped_calibrations or 0.0) + (m.capped_densities or 0.0)
