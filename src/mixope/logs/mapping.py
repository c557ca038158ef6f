"""Which column of a file is which: aliases, factors, and the user's own words.

Order of precedence: the user's ``columns``; the exact canonical name; an alias. Two aliases of one notion are an error,
not a guess. The result says for every notion the columns that hold it, factor by factor.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mixope.errors import DataError, UnknownName
from mixope.logs import aliases
from mixope.logs.schema import CANONICAL

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
    for key in columns or {}:
        if key not in CANONICAL:
            raise UnknownName("canonical column", key, CANONICAL)
    return {k: v if isinstance(v, str) or v is None else tuple(v) for k, v in (columns or {}).items()}


def check_done(done: str | None) -> str | None:
    """``done`` must say terminated or truncated."""
    if done not in {None, "terminated", "truncated"}:
        raise UnknownName("meaning of done", done, ("terminated", "truncated"))
    return done


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
    for canonical, group in aliases.by_meaning(free).items():
        if canonical not in columns:
            found[canonical] = _choose(canonical, group, where)
    _pair_factors(found, columns)
    _add_done(found, free, where, done)
    _check_case(found, names, where)
    return found, _notes(found, free)


def _given(canonical: str, given: str | tuple[str, ...], names: Sequence[str], where: str) -> Assignment:
    wanted = (given,) if isinstance(given, str) else given
    for column in wanted:
        if column not in names:
            raise missing(column, names, where, problem=f"The column mapped to {canonical!r} is not in the log")
    if isinstance(given, str):
        return Assignment({None: given})
    if canonical not in aliases.WITH_FACTORS:
        raise DataError(f"{canonical!r} is one column, not several", where=where, got=", ".join(given))
    return Assignment({aliases.factor(c) if aliases.meaning(c) == canonical else c: c for c in given})


def missing(column: str, names: Iterable[str], where: str, *, problem: str) -> DataError:
    """A column that is not there, with the nearest ones that are."""
    names = list(names)
    near = difflib.get_close_matches(column, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "name the right column: columns={…}"
    return DataError(problem, where=where, column=column, expected=f"one of: {', '.join(names)}", hint=hint)


def _choose(canonical: str, group: list[str], where: str) -> Assignment:
    families: dict[str, list[str]] = {}
    for column in group:
        family = aliases.prefix(column) + (".*" if aliases.factor(column) else "")
        families.setdefault(family, []).append(column)
    exact = [family for family in families if family in {canonical, f"{canonical}.*"}]
    candidates = exact or list(families)
    if len(candidates) > 1:
        raise DataError(
            f"Two columns could be {canonical!r}: {' and '.join(repr(c) for c in candidates)}",
            where=where,
            hint=f"say which: columns={{{canonical!r}: {candidates[0]!r}}}",
        )
    return Assignment({aliases.factor(column): column for column in families[candidates[0]]})


def _pair_factors(found: dict[str, Assignment], columns: Mapping[str, object]) -> None:
    """A list given for next_observation follows the order of the factors given for observation."""
    now, after = found.get("observation"), found.get("next_observation")
    if now is None or after is None or now.whole or after.whole or "next_observation" not in columns:
        return
    if len(now.columns) == len(after.columns) and set(now.columns) != set(after.columns):
        found["next_observation"] = Assignment(dict(zip(now.columns, after.columns.values(), strict=True)))


def _add_done(found: dict[str, Assignment], free: Sequence[str], where: str, done: str | None) -> None:
    present = [name for name in free if name.lower() in aliases.DONE]
    if done is not None and done not in found:
        if not present:
            raise DataError(
                f"done={done!r} was given, but the log has no done column",
                where=where,
                expected=", ".join(aliases.DONE),
            )
        found[done] = Assignment({None: present[0]})
    elif present and "terminated" not in found and "truncated" not in found:
        raise DataError(
            "A lone done column is ambiguous: a true end, or cut by the recorder?",
            where=where,
            column=present[0],
            expected="columns terminated and truncated, or done='terminated' or done='truncated'",
            hint="done='terminated' if nothing can follow, done='truncated' if a time limit cut the episode",
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
    plain = [name for name in free if name.lower() == "prob"]
    if plain and "action_prob" not in found and "action_logp" not in found:
        return [
            f"column {plain[0]!r} was ignored: if it is the logger's own probability of the action, "
            f"map it: columns={{'action_prob': {plain[0]!r}}}"
        ]
    return []
