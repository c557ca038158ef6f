"""Objects of other libraries that hold steps: data sets of Minari, buffers of d3rlpy and of Stable-Baselines3.

They are known by the names of their classes and of the libraries these come from, so none of these is imported here.
One more kind is one line in ``RECIPES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mixope.base.errors import DataError
from mixope.logs.schema import Role
from mixope.logs.sources.minari import some_episodes
from mixope.logs.sources.sb3_buffers import replayed, rolled_out
from mixope.logs.sources.steps import Spaces
from mixope.logs.sources.trajectories import table_of_steps


@dataclass(frozen=True)
class Held:
    """Steps as a table, and what the object says of them: notes, the roles of columns, the logger."""

    name: str
    table: Any
    notes: tuple[str, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    label: str | None = None


def _minari(dataset: Any) -> Held:
    """Read from its files, as a whole or the episodes that were chosen."""
    folder = str(dataset.storage.data_path)
    chosen = {int(number) for number in dataset.episode_indices}
    table, found = some_episodes(folder, chosen)
    return Held(folder, table, found.notes, found.roles, found.label)


def _d3rlpy(buffer: Any) -> Held:
    episodes = list(buffer.episodes)
    if not episodes:
        raise _empty("d3rlpy buffer")
    return Held("d3rlpy buffer", table_of_steps(episodes, {}))


def _replay(buffer: Any) -> Held:
    return _of_sb3("Stable-Baselines3 replay buffer", buffer, replayed)


def _rollout(buffer: Any) -> Held:
    return _of_sb3("Stable-Baselines3 rollout buffer", buffer, rolled_out)


def _of_sb3(name: str, buffer: Any, read: Callable[[Any, Spaces, str], tuple[Any, list[str]]]) -> Held:
    if not buffer.full and not buffer.pos:
        raise _empty(name)
    spaces = Spaces.of_objects(buffer.observation_space, buffer.action_space, name)
    table, notes = read(buffer, spaces, name)
    return Held(name, table, tuple(f"{name}: {note}" for note in notes), spaces.roles)


def _empty(name: str) -> DataError:
    return DataError("The buffer holds no steps", where=name, expected="at least one step")


class Recipe(NamedTuple):
    """How the objects of a class are known and read."""

    library: str
    kind: str
    read: Callable[[Any], Held]

    def held(self, given: Any) -> Held:
        """Its steps; an error in words where it is not as its class says."""
        try:
            return self.read(given)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"The object cannot be read: {error}",
                where=f"{self.library} {type(given).__name__}",
                hint="pass its steps as a dict of arrays, or as a list of episodes",
            ) from error


RECIPES = (
    Recipe("minari", "MinariDataset", _minari),
    Recipe("d3rlpy", "ReplayBufferBase", _d3rlpy),
    Recipe("d3rlpy", "ReplayBuffer", _d3rlpy),
    Recipe("d3rlpy", "MDPDataset", _d3rlpy),
    Recipe("stable_baselines3", "RolloutBuffer", _rollout),
    Recipe("stable_baselines3", "ReplayBuffer", _replay),
)


def recipe_of(given: Any) -> Recipe | None:
    """How to read an object of another library; None for anything else."""
    known = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__}
    return next((recipe for recipe in RECIPES if (recipe.library, recipe.kind) in known), None)
