"""Tables of other tools that are known by their columns, whatever the format they are stored in.

RLlib         eps_id, obs, actions, rewards …   plain names; packed rows are refused
LeRobot       episode_index, frame_index, task_index, timestamp, observation.state …
Open Bandit   item_id, position, click, propensity_score, user_feature_0 …
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mixope.logs.sources import Piece
from mixope.logs.sources.formats import Dialect, named
from mixope.logs.sources.marks import RLLIB_EPISODES, RLLIB_STEPS, is_from_lerobot, is_open_bandit


def dialect_of(name: str, pieces: Sequence[Piece], said: Container[str] = ()) -> Dialect:
    """The dialect of a source; an empty one where nothing is known of it. ``said``: what the user maps to columns."""
    columns = list(dict.fromkeys(column for piece in pieces for column in (*piece.fields, *piece.constants)))
    rllib = any(tuple(piece.fields) == RLLIB_EPISODES or piece.fields.keys() >= RLLIB_STEPS for piece in pieces)
    tools = {"rllib": rllib, "lerobot": is_from_lerobot(columns), "open-bandit": is_open_bandit(columns)}
    found = Dialect()
    for tool in (tool for tool, is_one in tools.items() if is_one):
        dialect = named(tool).dialect
        assert dialect is not None
        found = dialect(name, pieces, said)
    return found
