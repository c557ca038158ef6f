"""How each source becomes canonical rows: which raw column, which element of it, and to which type.

A plan is decided once, from names and types alone, and then carried out twice, by ``sql`` and by ``derive``.
All sources must agree on the kind of observations and actions and on the type of every id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixope.errors import DataError
from mixope.logs.acceptance import check, fields_in
from mixope.logs.draft import Column, Draft, Plan
from mixope.logs.layout import check_factors, expand, observation_kind, settle
from mixope.logs.mapping import Assignment, assign, missing
from mixope.logs.schema import Schema, Type
from mixope.logs.sources import Source
from mixope.logs.summary import notes_of, schema_of

FIXED: dict[str, Type] = {
    "policy_id": "string",
    "step": "int",
    "reward": "float",
    "terminated": "bool",
    "truncated": "bool",
    "propensity": "float",
}


def make_plans(sources: Sequence[Source]) -> tuple[tuple[Plan, ...], Schema, tuple[str, ...]]:
    """The plans of all sources, the common schema, and notes for the user."""
    notes: list[str] = []
    drafts = []
    for source in sources:
        found, said = assign(source.names, source.name, source.columns, source.done)
        notes += said
        _require(found, source)
        drafts.append(Draft(source, found))
    for draft in drafts:
        _lay_out(draft)
        _agree(drafts[0], draft)
    types = _id_types(drafts)
    plans = tuple(_plan(draft, index, types) for index, draft in enumerate(drafts))
    for plan, draft in zip(plans, drafts, strict=True):
        notes += notes_of(plan, draft)
    return plans, schema_of(plans, drafts, types), tuple(dict.fromkeys(notes))


def _require(found: Mapping[str, Assignment], source: Source) -> None:
    for notion in ("observation", "action", "reward"):
        if notion not in found:
            raise missing(notion, source.names, source.name, problem=f"The log has no column for the {notion}")


def _lay_out(draft: Draft) -> None:
    draft.observation = expand(draft.found["observation"], "observation", draft.source)
    draft.observation_kind = observation_kind(draft.observation, draft.source)
    draft.action = expand(draft.found["action"], "action", draft.source)
    kinds = [settle(fields_in([draft.source], part.raw, part.item), part.raw) for part in draft.action]
    if "float" in kinds:
        draft.action_kind = "continuous"
    elif len(draft.action) > 1:
        raise DataError(
            "A discrete action is one column",
            where=draft.source.name,
            column=", ".join(dict.fromkeys(part.raw for part in draft.action)),
            hint="combine the columns into one id, for example a string",
        )


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
                hint="read logs of the same problem together, or map the columns: columns={…}",
            )


def _shape(draft: Draft, notion: str) -> str:
    kind = draft.observation_kind if notion == "observation" else draft.action_kind
    parts = draft.observation if notion == "observation" else draft.action
    return f"{kind} " + ", ".join(sorted(part.name(notion, kind) for part in parts))


def _id_types(drafts: Sequence[Draft]) -> dict[str, Type]:
    """The type of every observation, action and episode column, over all sources."""
    types: dict[str, Type] = dict(FIXED)
    for notion in ("observation", "action"):
        kind = drafts[0].observation_kind if notion == "observation" else drafts[0].action_kind
        for name in (part.name(notion, kind) for part in getattr(drafts[0], notion)):
            entries = [
                entry
                for draft in drafts
                for part in getattr(draft, notion)
                if part.name(notion, kind) == name
                for entry in fields_in([draft.source], part.raw, part.item)
            ]
            settled = settle(entries, name)
            types[name] = "float" if kind in {"vector", "continuous"} else settled
    given = [(d.source, d.found["episode_id"].columns[None]) for d in drafts if "episode_id" in d.found]
    entries = [entry for source, raw in given for entry in fields_in([source], raw)]
    settled = settle(entries, "episode_id") if entries else "int"
    types["episode_id"] = "int" if settled == "float" else settled
    return types


def _plan(draft: Draft, index: int, types: Mapping[str, Type]) -> Plan:
    found, source, kind = draft.found, draft.source, draft.observation_kind
    columns: dict[str, Column] = {}

    def add(name: str, type_: Type, raw: str | None, item: int | None = None) -> None:
        if raw is not None:
            check(source, raw, item, type_, name)
        columns[name] = Column(name, type_, raw, item)

    for notion in ("policy_id", "episode_id", "step", "reward", "terminated", "truncated"):
        add(notion, types[notion], found[notion].columns[None] if notion in found else None)
    logp = "action_prob" not in found and "action_logp" in found
    chosen = found.get("action_logp" if logp else "action_prob")
    add("propensity", "float", chosen.columns[None] if chosen else None)
    for part in draft.action:
        name = part.name("action", draft.action_kind)
        add(name, types[name], part.raw, part.item)
    now = tuple(part.name("observation", kind) for part in draft.observation)
    for name, part in zip(now, draft.observation, strict=True):
        add(name, types[name], part.raw, part.item)
    if "next_observation" in found:
        after = expand(found["next_observation"], "next_observation", source, width=len(now))
        check_factors(draft.observation, after, kind, source)
        for part in after:
            name = part.name("next_observation", kind)
            add(name, types[name.removeprefix("next_")], part.raw, part.item)
    derived = frozenset({"episode_id", "step", "next_observation"} - set(found))
    following = tuple(f"next_{name}" for name in now)
    action = tuple(part.name("action", draft.action_kind) for part in draft.action)
    return Plan(source, index, columns, now, following, action, derived, logp)
