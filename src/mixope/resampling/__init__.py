"""The episode bootstrap: resample episodes and refit everything, from one scan.

``episodes`` has the counts of every episode, ``refit`` asks an estimator again of re-weighted ones, ``sample`` draws
the replicates, ``processes`` shares them between cores.
"""

from mixope.counting import order_rows
from mixope.resampling.episodes import EpisodeCounts, count_episodes
from mixope.resampling.processes import Progress
from mixope.resampling.refit import Refit, prepare, tabulate, tabulated
from mixope.resampling.sample import (
    BootstrapSample,
    bootstrap,
    influence,
    one_episode_interval,
    refitted_uncertainty,
    resample,
)

__all__ = [
    "BootstrapSample",
    "EpisodeCounts",
    "Progress",
    "Refit",
    "bootstrap",
    "count_episodes",
    "influence",
    "one_episode_interval",
    "order_rows",
    "prepare",
    "refitted_uncertainty",
    "resample",
    "tabulate",
    "tabulated",
]
