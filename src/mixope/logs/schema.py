"""The canonical row: which columns every log has once it is read, whatever the file called them.

    source, policy_id, episode_id, step, observation…, action…, reward, next_observation…,
    terminated, truncated, start, propensity, unfollowed[, unit]

An episode is one trajectory of one logger in one input: the same number under two labels is two episodes. A unit (a
user, a patient) may have several episodes, of several loggers and in several inputs; without one, it is the episode.

A row is *unfollowed* if it did not end its episode and nobody knows what came next: the last row of an episode that was
cut, in logs without next observations. Its state, its action, its reward and its mark are known, and count.
How a file's columns become these is in ``mapping`` and ``plan``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

UNLABELLED = "unlabelled"
"""The logger of rows that no column and no label names."""

EPISODE_KEYS = ("source", "policy_id", "episode_id")
"""The columns that together name an episode."""

UNFOLLOWED = "unfollowed"
"""The column that tells rows after which nobody knows what came."""

UNIT = "unit"
"""The column that says who an episode belongs to, in logs that have one."""

CANONICAL = (
    "episode_id",
    "step",
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
    "truncated",
    "policy_id",
    "action_prob",
    "action_logp",
    UNIT,
)
"""What a column of a file can mean; the keys of ``read(columns=…)``."""

ObservationKind = Literal["id", "factors", "vector", "mixed"]
ActionKind = Literal["discrete", "continuous"]
Role = Literal["id", "category", "number", "missing"]
"""What a column of an observation is. ``missing`` is a column of 0 and 1 after a number: whether it is missing."""
Type = Literal["int", "float", "string", "bool"]
"""The four types of canonical columns: int64, float64, string, bool."""

MISSING_WORD = "(missing)"
MISSING_NUMBER = -(2**63)
"""The class of missing values of a category, where it is words and where it is whole numbers."""


@dataclass(frozen=True)
class Schema:
    """What the canonical rows of some logs look like.

    ``observation``, ``next_observation`` and ``action`` are names of canonical columns; ``types`` gives the type of
    every canonical column; ``mapping`` says for each notion which column of the file it came from, or how it was
    derived; ``roles`` what the columns of the observation are.
    """

    observation: tuple[str, ...]
    next_observation: tuple[str, ...]
    observation_kind: ObservationKind
    action: tuple[str, ...]
    action_kind: ActionKind
    has_propensity: bool
    has_policy_id: bool
    types: Mapping[str, Type] = field(default_factory=dict)
    mapping: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    roles: tuple[Role, ...] = ()
    has_unit: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The canonical columns, in order."""
        return (
            *("source", "policy_id", "episode_id", "step"),
            *self.observation,
            *self.action,
            "reward",
            *self.next_observation,
            *("terminated", "truncated", "start", "propensity", UNFOLLOWED),
            *self.unit,
        )

    @property
    def unit(self) -> tuple[str, ...]:
        """The column that says who an episode belongs to, where there is one."""
        return (UNIT,) if self.has_unit else ()

    @property
    def discrete(self) -> bool:
        """Whether both observations and actions are ids that can be counted."""
        return self.observation_kind in {"id", "factors"} and self.action_kind == "discrete"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the observation that are numbers."""
        if self.observation_kind not in {"vector", "mixed"}:
            return ()
        return tuple(name for name, role in zip(self.observation, self.roles, strict=True) if role == "number")
