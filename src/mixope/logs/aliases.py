"""What other libraries call our columns.

A file's column is recognised by its name, whatever the case; the exact canonical name wins over an alias. Several
columns ``observation.cell, observation.passenger`` (or ``obs.cell``, ``state.cell`` …) are the factors of one
observation. A column named plain ``prob`` is nobody's: it is as often the target's probability as the logger's.
"""

from __future__ import annotations

from collections.abc import Iterable

from mixope.logs.schema import CANONICAL

ALIASES: dict[str, tuple[str, ...]] = {
    "episode_id": (*("eps_id", "episode", "episode_index", "traj_id", "trajectory_id", "session_id"),),
    "step": ("t", "frame_index", "timestep"),
    "observation": ("obs", "observations", "state", "s", "context"),
    "action": ("a", "actions"),
    "reward": ("r", "rewards", "next.reward"),
    "next_observation": ("new_obs", "next_obs", "next_state", "s_next"),
    "terminated": ("terminal", "terminals", "terminations", "terminateds", "is_terminal"),
    "truncated": ("timeouts", "truncations", "truncateds"),
    "policy_id": ("policy", "logger", "behavior_policy", "behaviour_policy", "source", "stratum_idx"),
    "action_prob": ("pscore", "propensity", "propensity_score", "action_probability"),
    "action_logp": ("action_log_prob", "log_prob", "logp"),
}
"""Canonical name → other names, lower case."""

DONE = ("done", "dones", "is_done", "next.done")
"""An end of unknown kind: true end or cut by the recorder."""

WITH_FACTORS = ("observation", "next_observation", "action")
"""The notions that may be spread over several columns ``name.factor``."""

_MEANING = {alias: canonical for canonical, names in ALIASES.items() for alias in (canonical, *names)}


def meaning(column: str) -> str | None:
    """The canonical name that a column stands for, or None; ``obs.cell`` stands for ``observation``."""
    lower = column.lower()
    if lower in _MEANING:
        return _MEANING[lower]
    prefix, dot, factor = lower.partition(".")
    whole = _MEANING.get(prefix)
    return whole if dot and factor and whole in WITH_FACTORS else None


def factor(column: str) -> str | None:
    """The part after the dot of ``obs.cell``, or None for a column that is whole."""
    if column.lower() in _MEANING:
        return None
    return column.partition(".")[2] or None


def prefix(column: str) -> str:
    """The name a factor belongs to: ``obs`` of ``obs.cell``; the column itself if it is whole."""
    return column if factor(column) is None else column.partition(".")[0]


def by_meaning(columns: Iterable[str]) -> dict[str, list[str]]:
    """The columns grouped by what they stand for, in file order; strangers are left out."""
    groups: dict[str, list[str]] = {name: [] for name in CANONICAL}
    for column in columns:
        canonical = meaning(column)
        if canonical is not None:
            groups[canonical].append(column)
    return {name: group for name, group in groups.items() if group}
