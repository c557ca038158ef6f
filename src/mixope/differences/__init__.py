"""Which target is better, and how sure are we: joint inference on targets that the same episodes carry."""

from mixope.differences.joint import MOST_PAIRED, JointScores, differences_of, pairwise, rank, with_best
from mixope.differences.records import Comparison, Difference, Differences, Ranking

__all__ = [
    "MOST_PAIRED",
    "Comparison",
    "Difference",
    "Differences",
    "JointScores",
    "Ranking",
    "differences_of",
    "pairwise",
    "rank",
    "with_best",
]
