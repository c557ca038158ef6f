"""The log of Open Bandit: one decision per row, known by its columns.

The item that was shown at a position is the action, the click is the reward, and the state is the position and the
features of the user, as in the Open Bandit Pipeline.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mixope.base.errors import Advice, Setting
from mixope.logs.sources import Piece
from mixope.logs.sources.formats import Dialect, Format
from mixope.logs.sources.marks import USER

AFFINITY = "user-item_affinity_"


def dialect(name: str, pieces: Sequence[Piece], said: Container[str]) -> Dialect:
    """The columns as what a log has."""
    columns = list(dict.fromkeys(column for piece in pieces for column in (*piece.fields, *piece.constants)))
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


FORMAT = Format("open-bandit", dialect=dialect)
