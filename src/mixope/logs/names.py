"""Which column of a file is which: what other libraries call our columns, and the user's own words.

A column is recognised by its name, whatever the case. Several columns ``observation.cell, observation.passenger`` (or
``obs.cell``, ``state.cell`` …) are the factors of one observation, and so are ``obs_0, obs_1, obs_2`` where nothing
else is the observation. A column named plain ``prob`` is nobody's: it is as often the target's probability as the
logger's.

Order of precedence: the user's ``columns``; the exact canonical name; an alias. Two aliases of one notion are an error,
not a guess. The result says for every notion the columns that hold it, factor by factor.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mixope.base.errors import Advice, DataError, Setting, UnknownName, UsageError
from mixope.logs.schema import CANONICAL

ALIASES: dict[str, tuple[str, ...]] = {
    "episode_id": (
        "eps_id",
        "episode",
        "episode_index",
        "traj_id",
        "trajectory_id",
        "session_id",
        "mdp_id",
        "episode_number",
        "trajectory_index",
    ),
    "step": (
        "t",
        "frame_index",
        "timestep",
        "time_step",
        "sequence_number",
        "step_index",
        "step_id",
        "step_number",
    ),
    "observation": ("obs", "observations", "state", "states", "s", "context"),
    "action": ("a", "actions", "act", "acts"),
    "reward": ("r", "rewards", "next.reward", "rew", "rews"),
    "next_observation": (
        "new_obs",
        "next_obs",
        "next_observations",
        "next_state",
        "next_states",
        "s_next",
        "obs_next",
        "observation_next",
    ),
    "terminated": ("terminal", "terminals", "terminations", "terminateds", "is_terminal", "is_terminated"),
    "truncated": ("timeouts", "truncations", "truncateds", "is_truncated"),
    "policy_id": ("policy", "logger", "behavior_policy", "behaviour_policy", "source", "stratum_idx"),
    "action_prob": ("pscore", "propensity", "propensity_score", "action_probability"),
    "action_logp": ("action_log_prob", "log_prob", "log_probs", "logp", "action_log_probs", "logprob", "logprobs"),
}
"""Canonical name → other names, lower case."""

DONE = ("done", "dones", "is_done", "next.done", "is_last")
"""An end of unknown kind: true end or cut by the recorder."""

UNITS = ("user_id", "customer_id", "patient_id", "subject_id", "machine_id")
"""Names of columns that may say who an episode belongs to: they are named in a note, and not taken unasked."""

WITH_FACTORS = ("observation", "next_observation", "action")
"""The notions that may be spread over several columns ``name.factor``."""

PADDED = (
    "columns is_first and is_last are those of RLDS and dm_env, where the row with is_last has the last observation and"
    " no action: if it is so here, pass the episodes as a list, each with one observation more than actions"
)
"""A note on rows that look like steps and are none."""

_MEANING = {alias: canonical for canonical, names in ALIASES.items() for alias in (canonical, *names)}
_MEANING["unit"] = "unit"

MOST_OFFERED = 8
"""Columns that an error offers for a state of several."""
TIMES = frozenset({"time", "timestamp", "datetime", "date", "ts", "event_time", "created_at"})
"""Names of columns that order the rows of an episode but count no steps."""


def meaning_of(column: str) -> str | None:
    """The canonical name that a column stands for, or None; ``obs.cell`` stands for ``observation``."""
    lower = column.lower()
    if lower in _MEANING:
        return _MEANING[lower]
    prefix, dot, factor = lower.partition(".")
    whole = _MEANING.get(prefix)
    return whole if dot and factor and whole in WITH_FACTORS else None


def factor_of(column: str) -> str | None:
    """The part after the dot of ``obs.cell``, or None for a column that is whole."""
    if column.lower() in _MEANING:
        return None
    return column.partition(".")[2] or None


def factor_name(column: str, notion: str) -> str:
    """What a column is called as one of several: ``cell`` for ``obs.cell``, an observation; others keep their name."""
    return (factor_of(column) if meaning_of(column) == notion else None) or column


def prefix_of(column: str) -> str:
    """The name a factor belongs to: ``obs`` of ``obs.cell``; the column itself if it is whole."""
    return column if factor_of(column) is None else column.partition(".")[0]


def by_meaning(columns: Iterable[str]) -> dict[str, list[str]]:
    """The columns grouped by what they stand for, in file order; strangers are left out."""
    groups: dict[str, list[str]] = {name: [] for name in CANONICAL}
    for column in columns:
        canonical = meaning_of(column)
        if canonical is not None:
            groups[canonical].append(column)
    return {name: group for name, group in groups.items() if group}


def numbered(columns: Iterable[str]) -> dict[str, dict[str | None, str]]:
    """Rows of columns such as ``obs_0, obs_1, obs_2``: by their common name, then by number, counting from 0 or 1."""
    rows: dict[str, dict[int, str]] = {}
    for column in columns:
        if found := re.fullmatch(r"(.*[^\d_\[])[_\[](\d{1,6})\]?", column):
            rows.setdefault(found[1], {})[int(found[2])] = column
    whole = {name: row for name, row in rows.items() if len(row) > 1 and sorted(row) in _counted(len(row))}
    return {name: {str(k): row[k] for k in sorted(row)} for name, row in whole.items()}


def _counted(n: int) -> tuple[list[int], list[int]]:
    return list(range(n)), list(range(1, n + 1))


Columns = Mapping[str, str | Sequence[str] | None]
"""The user's mapping: canonical name → column, columns (factors), or None to ignore it."""


