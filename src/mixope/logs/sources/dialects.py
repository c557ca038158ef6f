"""Tables of other tools that are known by their columns, whatever the format they are stored in.

    RLlib         eps_id, obs, actions, rewards …   plain names; packed rows are refused
    LeRobot       episode_index, frame_index, task_index, timestamp, observation.state …
    Open Bandit   item_id, position, click, propensity_score, user_feature_0 …

The log of Open Bandit has one decision per row: the item that was shown at a position is the action, the click is the
reward, and the state is the position and the features of the user, as in the Open Bandit Pipeline.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mixope.base.errors import Advice, Setting
from mixope.logs.names import by_meaning
from mixope.logs.sources import Piece
from mixope.logs.sources.lerobot import is_recorded, state_of
from mixope.logs.sources.rllib import refuse_packed

SHOWN = frozenset({"item_id", "position", "click", "propensity_score"})
USER, AFFINITY = "user_feature_", "user-item_affinity_"


@dataclass(frozen=True)
class Dialect:
    """What the columns of a tool mean, the columns that all its rows have in common, and what is to be said of it."""

    columns: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    constants: Mapping[str, str | int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def dialect_of(name: str, pieces: Sequence[Piece], said: Container[str] = ()) -> Dialect:
    """The dialect of a source; an empty one where nothing is known of it. ``said``: what the user maps to columns."""
    refuse_packed(pieces)
    columns = list(dict.fromkeys(column for piece in pieces for column in (*piece.fields, *piece.constants)))
    if is_recorded(columns):
        state, notes = state_of(name, pieces, said)
        return Dialect({"observation": state}, notes=notes)
    return _open_bandit(name, columns, said) if _is_open_bandit(columns) else Dialect()


def _is_open_bandit(columns: Iterable[str]) -> bool:
    names = set(columns)
    own = by_meaning(names).keys() & {"action", "reward", "observation", "episode_id", "terminated"}
    return names >= SHOWN and any(each.startswith(USER) for each in names) and not own


def _open_bandit(name: str, columns: Sequence[str], said: Container[str]) -> Dialect:
    state = ("position", *(column for column in columns if column.startswith(USER)))
    affinities = [column for column in columns if column.startswith(AFFINITY)]
    notes = [
        f"{name}: a log of Open Bandit: every row is a decision, the item is the action and the click is the reward"
    ]
    if affinities and "observation" not in said:
        notes.append(
            Advice(
                f"{name}: {len(affinities)} columns {affinities[0]!r} … are not part of the state; to put them into it,"
                " name all its columns: ",
                Setting("columns", {"observation": [*state, affinities[0]]}),
            )
        )
    meanings: dict[str, str | tuple[str, ...]] = {"action": "item_id", "reward": "click", "observation": state}
    return Dialect(meanings, {"terminated": 1, "step": 0}, tuple(notes))
