"""Which column of a policy table is which: by the user's words, then by name, then as the logs call it, then by alias.

A table has a state (``observation``, or factors ``observation.x``, ``observation.y``), an ``action``, a ``prob`` unless
it is a rule, and maybe a ``policy_id`` where several policies share it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mixope.base.errors import Advice, DataError, Setting, UnknownName, UsageError
from mixope.logs.names import ALIASES as LOGGED
from mixope.logs.names import factor_name, factor_of, meaning_of, prefix_of

if TYPE_CHECKING:
    from mixope.logs import Logs

ALIASES: Mapping[str, tuple[str, ...]] = {
    "observation": LOGGED["observation"],
    "action": LOGGED["action"],
    "prob": ("probability", "p", "pi"),
    "policy_id": LOGGED["policy_id"],
}
_LOGARITHMS = ("log_prob", "logp", "action_logp", "action_log_prob", "logprob")

_OTHERWISE = {"observation": ", or observation.*", "prob": "; or a rule: one row per state, and no other columns"}

Renaming = Mapping[str, "str | Sequence[str]"]
"""Canonical name to the table's own; ``observation`` may name several columns, the factors."""


@dataclass(frozen=True)
class Names:
    """What is known of the names of a table's columns: what the user said, and what the logs call the same."""

    said: Renaming | None = None
    logged: Renaming = field(default_factory=dict)

    @classmethod
    def of(cls, said: Renaming | None, logs: Logs | None) -> Names:
        """With the names of some logs, if any."""
        return cls(said) if logs is None else cls(said, {role: logs.schema.mapping[role] for role in LIKE_LOGS})


LIKE_LOGS = ("observation", "action")
"""What a table may call as the logs do."""


@dataclass(frozen=True)
class Roles:
    """The columns of one table by what they mean. ``factors`` are names without prefix, if the state has several."""

    observation: tuple[str, ...]
    factors: tuple[str, ...] | None
    action: str
    prob: str | None
    """None where the table is a rule, one row per state."""
    policy_id: str | None
    search: _Search

    @property
    def ids(self) -> tuple[str, ...]:
        """All columns that hold ids."""
        return (*self.observation, self.action, *([self.policy_id] if self.policy_id else []))


def assign_roles(names: Sequence[str], known: Names, where: str | None = None) -> Roles:
    """Match the columns of a table to their roles, by what is known first, then by name and alias."""
    renaming = known.said
    if renaming is not None and not isinstance(renaming, Mapping):
        raise UsageError(f"columns maps roles to the table's columns, such as {{'prob': 'pi_new'}}; got {renaming!r}")
    search = _Search(tuple(names), dict(renaming or {}), known.logged, where)
    observation, factors = search.observation()
    action, policy_id = search.required("action"), search.optional("policy_id")
    prob = search.prob((*observation, action, policy_id))
    return Roles(observation, factors, action, prob, policy_id, search)


@dataclass(frozen=True)
class _Search:
    names: tuple[str, ...]
    renaming: dict[str, str | Sequence[str]]
    logged: Renaming
    where: str | None

    def __post_init__(self) -> None:
        for role, columns in self.renaming.items():
            if role not in ALIASES:
                raise UnknownName("column role", role, ALIASES)
            several: Any = columns if isinstance(columns, list | tuple) else [columns]
            if not several or not all(isinstance(column, str) for column in several):
                raise UsageError(f"columns names a column for {role!r}, or several of them; got {columns!r}")
            for column in several:
                self._check_there(column)

    def observation(self) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """The state's columns, and the names of its factors where it has several columns."""
        given = self.renaming.get("observation") or self._as_logged("observation")
        if isinstance(given, str):
            return (given,), None
        if given is not None:
            return tuple(given), tuple(factor_name(name, "observation") for name in given)
        single, factors = self.optional("observation"), self._factor_columns()
        if single and factors:
            raise DataError(
                "the table has the state twice, as one column and as factors",
                where=self.where,
                got=", ".join((single, *factors)),
                hint=Advice(Setting("policy_column", "observation")),
            )
        if factors:
            return factors, tuple(factor_name(name, "observation") for name in factors)
        return (single or self.required("observation"),), None

    def _as_logged(self, role: str) -> str | Sequence[str] | None:
        """The columns that are called as in the logs, if all of them are there and none has the proper name."""
        found = self.logged.get(role)
        columns = [found] if isinstance(found, str) else found or []
        proper = any(name.lower().partition(".")[0] == role for name in self.names)
        return found if columns and not proper and set(columns) <= set(self.names) else None

    def _logged_names(self, role: str) -> str:
        """What the logs call it, where that is another name."""
        found = self.logged.get(role, role)
        columns = [found] if isinstance(found, str) else found
        own = [name for name in columns if meaning_of(name) != role]
        return f"; or {', '.join(columns)}, as in the logs" if own else ""

    def _factor_columns(self) -> tuple[str, ...]:
        found = tuple(name for name in self.names if meaning_of(name) == "observation" and factor_of(name))
        if len({prefix_of(name).lower() for name in found}) > 1:
            raise self._ambiguous("observation", found)
        return found

    def required(self, role: str) -> str:
        """The one column of a role, or an error that says what was looked for."""
        found = self.optional(role)
        if found is None:
            raise self.missing(role)
        return found

    def optional(self, role: str) -> str | None:
        """The column of a role: as told, by its proper name, or by the only alias there is."""
        given = self.renaming.get(role) or self._as_logged(role)
        if given is not None:
            if not isinstance(given, str):
                raise UsageError(f"columns[{role!r}] is one column name, got {given!r}")
            return given
        for wanted in ((role,), ALIASES[role]):
            found = tuple(name for name in self.names if name.lower() in wanted)
            if len(found) > 1:
                raise self._ambiguous(role, found)
            if found:
                return found[0]
        return None

    def prob(self, besides: Sequence[str | None]) -> str | None:
        """The column of probabilities; none only where no column is left that could be one: then it is a rule."""
        found = self.optional("prob")
        if found is None and not set(self.names) <= set(besides):
            raise self.missing("prob")
        return found

    def _check_there(self, column: str) -> None:
        if column not in self.names:
            near = difflib.get_close_matches(column, self.names, n=1)
            raise DataError(
                f"the table has no column {column!r}",
                where=self.where,
                got=self._listed(),
                hint=f"did you mean {near[0]!r}?" if near else None,
            )

    def _ambiguous(self, role: str, found: Sequence[str]) -> DataError:
        return DataError(
            f"several columns could be the {role}",
            where=self.where,
            got=", ".join(found),
            hint=Advice(Setting("policy_column", role)),
        )

    def missing(self, role: str) -> DataError:
        """The error about a role without a column."""
        logs = [name for name in self.names if name.lower() in _LOGARITHMS]
        hint: str = Advice(Setting("policy_column", role))
        if role == "prob" and logs:
            hint = f"the table has {logs[0]!r}: write its exponential as a column prob"
        return DataError(
            f"the table has no column for the {role}",
            where=self.where,
            expected=" or ".join((role, *ALIASES[role])) + _OTHERWISE.get(role, "") + self._logged_names(role),
            got=self._listed(),
            hint=hint,
        )

    def _listed(self) -> str:
        return "columns " + (", ".join(self.names) or "(none)")
