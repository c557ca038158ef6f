"""Intervals: made from scores or from refits, apart from estimators.

    clustered    scores by episode (t or normal), because rows of one episode are not independent
    likelihood   empirical likelihood over episodes
    sequences    valid at all times together, for a test that is watched while it runs
    blocks       batch means for one long episode
    refits       percentile and BCa from the replicates of :mod:`mixope.answers.resampling`
    difference   of two values, with its interval, its probability and its conclusion
    choice       which of them, and the way to it

How often each covers is measured by ``mixope reproduce coverage``.
"""

from mixope.uncertainty.blocks import block_length, block_scores
from mixope.uncertainty.choice import (
    AUTO,
    INTERVALS,
    REFIT_INTERVALS,
    SCORE_INTERVALS,
    IntervalChoice,
    Scores,
    Uncertainty,
    choose_interval,
    judge_scores,
    widen,
)
from mixope.uncertainty.clustered import (
    Interval,
    clustered_interval,
    degrees_of_freedom,
    few_clusters,
    few_episodes,
    probability_positive,
    quantile,
    standard_error,
)
from mixope.uncertainty.difference import Difference, probability_words
from mixope.uncertainty.likelihood import likelihood_interval
from mixope.uncertainty.refits import bca_interval, percentile_interval
from mixope.uncertainty.sequences import (
    ANYTIME,
    boundary,
    bounded_sequence,
    one_look_level,
    sequence_around,
    sequence_interval,
    sequence_reach,
)

__all__ = [
    "ANYTIME",
    "AUTO",
    "INTERVALS",
    "REFIT_INTERVALS",
    "SCORE_INTERVALS",
    "Difference",
    "Interval",
    "IntervalChoice",
    "Scores",
    "Uncertainty",
    "bca_interval",
    "block_length",
    "block_scores",
    "boundary",
    "bounded_sequence",
    "choose_interval",
    "clustered_interval",
    "degrees_of_freedom",
    "few_clusters",
    "few_episodes",
    "judge_scores",
    "likelihood_interval",
    "one_look_level",
    "percentile_interval",
    "probability_positive",
    "probability_words",
    "quantile",
    "sequence_around",
    "sequence_interval",
    "sequence_reach",
    "standard_error",
    "widen",
]
