"""Episodes that are held one by one → one table: dicts of arrays, objects with such attributes, or lists of steps.

    [{"observations": (T + 1, k), "actions": (T,), "rewards": (T,), "terminations": (T,), "truncations": (T,)}, …]

Observations that are one longer than the actions are those of Gymnasium: the last one is the next observation of the
last step, so no step is lost. A single flag says how the episode ended, a single label holds for all of its steps. A
list of dicts whose rewards are single numbers is a list of rows. Columns are named as in files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mixope.base.errors import DataError
from mixope.logs.names import DONE, WITH_FACTORS, factor_of, meaning_of, numbered
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.steps import INFOS

ATTRIBUTES: tuple[str, ...] = (
    *("observations", "actions", "rewards", "next_observations", "infos", *("episode_id", "policy_id", "unit")),
    *("terminations", "terminated", "terminals", "truncations", "truncated", "timeouts", "dones"),
    *("action_prob", "action_logp", "log_probs"),
)
"""What is looked for in an object that is an episode."""
FLAGS = ("terminated", "truncated", "done")
LABELS = ("episode_id", "policy_id", "unit")
SAME = "give every episode the same columns, of the same form"

Arrays = dict[str, Any]


def is_list_of_steps(given: Any) -> bool:
    """Whether something is a list whose entries are episodes or rows, as far as the first one tells."""
    return isinstance(given, list | tuple) and len(given) > 0 and _is_held(given[0])


def is_episode(given: Any) -> bool:
    """Whether an object has the arrays of an episode as attributes."""
    return all(hasattr(given, name) for name in ("observations", "actions", "rewards"))


def _is_held(entry: Any) -> bool:
    steps = isinstance(entry, list | tuple) and len(entry) > 0 and isinstance(entry[0], Mapping)
    return isinstance(entry, Mapping) or is_episode(entry) or steps


def table_of_steps(given: Sequence[Any], columns: Mapping[str, Any]) -> Any:
    """An Arrow table of all episodes, or of the rows where they are rows; ``columns`` are the user's names."""
    meanings = Meanings.of(columns)
    if all(_is_row(entry, meanings) for entry in given):
        return table_of_arrays(_opened(_gathered(given, "row", "the list")), "rows")
    found = [_episode(_arrays_of(entry, number), number, meanings) for number, entry in enumerate(given)]
    _refuse_twins(found, meanings)
    return table_of_arrays(_joined(found, meanings), "episodes")


class Meaning(NamedTuple):
    """What a column stands for, and which part of an observation or action it is."""

    notion: str | None = None
    factor: str | None = None

    @property
    def after(self) -> str:
        """The column of the next observation that belongs to one of the observation."""
        return "next_observation" if self.factor is None else f"next_observation.{self.factor}"


class Meanings(NamedTuple):
    """What the user's names stand for."""

    mapped: Mapping[str, Meaning]

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Meanings:
        """From canonical name → column, or columns that are factors."""
        whole = {raw: Meaning(notion) for notion, raw in columns.items() if isinstance(raw, str)}
        parts = [(notion, raws) for notion, raws in columns.items() if isinstance(raws, tuple)]
        return cls(whole | {raw: Meaning(notion, factor_of(raw) or raw) for notion, raws in parts for raw in raws})

    def by_name(self, names: Sequence[str]) -> dict[str, Meaning]:
        """Of every column: the user's, that of its name, or that of a row of numbered columns."""
        rows = {
            raw: Meaning(meaning_of(prefix), number)
            for prefix, row in numbered(names).items()
            for number, raw in row.items()
            if meaning_of(prefix) in WITH_FACTORS
        }
        own = {name: Meaning(_notion(name), factor_of(name)) for name in names if _notion(name)}
        return dict.fromkeys(names, Meaning()) | rows | own | {n: self.mapped[n] for n in names if n in self.mapped}


def _notion(name: str) -> str | None:
    return "done" if name.lower() in DONE else meaning_of(name)


def _is_row(entry: Any, meanings: Meanings) -> bool:
    """Whether a dict is one step: its reward is a single value."""
    if not isinstance(entry, Mapping):
        return False
    by_name = meanings.by_name([str(name) for name in entry])
    rewards = [value for name, value in entry.items() if by_name[str(name)].notion == "reward"]
    return bool(rewards) and not isinstance(rewards[0], Mapping) and np.ndim(rewards[0]) == 0


def _arrays_of(entry: Any, number: int) -> Arrays:
    """The arrays of one episode by name, those of a dict in it by ``name.key``."""
    if isinstance(entry, Mapping):
        return _opened({str(name): value for name, value in entry.items()})
    if is_episode(entry):
        held = {name: getattr(entry, name) for name in ATTRIBUTES if hasattr(entry, name)}
        return _opened({name: value for name, value in held.items() if not callable(value)})
    if isinstance(entry, list | tuple) and all(isinstance(step, Mapping) for step in entry):
        return _opened(_gathered(entry, "step", _named(number)))
    raise DataError(
        "An entry of the list is no episode",
        where=_named(number),
        expected="a dict of arrays, a list of dicts (one per step), or an object with observations, actions, rewards",
        got=type(entry).__name__,
    )


