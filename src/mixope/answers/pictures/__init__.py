"""What a report draws, made with the estimate: from sums and scores that are there, without another scan.

episodes     the estimate as the log grows; what episodes earned
states       visits of the logs and of the target
behaviour    probabilities of actions against their frequencies
replay       levels that the counts predict of the logs themselves, beside those that were seen
"""

from mixope.answers.pictures.behaviour import reliability
from mixope.answers.pictures.episodes import growth, loggers_in_turn, returns
from mixope.answers.pictures.records import (
    Grown,
    Pictures,
    Reliability,
    ReliabilityBin,
    ReplayedMean,
    ReturnBar,
    Visit,
    Visits,
)
from mixope.answers.pictures.replay import replayed_means
from mixope.answers.pictures.states import visits

__all__ = [
    "Grown",
    "Pictures",
    "Reliability",
    "ReliabilityBin",
    "ReplayedMean",
    "ReturnBar",
    "Visit",
    "Visits",
    "growth",
    "loggers_in_turn",
    "reliability",
    "replayed_means",
    "returns",
    "visits",
]
