"""The buffers of Stable-Baselines3 as tables: every environment is a stream of episodes, the oldest step first.

A replay buffer is a ring: once it is full, its oldest step stands at ``pos``, and where the first episode of each
stream began is no longer known. Its first step is then counted as 1, so that it is not taken for a start. A rollout
buffer knows its starts, but neither what followed the last step of an episode nor why that was the last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mixope.base.arrays import BoolArray, IntArray
from mixope.base.errors import DataError
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.formats import BufferTable, Format, empty_buffer
from mixope.logs.sources.spaces import Leaf
from mixope.logs.sources.steps import Spaces, joined

WITHIN = 1.0 + 1e-6
FULL = "it is full, and how the first episode of each environment began is overwritten: its first step is no start"
SCALED = (
    "its actions lie in [-1, 1], where the library stores them, and are read in the units of the action space; if you"
    " stored them yourself, in other units, pass the steps as a dict of arrays"
)
ADDED = (
    "where a time limit cut an episode, the library has added the critic's value of what would have followed to the"
    " reward, which cannot be undone"
)


class Ring(NamedTuple):
    """The places of a buffer in the order of time, and how many environments fill each."""

    order: IntArray
    envs: int
    flat: bool = False
    """Whether arrays have been laid out by environment already."""

    @property
    def rows(self) -> int:
        """Steps of all environments."""
        return len(self.order) * self.envs

    def stream(self, values: Any, *, flat: bool = False) -> Any:
        """The values of the first environment in order, then those of the second …"""
        array = np.asarray(values)
        return array if flat and self.flat else _by_environment(array[self.order])


def _by_environment(array: Any) -> Any:
    return np.swapaxes(array, 0, 1).reshape(array.shape[0] * array.shape[1], *array.shape[2:])


def replayed(buffer: Any, spaces: Spaces, where: str) -> tuple[Any, list[str]]:
    """The steps of a replay buffer, and notes on them."""
    lean = bool(getattr(buffer, "optimize_memory_usage", False))
    places = np.arange(len(buffer.rewards))
    order = np.roll(places, -buffer.pos)[int(lean) :] if buffer.full else places[: buffer.pos]
    ring = Ring(order, int(buffer.n_envs))
    if not ring.rows:
        raise DataError("The buffer holds no whole step", where=where, expected="at least one step")
    dones = ring.stream(buffer.dones).astype(bool)
    columns = _keys(dones, ring, begun=np.full(ring.envs, not buffer.full))
    columns |= _states("observation", buffer.observations, spaces, ring)
    if not lean:
        columns |= _states("next_observation", buffer.next_observations, spaces, ring)
    actions, notes = _actions(ring.stream(buffer.actions), buffer.action_space, spaces)
    columns |= actions | {"reward": ring.stream(buffer.rewards)}
    if getattr(buffer, "handle_timeout_termination", False) or not dones.any():
        cut = dones & ring.stream(buffer.timeouts).astype(bool)
        columns |= {"terminated": dones & ~cut, "truncated": cut | (_lasts(ring) & ~dones)}
    else:
        columns["done"] = dones
    if buffer.full:
        notes.append(
            "it is full: how the first episode of each environment began is overwritten, and no start is seen there"
        )
    return table_of_arrays(columns, where), notes


def rolled_out(buffer: Any, spaces: Spaces, where: str) -> tuple[Any, list[str]]:
    """The steps of a rollout buffer, with the log-probabilities that it keeps, and notes on them."""
    steps = len(buffer.rewards) if buffer.full else buffer.pos
    ring = Ring(np.arange(steps), int(buffer.n_envs), bool(getattr(buffer, "generator_ready", False)))
    starts = ring.stream(buffer.episode_starts).astype(bool).reshape(ring.envs, -1)
    dones = np.concatenate([starts[:, 1:], np.zeros((ring.envs, 1), dtype=bool)], axis=1).ravel()
    columns = _keys(dones, ring, begun=starts[:, 0])
    columns |= _states("observation", buffer.observations, spaces, ring)
    columns |= _classes_or_numbers(ring.stream(buffer.actions, flat=True), spaces)
    columns |= {"reward": ring.stream(buffer.rewards)}
    columns["action_logp"] = ring.stream(buffer.log_probs, flat=True).reshape(-1).astype(np.float64)
    if not dones.any():
        return table_of_arrays(columns | {"truncated": _lasts(ring)}, where), []
    return table_of_arrays(columns | {"done": dones}, where), [ADDED]


def _keys(dones: BoolArray, ring: Ring, begun: BoolArray) -> dict[str, Any]:
    """Episode and step of every row; the first episode of an environment that did not begin here counts from 1."""
    length = len(ring.order)
    ended = dones.reshape(ring.envs, length)
    number: IntArray = np.cumsum(ended, axis=1) - ended
    first = np.concatenate([np.ones((ring.envs, 1), dtype=bool), ended[:, :-1]], axis=1)
    place = np.broadcast_to(np.arange(length), ended.shape)
    step = place - np.maximum.accumulate(np.where(first, place, 0), axis=1)
    step = step + ((number == 0) & ~np.asarray(begun, dtype=bool)[:, None])
    before = np.concatenate([[0], np.cumsum(number[:, -1] + 1)[:-1]])
    return {"episode_id": (number + before[:, None]).ravel(), "step": step.ravel()}


def _lasts(ring: Ring) -> BoolArray:
    """The newest step of every environment."""
    return np.tile(np.arange(len(ring.order)) == len(ring.order) - 1, ring.envs)


def _states(name: str, values: Any, spaces: Spaces, ring: Ring) -> dict[str, Any]:
    return {
        f"{name}{leaf.suffix}": leaf.shaped(ring.stream(_part(values, leaf), flat=True), ring.rows)
        for leaf in spaces.observation
    }


def _part(values: Any, leaf: Leaf) -> Any:
    for key in leaf.keys:
        values = values[key]
    return values


def _classes_or_numbers(actions: Any, spaces: Spaces) -> dict[str, Any]:
    found = spaces.action[0].shaped(actions, len(actions))
    return {"action": joined([found]) if spaces.joined else found}


def _actions(actions: Any, space: Any, spaces: Spaces) -> tuple[dict[str, Any], list[str]]:
    """The actions in their own units: the algorithms of the library store them in [-1, 1]."""
    found = _classes_or_numbers(actions, spaces)
    if spaces.action[0].holds != "numbers":
        return found, []
    low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (space.low, space.high))
    as_they_are = (low == -1).all() and (high == 1).all()
    if as_they_are or not np.isfinite([low, high]).all() or np.abs(found["action"]).max(initial=0) > WITHIN:
        return found, []
    return {"action": low + 0.5 * (found["action"] + 1.0) * (high - low)}, [SCALED]


def hold(buffer: Any) -> BufferTable:
    """The steps of a buffer of either kind."""
    rollout = any(kind.__name__ == "RolloutBuffer" for kind in type(buffer).__mro__)
    name, read = ("rollout", rolled_out) if rollout else ("replay", replayed)
    name = f"Stable-Baselines3 {name} buffer"
    if not buffer.full and not buffer.pos:
        raise empty_buffer(name)
    spaces = Spaces.of_objects(buffer.observation_space, buffer.action_space, name)
    table, notes = read(buffer, spaces, name)
    return BufferTable(name, table, tuple(f"{name}: {note}" for note in notes), spaces.roles)


FORMAT = Format("stable-baselines3", hold=hold)
