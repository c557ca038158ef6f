"""A source while its plan is being made: which parts its states and actions have, their roles, and what is missing.

All sources must agree on the shape of observations and actions. Where missing values are kept, every number that has
some gets a part of its own that says where.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from mixope.base.errors import Advice, DataError, Setting
from mixope.logs.names import Assignment, missing
from mixope.logs.parts import ColumnPart, expand
from mixope.logs.roles import action_classes, counter, missing_in, refuse_many_actions, roles_of
from mixope.logs.schema import ActionKind, ObservationKind, Role
from mixope.logs.sources import Source
from mixope.logs.types import settle


@dataclass
class Draft:
    """One source while the plan is being made."""

    source: Source
    found: Mapping[str, Assignment]
    clock: str | None = None
    """The column whose times order the rows of an episode, where no column counts the steps."""
    observation: list[ColumnPart] = field(default_factory=list)
    action: list[ColumnPart] = field(default_factory=list)
    following: list[ColumnPart] = field(default_factory=list)
    """The parts of the next observation, in the order of the observation's; none where it is derived."""
    observation_kind: ObservationKind = "id"
    action_kind: ActionKind = "discrete"
    roles: tuple[Role, ...] = ()
    """Of the parts of the observation."""
    filled: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    """Parts with missing values that are kept, and how many these are in states and in next states."""


def lay_out(drafts: Sequence[Draft]) -> None:
    """Parts and roles of all drafts."""
    for draft in drafts:
        _expand(draft)
    count = counter([(draft.source, draft.observation) for draft in drafts])
    refuse_many_actions([(draft.source, draft.action) for draft in drafts if draft.action_kind == "discrete"])
    for draft in drafts:
        draft.observation_kind, draft.roles = roles_of(draft.observation, draft.source, count, draft.action)
        _agree(drafts[0], draft)
        _pair(draft)
    _keep_missing(drafts)


def leave_out_empty(found: dict[str, Assignment], source: Source) -> list[str]:
    """A flag without a single value says nothing: it is absent, and a note says so."""
    empty = {
        notion: found[notion].columns[None]
        for notion in ("terminated", "truncated")
        if notion in found
        and all(field.kind == "null" for _, field in source.fields_in(found[notion].columns[None] or ""))
    }
    for notion in empty:
        del found[notion]
    return [f"{source.name}: column {raw!r} holds nothing and is left out" for raw in empty.values()]


def require(found: Mapping[str, Assignment], source: Source) -> None:
    """What no log can do without."""
    for notion in ("observation", "action", "reward"):
        if notion not in found:
            raise missing(notion, source.names, source.name, problem=f"The log has no column for the {notion}")


def _expand(draft: Draft) -> None:
    draft.observation = expand(draft.found["observation"], "observation", draft.source)
    draft.action = expand(draft.found["action"], "action", draft.source)
    kinds = [settle(draft.source.fields_in(part.raw, part.item), part.raw) for part in draft.action]
    classes = action_classes(draft.action, draft.source)
    if "float" in kinds and not classes:
        draft.action_kind = "continuous"
    elif len(draft.action) > 1:
        raise DataError(
            "A discrete action is one column",
            where=draft.source.name,
            column=", ".join(dict.fromkeys(part.raw for part in draft.action)),
            hint="combine the columns into one id, for example a string",
        )


def _pair(draft: Draft) -> None:
    """The parts of the next observation, where the log has one: the same as those of the observation."""
    if "next_observation" in draft.found:
        width = len(draft.observation)
        after = expand(draft.found["next_observation"], "next_observation", draft.source, width=width)
        _check_factors(draft.observation, after, draft.observation_kind, draft.source)
        by_suffix = {part.suffix: part for part in after}
        draft.following = [by_suffix.get(part.suffix, after[0]) for part in draft.observation]


def _keep_missing(drafts: Sequence[Draft]) -> None:
    """Where missing values are kept: which parts have some, and for each number of them a part that says so."""
    for draft in drafts:
        if draft.source.missing == "keep" and len(draft.observation) > 1:
            now, after = (
                missing_in(parts, draft.source) if parts else {} for parts in (draft.observation, draft.following)
            )
            draft.filled = {suffix: (now.get(suffix, 0), after.get(suffix, 0)) for suffix in now.keys() | after.keys()}
    gappy = {suffix for draft in drafts for suffix in draft.filled}
    for draft in drafts if gappy else ():
        draft.filled = {suffix: draft.filled.get(suffix, (0, 0)) for suffix in gappy}
        roles = list(zip(draft.observation, draft.roles, strict=True))
        gaps = {part.suffix for part, role in roles if role == "number" and part.suffix in gappy}
        draft.observation = _with_indicators(draft.observation, gaps)
        draft.following = _with_indicators(draft.following, gaps)
        draft.roles = tuple(
            each for part, role in roles for each in ((role, "missing") if part.suffix in gaps else (role,))
        )
        draft.observation_kind = "mixed" if gaps else draft.observation_kind


def _with_indicators(parts: Sequence[ColumnPart], gaps: Container[str | None]) -> list[ColumnPart]:
    return [each for part in parts for each in ((part, part.indicator) if part.suffix in gaps else (part,))]


def _agree(first: Draft, other: Draft) -> None:
    """Observations and actions have the same shape in every source."""
    for notion in ("observation", "action"):
        mine, theirs = _shape(first, notion), _shape(other, notion)
        if mine != theirs:
            raise DataError(
                f"The sources disagree on the {notion}",
                where=f"{first.source.name} and {other.source.name}",
                column=notion,
                expected=mine,
                got=theirs,
                hint=Advice(
                    "read logs of the same problem together, or map the columns: ", Setting("columns", {...: ...})
                ),
            )


def _shape(draft: Draft, notion: str) -> str:
    kind = draft.observation_kind if notion == "observation" else draft.action_kind
    parts = draft.observation if notion == "observation" else draft.action
    return f"{kind} " + ", ".join(sorted(part.name(notion, kind) for part in parts))


def _check_factors(
    now: Sequence[ColumnPart], after: Sequence[ColumnPart], kind: ObservationKind, source: Source
) -> None:
    """Observation and next observation have the same factors."""
    mine = {part.name("observation", kind).partition(".")[2] for part in now}
    theirs = {part.name("next_observation", kind).partition(".")[2] for part in after}
    if mine != theirs:
        raise DataError(
            "observation and next_observation have different factors",
            where=source.name,
            column=", ".join(sorted(mine ^ theirs)),
            expected="next_observation: " + (", ".join(sorted(mine)) if mine != {""} else "one column"),
            got=", ".join(sorted(theirs)) if theirs != {""} else "one column",
            hint=Advice(
                "map both with lists of the same length: ",
                Setting("columns", {"observation": [...], "next_observation": [...]}),
            ),
        )


def notes_on_missing(drafts: Sequence[Draft]) -> list[str]:
    """Which missing values were kept, over all sources."""
    roles = {part.suffix: role for part, role in zip(drafts[0].observation, drafts[0].roles, strict=True)}
    rows = sum(sum(draft.source.counts()) for draft in drafts) if drafts[0].filled else 0
    notes = []
    for suffix in sorted(drafts[0].filled, key=str):
        number = roles[suffix] == "number"
        kept = "the mean of the others, and a column that says so" if number else "a class of its own"
        now, after = (sum(draft.filled[suffix][k] for draft in drafts) for k in (0, 1))
        share = f"{now:,} of {rows:,} rows" + (f" and in {after:,} next states" if after else "")
        notes.append(f"the state's column {suffix!r} is missing on {share}; there it is {kept}")
    return notes