@dataclass(frozen=True)
class Assignment:
    """The columns of one notion: ``{None: column}`` where it is whole, ``{factor: column}`` where it has factors."""

    columns: Mapping[str | None, str]

    @property
    def whole(self) -> bool:
        """Whether it is one column."""
        return None in self.columns

    def words(self) -> str | tuple[str, ...]:
        """For the mapping that people read."""
        return self.columns[None] if self.whole else tuple(self.columns.values())


def check_columns(columns: Columns | None) -> dict[str, str | tuple[str, ...] | None]:
    """The user's mapping with known keys only, and lists as tuples."""
    if not isinstance(columns, Mapping | None):
        raise UsageError(f"columns is a dict, such as {{'reward': 'r'}}, got {columns!r}")
    for key, given in (columns or {}).items():
        if key not in CANONICAL:
            raise UnknownName("canonical column", key, CANONICAL)
        several = isinstance(given, list | tuple) and given and all(isinstance(name, str) for name in given)
        if not (given is None or isinstance(given, str) or several):
            raise UsageError(f"columns[{key!r}] is the name of a column, a list of names or None, got {given!r}")
    return {k: v if isinstance(v, str) or v is None else tuple(v) for k, v in (columns or {}).items()}


def check_done(done: str | None) -> str | None:
    """``done`` must say terminated or truncated."""
    if done not in (None, "terminated", "truncated"):
        raise UnknownName("meaning of done", done, ("terminated", "truncated"))
    return done


def check_ends(ends: str | None) -> str | None:
    """``ends`` must say terminated or truncated."""
    if ends not in (None, "terminated", "truncated"):
        raise UnknownName("kind of end", ends, ("terminated", "truncated"))
    return ends


def assign(
    names: Sequence[str], where: str, columns: Mapping[str, str | tuple[str, ...] | None], done: str | None
) -> tuple[dict[str, Assignment], list[str]]:
    """What every notion found in ``names`` is made of, and notes on what was left aside."""
    found: dict[str, Assignment] = {}
    for canonical, given in columns.items():
        if given is not None:
            found[canonical] = _given(canonical, given, names, where)
    taken = {column for assignment in found.values() for column in assignment.columns.values()}
    free = [name for name in names if name not in taken]
    for canonical, group in by_meaning(free).items():
        if canonical not in columns:
            found[canonical] = _choose(canonical, group, where)
    for prefix, row in numbered(free).items():
        notion = _MEANING.get(prefix.lower())
        if notion in WITH_FACTORS and notion not in found and notion not in columns:
            found[notion] = Assignment(row)
    _pair_factors(found, columns)
    _add_done(found, free, where, done)
    _check_case(found, names, where)
    return found, _notes(found, free)


def _given(canonical: str, given: str | tuple[str, ...], names: Sequence[str], where: str) -> Assignment:
    wanted = (given,) if isinstance(given, str) else given
    for column in wanted:
        if column not in names:
            problem = f"The column mapped to {canonical!r} is not in the log"
            raise missing(canonical, names, where, problem=problem, near=column)
    if isinstance(given, str):
        return Assignment({None: given})
    if canonical not in WITH_FACTORS:
        raise DataError(f"{canonical!r} is one column, not several", where=where, got=", ".join(given))
    if len(given) == 1 and meaning_of(given[0]) == canonical and factor_of(given[0]) is None:
        return Assignment({None: given[0]})
    named: dict[str | None, str] = {factor_name(column, canonical): column for column in given}
    return Assignment(named if len(named) == len({*given}) else {column: column for column in given})


