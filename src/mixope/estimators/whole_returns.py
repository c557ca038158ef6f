"""Returns of whole episodes and the weights that make them the target's: what a distribution is made of.

Two helpers in the shape of trajectory estimators, so that they share the scans of any others. Their "scores" are what
is wanted, one number per episode, in the same order:

    episode-weights    W / Σ W, with W the ratio up to the last step that counts
    episode-returns    Σ_t g_t r_t / G, the return under the estimand

Nothing is estimated by them; :mod:`mixope.distributions` makes a distribution of both.
"""

from __future__ import annotations

import numpy as np

from mixope.base.arrays import FloatArray
from mixope.base.errors import Advice, Setting
from mixope.estimators.trajectory import Trajectory, WeightedSteps

FIRST_STEPS = Advice("ask for the first steps of episodes, as many as all of them have: ", Setting("horizon"))


def episode_weights() -> Trajectory:
    """Self-normalised importance weights of whole episodes."""
    return Trajectory("episode-weights", _weights, instead=FIRST_STEPS)


def episode_returns() -> Trajectory:
    """What each episode earned."""
    return Trajectory("episode-returns", _returns, instead=FIRST_STEPS)


def _weights(steps: WeightedSteps) -> tuple[float, FloatArray]:
    data = steps.data
    counted = steps.by_episode((steps.gain > 0).astype(np.float64)).astype(np.int64)
    log = data.log_weight[data.first + np.maximum(counted, 1) - 1]
    top = log.max()
    if not np.isfinite(top):
        return 0.0, np.zeros(data.n_episodes)
    weight = np.exp(log - top)
    return 1.0, weight / weight.sum()


def _returns(steps: WeightedSteps) -> tuple[float, FloatArray]:
    earned = steps.by_episode(steps.gain * steps.data.reward) / steps.span
    return float(earned.mean()), earned
