"""Recording: what a policy does in an environment as a log that has all that an evaluation needs.

    logs = mixope.record(env, policy, episodes=100, seed=0, path="recorded")      # the policy acts
    env = mixope.recorder(env, "recorded", label="old")                           # a program of yours acts

One row per step, with the observation and the next one (also where an episode was cut), the action and its probability,
the logger, and two flags: ``terminated`` (the process ended) is not ``truncated`` (the recording did).
"""

from __future__ import annotations

from mixope.recording.given import Environment
from mixope.recording.rollout import record
from mixope.recording.wrapping import recorder

__all__ = ["Environment", "record", "recorder"]
