"""Which target is better, and how sure are we: joint inference on targets that the same episodes carry.

    records    a pair, a place in the ranking, and all of them
    joint      scores side by side → pairs and ranks
    estimates  from estimates of one run, which keep their scores: no further scan
    targets    from logs and targets, by one estimator

The scores say nothing of bias: a target whose mass is not covered by the logs is named in ``alerts``.
"""

from mixope.differences.estimates import differences_of
from mixope.differences.joint import JointScores, pairwise, rank
from mixope.differences.records import Difference, Differences, Ranking
from mixope.differences.targets import compare_targets

__all__ = [
    "Difference",
    "Differences",
    "JointScores",
    "Ranking",
    "compare_targets",
    "differences_of",
    "pairwise",
    "rank",
]
