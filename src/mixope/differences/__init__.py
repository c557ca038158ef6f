"""Which target is better, and how sure are we: joint inference on targets that the same episodes carry."""

from mixope.differences.joint import JointScores, differences_of, pairwise, rank
from mixope.differences.records import Comparison, Difference, Differences, Ranking

__all__ = ["Comparison", "Difference", "Differences", "JointScores", "Ranking", "differences_of", "pairwise", "rank"]