def missing(notion: str, names: Iterable[str], where: str, *, problem: str, near: str | None = None) -> DataError:
    """A column that is not there, with the nearest one that is: to the notion, or to the name that was given."""
    names, asked = list(names), near or notion
    free = names if near else [name for name in names if meaning_of(name) is None]
    alike = difflib.get_close_matches(asked, free, n=1, cutoff=0.5 if near else 0.7)
    rows = [list(row.values()) for row in numbered(free).values()] if notion in WITH_FACTORS and not alike else []
    meant = f"did you mean {alike[0]!r}? " if alike else ""
    only = free if len(free) == 1 else [...]
    named: object = rows[0] if rows else (alike or only)[0]
    said = "say which columns they are: " if rows else "say which column it is: "
    several = notion == "observation" and named is ... and 2 <= len(free) <= MOST_OFFERED
    more: list[str | Setting] = [", or several: ", Setting("columns", {notion: free})] if several else []
    hint = Advice(meant + said, Setting("columns", {notion: named}), *more)
    return DataError(problem, where=where, column=asked, got=f"the columns {', '.join(names)}", hint=hint)


def _choose(canonical: str, group: list[str], where: str) -> Assignment:
    families: dict[str, list[str]] = {}
    for column in group:
        family = prefix_of(column) + (".*" if factor_of(column) else "")
        families.setdefault(family, []).append(column)
    exact = [family for family in families if family in {canonical, f"{canonical}.*"}]
    candidates = exact or list(families)
    if len(candidates) > 1:
        raise DataError(
            f"Two columns could be {canonical!r}: {' and '.join(repr(c) for c in candidates)}",
            where=where,
            hint=Advice("say which: ", Setting("columns", {canonical: candidates[0]})),
        )
    return Assignment({factor_of(column): column for column in families[candidates[0]]})


def _pair_factors(found: dict[str, Assignment], columns: Mapping[str, object]) -> None:
    """A list given for next_observation follows the order of the factors given for observation."""
    now, after = found.get("observation"), found.get("next_observation")
    if now is None or after is None or now.whole or after.whole or "next_observation" not in columns:
        return
    if len(now.columns) == len(after.columns) and set(now.columns) != set(after.columns):
        found["next_observation"] = Assignment(dict(zip(now.columns, after.columns.values(), strict=True)))


def _add_done(found: dict[str, Assignment], free: Sequence[str], where: str, done: str | None) -> None:
    present = [name for name in free if name.lower() in DONE]
    if done is not None and done not in found:
        if not present:
            raise DataError(
                Advice(Setting("done", done), " was given, but the log has no done column"),
                where=where,
                expected=", ".join(DONE),
            )
        found[done] = Assignment({None: present[0]})
    elif present and "terminated" not in found and "truncated" not in found:
        ended, cut = Setting("done", "terminated"), Setting("done", "truncated")
        raise DataError(
            "A lone done column is ambiguous: a true end, or cut by the recorder?",
            where=where,
            column=present[0],
            expected=Advice("columns terminated and truncated, or ", ended, " or ", cut),
            hint=Advice(ended, " if nothing can follow, ", cut, " if a time limit cut the episode"),
        )


def marks_of(found: Mapping[str, Assignment]) -> list[str]:
    """The columns that mark how episodes end."""
    return [found[notion].columns[None] for notion in ("terminated", "truncated") if notion in found]


def refuse_two_words(found: Mapping[str, Assignment], where: str, ends: str | None) -> None:
    """``ends`` is for logs without marks; where the log has some, it says the same twice or contradicts them."""
    marks = marks_of(found)
    if ends is not None and marks:
        raise UsageError(
            Advice(
                Setting("ends", ends),
                f" was given, but {where} marks its ends itself, in column {marks[0]!r}; leave it out, or ignore the"
                " column: ",
                Setting("columns", {notion: None for notion in ("terminated", "truncated") if notion in found}),
            )
        )


def _check_case(found: Mapping[str, Assignment], names: Sequence[str], where: str) -> None:
    lower = [name.lower() for name in names]
    for assignment in found.values():
        for column in assignment.columns.values():
            if lower.count(column.lower()) > 1:
                twins = [name for name in names if name.lower() == column.lower()]
                raise DataError(
                    f"Two columns have the same name up to case: {' and '.join(repr(t) for t in twins)}",
                    where=where,
                    hint="rename or drop one of them",
                )


def _notes(found: Mapping[str, Assignment], free: Sequence[str]) -> list[str]:
    notes: list[str] = []
    plain = [name for name in free if name.lower() == "prob"]
    if plain and "action_prob" not in found and "action_logp" not in found:
        notes.append(
            Advice(
                f"column {plain[0]!r} was ignored: if it is the logger's own probability of the action, map it: ",
                Setting("columns", {"action_prob": plain[0]}),
            )
        )
    units = [name for name in free if name.lower() in UNITS]
    if units and "unit" not in found:
        notes.append(
            Advice(
                f"column {units[0]!r} may say who an episode belongs to: episodes of the same one are not independent,"
                " and intervals that take them for it are too narrow. If it is so here, say ",
                Setting("unit", units[0]),
            )
        )
    if {"is_first", "is_last"} <= {name.lower() for name in free}:
        notes.append(PADDED)
    return notes
