"""One episode of known spaces as columns: what Minari stores, and what is recorded, one row per step.

An episode of T steps has T + 1 observations, so that every step has its own and the next. Infos have T + 1 entries,
too, the first of which is the answer of reset and belongs to no step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixope.base.errors import DataError
from mixope.logs.schema import Role
from mixope.logs.sources.spaces import CONVERT, Key, Leaf, described, leaves_of

INFOS = ("action_prob", "action_logp", "policy_id")
FLAGS = {"terminations": "terminated", "truncations": "truncated"}


class Episode(Protocol):
    """One episode: where it is stored, and its arrays."""

    @property
    def where(self) -> str:
        """The file, for messages."""

    @property
    def remedy(self) -> str:
        """What to do where it is not whole."""

    def values(self, name: str, keys: Sequence[Key] = ()) -> Any:
        """An array by its name and the way into a Dict or Tuple, perhaps flat; None where there is none."""


@dataclass(frozen=True)
class Spaces:
    """The parts of observations and actions."""

    observation: tuple[Leaf, ...]
    action: tuple[Leaf, ...]

    @classmethod
    def of(cls, observation: Any, action: Any, where: str) -> Spaces:
        """From the spaces as Minari writes them; an error where an action is none that is read."""
        leaves = leaves_of(action, where, "action")
        _refuse_mixed(leaves, where)
        return cls(leaves_of(observation, where, "observation"), leaves)

    @classmethod
    def of_objects(cls, observation: Any, action: Any, where: str) -> Spaces:
        """From spaces of Gymnasium."""
        return cls.of(described(observation, where), described(action, where), where)

    @property
    def roles(self) -> dict[str, Role]:
        """Classes are categories, also beside numbers; a single one is the id of the state."""
        if [leaf.keys for leaf in self.observation] == [()] and self.observation[0].width in (None, 1):
            return {}
        names = [name for leaf in self.observation for name in _columns(leaf) if leaf.holds == "classes"]
        return dict.fromkeys(names, "category")

    @property
    def joined(self) -> bool:
        """Whether an action has several classes, which make one id together."""
        return self.action[0].holds != "numbers" and (len(self.action) > 1 or (self.action[0].width or 1) > 1)


def _columns(leaf: Leaf) -> list[str]:
    """The names that a table gives to the columns of a part of the observation."""
    name = f"observation{leaf.suffix}"
    return [name] if leaf.width in (None, 1) else [f"{name}.{i}" for i in range(leaf.width or 0)]


def _refuse_mixed(action: Sequence[Leaf], where: str) -> None:
    """Classes make one id together, numbers a vector; nothing else makes one action."""
    kinds = {leaf.holds for leaf in action}
    if len(kinds) > 1 or (kinds == {"text"} and len(action) > 1):
        raise DataError(
            "The parts of the action do not make one action",
            where=where,
            expected="classes only, numbers only, or one text",
            got=", ".join(f"{leaf.suffix.removeprefix('.')}: {leaf.holds}" for leaf in action),
            hint=CONVERT,
        )


def columns_of(spaces: Spaces, episode: Episode, number: int) -> dict[str, Any]:
    """The steps of one episode."""
    reward = episode.values("rewards")
    if reward is None or np.ndim(reward) == 0:
        raise _short(episode, "rewards", "one reward per step", "none")
    steps = len(reward)
    columns: dict[str, Any] = {"episode_id": np.full(steps, number), "step": np.arange(steps)}
    for leaf in spaces.observation:
        values = _leaf(episode, "observations", leaf, steps + 1)
        columns[f"observation{leaf.suffix}"] = values[:-1]
        columns[f"next_observation{leaf.suffix}"] = values[1:]
    actions = {f"action{leaf.suffix}": _leaf(episode, "actions", leaf, steps) for leaf in spaces.action}
    columns |= {"action": joined(list(actions.values()))} if spaces.joined else actions
    columns["reward"] = _one_each(episode, "rewards", reward, steps)
    for stored, name in FLAGS.items():
        columns[name] = _one_each(episode, stored, episode.values(stored), steps)
    for name in INFOS:
        values = episode.values("infos", (name,))
        if values is not None:
            columns[name] = _one_each(episode, f"infos/{name}", _shifted(values, steps), steps)
    return columns


def _leaf(episode: Episode, name: str, leaf: Leaf, rows: int) -> Any:
    values = episode.values(name, leaf.keys)
    shape = f"{rows} values" if leaf.width is None else f"{rows} × {leaf.width} values"
    if values is None:
        raise _short(episode, name + leaf.suffix, shape, "none")
    try:
        return leaf.shaped(values, rows)
    except (TypeError, ValueError) as error:
        raise _short(episode, name + leaf.suffix, shape, f"an array of shape {np.shape(values)}: {error}") from error


def joined(parts: Sequence[Any]) -> Any:
    """Several classes as one id."""
    columns = [column for part in parts for column in (part.T if part.ndim > 1 else [part])]
    return np.array([",".join(map(str, row)) for row in zip(*columns, strict=True)], dtype=object)


def _shifted(values: Any, steps: int) -> Any:
    """Without the entry of reset, which belongs to no step."""
    return values[1:] if np.ndim(values) and len(values) == steps + 1 else values


def _one_each(episode: Episode, name: str, values: Any, steps: int) -> Any:
    if values is None or np.size(values) != steps:
        got = "none" if values is None else f"{np.size(values)} values"
        raise _short(episode, name, f"{steps} values, one per step", got)
    return np.reshape(values, steps)


def _short(episode: Episode, name: str, expected: str, got: str) -> DataError:
    return DataError(
        "An episode is not whole",
        where=episode.where,
        column=name,
        expected=expected,
        got=got,
        hint=episode.remedy,
    )
