"""Which target is better, and how sure are we: joint inference on targets that the same episodes carry.

joint          scores side by side, and the law of the values that follows
pairs          differences
selection      places, the probability of being the best, and regret
by_estimator   who may be ranked, and all of the above for each estimator
"""

from mixope.differences.by_estimator import Contested, contests_of, select
from mixope.differences.joint import JointScores
from mixope.differences.pairs import MOST_PAIRED, pairwise, with_best
from mixope.differences.records import Comparison, Differences, Rank, Regret, Selection
from mixope.differences.selection import contest, ranks, regrets
from mixope.uncertainty import Difference

__all__ = [
    "MOST_PAIRED",
    "Comparison",
    "Contested",
    "Difference",
    "Differences",
    "JointScores",
    "Rank",
    "Regret",
    "Selection",
    "contest",
    "contests_of",
    "pairwise",
    "ranks",
    "regrets",
    "select",
    "with_best",
]