def _named(number: int) -> str:
    return f"episode {number} of the list"


def _gathered(steps: Sequence[Mapping[str, Any]], each: str, where: str) -> Arrays:
    """Dicts of values as a dict of lists. The last dict may hold nothing but the last observation."""
    names = list(dict.fromkeys(str(name) for step in steps for name in step))
    cut = len(steps) > 1 and {_notion(str(name).partition(".")[0]) for name in steps[-1]} == {"observation"}
    found: Arrays = {}
    for name in names:
        rows = steps[:-1] if cut and _notion(name.partition(".")[0]) != "observation" else steps
        lacking = next((position for position, step in enumerate(rows) if name not in step), None)
        if lacking is not None and _notion(name) in ("observation", "action", "reward"):
            raise DataError(f"A {each} lacks {name!r}, which others have", where=f"{each} {lacking} of {where}")
        values = [step.get(name) for step in rows]
        found[name] = _turned(values, name, each, where) if isinstance(values[0], Mapping) else values
    return found


def _turned(values: Sequence[Any], name: str, each: str, where: str) -> Arrays:
    """Dicts that are values, such as observations, as a dict of lists."""
    for position, value in enumerate(values):
        if not isinstance(value, Mapping) or value.keys() != values[0].keys():
            raise DataError(
                f"{name!r} does not have the same parts everywhere",
                where=f"{each} {position} of {where}",
                expected=", ".join(map(str, values[0])),
                got=", ".join(map(str, value)) if isinstance(value, Mapping) else type(value).__name__,
            )
    return {str(key): [value[key] for value in values] for key in values[0]}


def _opened(arrays: Mapping[str, Any]) -> Arrays:
    """Without dicts and without what is None; of ``infos`` only what means something."""
    found: Arrays = {}
    for name, value in arrays.items():
        if name == "infos":
            held = value if isinstance(value, Mapping) else {}
            found |= {f"infos.{key}": held[key] for key in INFOS if held.get(key) is not None}
        elif isinstance(value, Mapping):
            found |= _opened({f"{name}.{key}": inner for key, inner in value.items()})
        elif _is_tuple_of_parts(name, value):
            found |= {f"{name}.{position}": part for position, part in enumerate(value)}
        elif value is not None:
            found[name] = value
    return found


def _is_tuple_of_parts(name: str, value: Any) -> bool:
    """Whether an observation or action is that of a Tuple space: arrays of one length, which is not their number."""
    if not isinstance(value, tuple) or _notion(name) not in WITH_FACTORS:
        return False
    lengths = {len(part) for part in value if isinstance(part, np.ndarray) and part.ndim}
    return len(lengths) == 1 and len(value) not in lengths and all(isinstance(part, np.ndarray) for part in value)


def _episode(given: Arrays, number: int, meanings: Meanings) -> Arrays:
    """The columns of one episode, each with one entry per step."""
    where, by_name = _named(number), meanings.by_name([*given])
    arrays = {name: _array(value, name, where) for name, value in given.items()}
    size = Size.of(arrays, by_name, where)
    found: Arrays = {}
    for name, array in arrays.items():
        meaning = by_name[name]
        if name.startswith("infos."):
            found[name.partition(".")[2]] = size.check(array[-size.steps :] if array.ndim else array, name)
        elif meaning.notion == "observation":
            seen = size.check(array, name, size.observations)
            found[name] = seen[: size.steps]
            if size.observations > size.steps and not size.has_next:
                found[meaning.after] = seen[1:]
        elif meaning.notion in WITH_FACTORS:
            found[name] = size.check(array, name)
        elif meaning.notion is not None:
            found[name] = size.check(_spread(array, meaning.notion, size.steps), name).reshape(size.steps)
        elif array.ndim == 1 and len(array) == size.steps:
            found[name] = array
    return _with_keys(found, number, size.steps, meanings)


