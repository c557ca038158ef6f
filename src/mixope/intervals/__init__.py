"""Intervals: made from scores or from refits, apart from estimators.

One file a method: scores clustered by episode (t or normal), empirical likelihood over episodes, batch means for one
long episode, percentile and BCa from the replicates of :mod:`mixope.resampling`. How often each covers is measured
by ``mixope reproduce coverage``.
"""

from mixope.intervals.blocks import batch_means_error, batch_means_interval, block_length, block_scores
from mixope.intervals.bootstrap import bca_interval, percentile_interval
from mixope.intervals.choice import INTERVALS, IntervalChoice, choose_interval
from mixope.intervals.clustered import Interval, clustered_interval, few_episodes, quantile, standard_error
from mixope.intervals.likelihood import likelihood_interval
from mixope.intervals.registry import REFIT_INTERVALS, SCORE_INTERVALS, from_scores
from mixope.intervals.uncertainty import Scores, Uncertainty, judge_scores

__all__ = [
    "INTERVALS",
    "REFIT_INTERVALS",
    "SCORE_INTERVALS",
    "Interval",
    "IntervalChoice",
    "Scores",
    "Uncertainty",
    "batch_means_error",
    "batch_means_interval",
    "bca_interval",
    "block_length",
    "block_scores",
    "choose_interval",
    "clustered_interval",
    "few_episodes",
    "from_scores",
    "judge_scores",
    "likelihood_interval",
    "percentile_interval",
    "quantile",
    "standard_error",
]
