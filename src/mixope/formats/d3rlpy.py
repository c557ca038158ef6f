"""Dumps of d3rlpy: a replay buffer of version 2, with arrays per episode, or an MDPDataset of version 1.

    version 2   columns, num_episodes, and observations_7, actions_7, rewards_7, terminated_7 of episode 7;
                an observation of several arrays is observations_7_0, observations_7_1 …
    version 1   observations, actions, rewards, terminals, episode_terminals, discrete_action, version

Rows are in the order of time. An episode that did not terminate was cut: its last step counts, and has no next
observation. Before version 1.0, d3rlpy kept a reward one row after its action and wrote no ``version``; such files are
refused. No text in a file is read: in a damaged file, the library can look for it without end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mixope.base.errors import DataError
from mixope.formats.groups import Group, NotedArrays, counted
from mixope.logs.sources.formats import BufferTable, Format, empty_buffer
from mixope.logs.sources.trajectories import table_of_steps

NEEDED = ("observations", "actions", "rewards", "terminated")
AGAIN = "load the file with d3rlpy, and write it again with dump()"


def read_buffer(file: Group) -> NotedArrays:
    """The steps of all episodes of a replay buffer."""
    names = set(file.names)
    found: dict[str, list[Any]] = {}
    for number in range(_episodes(file)):
        columns = _episode(file, number, names)
        for name in found.keys() ^ columns.keys() if number else ():
            raise DataError("Some episodes have an array that others lack", where=file.where, column=name, hint=AGAIN)
        for name, array in columns.items():
            found.setdefault(name, []).append(array)
    try:
        return NotedArrays({name: np.concatenate(arrays) for name, arrays in found.items()})
    except (TypeError, ValueError) as error:
        raise DataError(f"The episodes do not fit together: {error}", where=file.where, hint=AGAIN) from error


def _episodes(file: Group) -> int:
    """How many episodes there are; an error where the dump has another form."""
    number, names = file.values("num_episodes"), file.names
    missing = [name for name in NEEDED if not {f"{name}_0", f"{name}_0_0"} & set(names)]
    if missing and number is not None and number != 0:
        raise DataError(
            "The dump of d3rlpy has other columns",
            where=file.where,
            expected=", ".join(NEEDED),
            got=f"no {', '.join(missing)}",
            hint="write the episodes as a ReplayBuffer of d3rlpy 2",
        )
    if number is None or number.ndim or number.dtype.kind not in "iu" or not 0 < number <= len(names):
        raise DataError("The dump has no episodes", where=file.where, column="num_episodes", got=str(number)[:80])
    return int(number)


def _episode(file: Group, number: int, names: set[str]) -> dict[str, Any]:
    """The steps of one episode; one that did not terminate was cut after its last step."""
    rewards = f"rewards_{number}"
    steps = len(file.steps(rewards))
    columns: dict[str, Any] = {"episode_id": np.full(steps, number), "step": np.arange(steps)}
    whole, parts = f"observations_{number}", 0
    while whole not in names and f"{whole}_{parts}" in names:
        columns[f"observation.{parts}"] = file.steps(f"{whole}_{parts}", steps)
        parts += 1
    if not parts:
        columns["observation"] = file.steps(whole, steps)
    columns["action"] = file.steps(f"actions_{number}", steps)
    columns["reward"] = file.each(rewards, steps)
    ended = file.values(f"terminated_{number}")
    if ended is None or ended.size != 1 or ended.dtype.kind not in "biuf":
        problem = "An episode does not say whether it ended"
        raise DataError(problem, where=file.where, column=f"terminated_{number}", expected="true or false")
    last = np.arange(steps) == steps - 1
    columns["terminated"], columns["truncated"] = last & bool(ended), last & (not bool(ended))
    return columns


def read_mdp(file: Group) -> NotedArrays:
    """The steps of an MDPDataset of version 1."""
    if "version" not in file.names:
        raise DataError(
            "The file was written by d3rlpy before 1.0, which kept a reward one row after its action",
            where=file.where,
            expected="an entry 'version'",
            got="none",
            hint="load the file with d3rlpy 1.1, which moves the rewards, and write it again with dump()",
        )
    rows = len(file.steps("rewards"))
    action = file.steps("actions", rows)
    discrete = file.values("discrete_action")
    if discrete is not None and discrete.size == 1 and bool(discrete):
        action = _whole(file, action)
    arrays = {"observation": file.steps("observations", rows), "action": action, "reward": file.each("rewards", rows)}
    arrays["terminated"] = file.flags("terminals", rows)
    if "episode_terminals" in file.names:
        ends = file.flags("episode_terminals", rows)
        arrays["truncated"] = (ends != 0) & (arrays["terminated"] == 0)
    return NotedArrays(arrays | counted((arrays["terminated"] != 0) | arrays.get("truncated", False)))


def _whole(file: Group, action: Any) -> Any:
    """Classes that may be stored as floats."""
    if action.dtype.kind == "f" and not np.array_equal(action, np.floor(action)):
        raise DataError("The file says that actions are classes, and some are not", where=file.where, column="actions")
    return action.astype(np.int64) if action.dtype.kind in "fiub" else action


def hold(buffer: Any) -> BufferTable:
    """The episodes of a buffer or of an MDPDataset."""
    episodes, name = list(buffer.episodes), "d3rlpy buffer"
    if not episodes:
        raise empty_buffer(name)
    return BufferTable(name, table_of_steps(episodes, {}))


FORMAT = Format("d3rlpy", hold=hold)
