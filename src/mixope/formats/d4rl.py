"""D4RL and whoever stores like it: one array per notion, all episodes one after another in one hdf5 file.

    observations, actions, rewards   one entry per step
    terminals                        the process ended here
    timeouts                         the recorder stopped here; where it is absent, this is nowhere the case
    next_observations                may be absent: then it is the observation of the next row of the episode
    infos/action_log_probs           the logger's own log density of the action

Without ``next_observations``, the last row of an episode that was cut has none; it counts, and leads nowhere.
"""

from __future__ import annotations

import numpy as np

from mixope.base.errors import DataError
from mixope.formats.groups import Group, NotedArrays, counted

FLAGS = {"terminals": "terminated", "timeouts": "truncated"}
UNCUT = (
    "there is no array 'timeouts', so episodes are cut after terminals only; if a time limit cut some of them, add it,"
    " or the first step after a cut is taken for the next one of the same episode"
)


def read_d4rl(file: Group) -> NotedArrays:
    """The steps, with the ends that the file marks."""
    reward = file.steps("rewards")
    rows, names = len(reward), set(file.names)
    arrays = {"observation": file.steps("observations", rows), "action": file.steps("actions", rows)}
    arrays["reward"] = file.each("rewards", rows)
    if "next_observations" in names:
        arrays["next_observation"] = file.steps("next_observations", rows)
    for stored, name in FLAGS.items():
        if stored in names:
            arrays[name] = file.flags(stored, rows)
    if "terminals" not in names:
        raise DataError(
            "Nothing marks the steps that end an episode",
            where=file.where,
            expected="an array terminals, and timeouts where a time limit cut episodes",
            got=", ".join(sorted(names)),
        )
    arrays |= counted(np.any([arrays[name] != 0 for name in FLAGS.values() if name in arrays], axis=0))
    notes = [] if "timeouts" in names else [f"{file.where}: {UNCUT}"]
    density = file.values("infos", "action_log_probs")
    if density is not None and density.size == rows:
        arrays["action_logp"] = density.reshape(rows)
    elif density is not None:
        notes.append(f"{file.where}: infos/action_log_probs is not read: it has shape {density.shape}, of {rows} steps")
    return NotedArrays(arrays, tuple(notes))