class Size(NamedTuple):
    """How many steps and observations an episode has. ``lead``: by this action; ``has_next``: next ones are given."""

    where: str
    lead: str
    steps: int
    observations: int
    has_next: bool

    @classmethod
    def of(cls, arrays: Arrays, by_name: Mapping[str, Meaning], where: str) -> Size:
        """By the arrays of the episode; an error where it lacks what every step has."""
        first = {meaning.notion: name for name, meaning in reversed([*by_name.items()])}
        for notion in ("observation", "action", "reward"):
            if notion not in first:
                got = ", ".join(arrays) or "nothing"
                raise DataError(f"An episode has no {notion}", where=where, column=notion, got=got)
        lead = first["action"]
        steps = len(arrays[lead]) if arrays[lead].ndim else -1
        if steps < 0:
            raise DataError("An episode has a single action", where=where, column=lead, expected="an array")
        seen = [array for name, array in arrays.items() if by_name[name].notion == "observation" and array.ndim]
        longer = any(len(array) == steps + 1 for array in seen)
        return cls(where, lead, steps, steps + longer, "next_observation" in first)

    def check(self, array: Any, name: str, rows: int | None = None) -> Any:
        """The array, if it has so many entries: as many as there are steps, unless told."""
        rows = self.steps if rows is None else rows
        if array.ndim == 0 or len(array) != rows or (meaning_of(name) not in WITH_FACTORS and array.size != rows):
            expected = f"{self.steps} entries, as {self.lead!r} has"
            if meaning_of(name) == "observation":
                expected += f", or {self.steps + 1} with the observation after the last step"
            got = f"an array of shape {array.shape}" if array.ndim > 1 else f"{array.size} entries"
            raise DataError("An episode is not whole", where=self.where, column=name, expected=expected, got=got)
        return array


def _array(value: Any, name: str, where: str) -> Any:
    try:
        tensor = value.detach().cpu() if hasattr(value, "detach") and hasattr(value, "cpu") else value
        return value if isinstance(value, np.ndarray) else np.asarray(tensor)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError("The argument is not an array", where=where, column=name, got=str(error)) from error


def _spread(array: Any, notion: str, steps: int) -> Any:
    """A single flag as that of the last step, a single label as that of all."""
    if array.ndim or notion not in (*FLAGS, *LABELS):
        return array
    if notion in LABELS:
        return np.full(steps, array[()])
    flags = np.zeros(steps, dtype=bool)
    flags[-1:] = bool(array)
    return flags


def _with_keys(found: Arrays, number: int, steps: int, meanings: Meanings) -> Arrays:
    """With the number of the episode and of each step, where it does not say them itself."""
    said = {meaning.notion for meaning in meanings.by_name([*found]).values()}
    keys = {"episode_id": np.full(steps, number), "step": np.arange(steps)}
    return {name: values for name, values in keys.items() if name not in said} | found


def _refuse_twins(episodes: Sequence[Arrays], meanings: Meanings) -> None:
    """Two entries under one name and one logger would become one episode."""
    seen: dict[tuple[str, ...], int] = {}
    for number, arrays in enumerate(episodes):
        by_name = meanings.by_name([*arrays])
        keys = [(by_name[name].notion, name) for name in arrays if by_name[name].notion in LABELS]
        first = tuple(str(arrays[name][0]) for _, name in sorted(keys, key=str) if len(arrays[name]))
        if first and first in seen:
            raise DataError(
                "Two entries of the list are the same episode of the same logger",
                where=f"episodes {seen[first]} and {number} of the list",
                column="episode_id",
                expected="a number or name of its own for every episode, or none",
                got=first[0],
            )
        seen[first] = number


def _joined(episodes: Sequence[Arrays], meanings: Meanings) -> Arrays:
    """All episodes, one after the other; columns without a meaning only where all have them."""
    names = dict.fromkeys(name for arrays in episodes for name in arrays)
    by_name = meanings.by_name([*names])
    joined: Arrays = {}
    for name in names:
        lacking = next((number for number, arrays in enumerate(episodes) if name not in arrays), None)
        if lacking is None:
            joined[name] = _concatenated([arrays[name] for arrays in episodes], name)
        elif by_name[name].notion:
            raise DataError(
                "Some episodes have a column that others lack",
                where=_named(lacking),
                column=name,
                expected=", ".join(name for name in names if by_name[name].notion),
                got=", ".join(episodes[lacking]),
                hint=SAME,
            )
    return joined


def _concatenated(parts: Sequence[Any], name: str) -> Any:
    """The values of all episodes, none of which becomes another by standing beside others."""
    for number, part in enumerate(parts):
        texts = part.dtype.kind in "US"
        if part.shape[1:] != parts[0].shape[1:] or (len(part) and texts != (parts[0].dtype.kind in "US")):
            raise DataError(
                "Episodes differ in the form of a column",
                where=_named(number),
                column=name,
                expected=_form(parts[0]),
                got=_form(part),
                hint=SAME,
            )
    whole = all(part.dtype.kind in "iub" for part in parts)
    module: Any = np.ma if any(np.ma.isMaskedArray(part) for part in parts) else np
    joined = module.concatenate(parts)
    return np.concatenate([part.astype(object) for part in parts]) if whole and joined.dtype.kind == "f" else joined


def _form(array: Any) -> str:
    kind = "text" if array.dtype.kind in "US" else str(array.dtype)
    return f"{kind}, {' × '.join(map(str, array.shape[1:])) or 'one value'} per step"
