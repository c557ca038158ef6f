"""How each source becomes canonical rows: which raw column, which element of it, and to which type.

A plan is decided once, from names and types alone, and then carried out twice, by ``sql`` and by ``derive``.
All sources must agree on the kind of observations and actions and on the type of every id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mixope.errors import DataError
from mixope.logs.acceptance import check, fields_in
from mixope.logs.layout import Part, check_factors, expand, observation_kind, settle
from mixope.logs.mapping import Assignment, assign, missing
from mixope.logs.schema import ActionKind, ObservationKind, Schema, Type
from mixope.logs.sources import Source

FIXED: dict[str, Type] = {
    "policy_id": "string",
    "step": "int",
    "reward": "float",
    "terminated": "bool",
    "truncated": "bool",
    "propensity": "float",
}


@dataclass(frozen=True)
class Column:
    """One canonical column of one source: a raw column (None: absent), perhaps one element of its lists, and a type."""

    name: str
    type: Type
    raw: str | None
    item: int | None = None


@dataclass(frozen=True)
class Plan:
    """How one source becomes canonical rows. ``derived`` are the notions computed from other rows."""

    source: Source
    index: int
    columns: Mapping[str, Column]
    observation: tuple[str, ...]
    next_observation: tuple[str, ...]
    action: tuple[str, ...]
    derived: frozenset[str]
    log_propensity: bool


@dataclass
class _Draft:
    """One source while the plan is being made."""

    source: Source
    found: Mapping[str, Assignment]
    observation: list[Part] = field(default_factory=list)
    action: list[Part] = field(default_factory=list)
    observation_kind: ObservationKind = "id"
    action_kind: ActionKind = "discrete"


def make_plans(sources: Sequence[Source]) -> tuple[tuple[Plan, ...], Schema, tuple[str, ...]]:
    """The plans of all sources, the common schema, and notes for the user."""
    notes: list[str] = []
    drafts = []
    for source in sources:
        found, said = assign(source.names, source.name, source.columns, source.done)
        notes += said
        _require(found, source)
        drafts.append(_Draft(source, found))
    for draft in drafts:
        _lay_out(draft)
        _agree(drafts[0], draft)
    types = _id_types(drafts)
    plans = tuple(_plan(draft, index, types) for index, draft in enumerate(drafts))
    for plan, draft in zip(plans, drafts, strict=True):
        notes += _notes(plan, draft)
    return plans, _schema(plans, drafts, types), tuple(dict.fromkeys(notes))


def _require(found: Mapping[str, Assignment], source: Source) -> None:
    for notion in ("observation", "action", "reward"):
        if notion not in found:
            raise missing(notion, source.names, source.name, problem=f"The log has no column for the {notion}")


def _lay_out(draft: _Draft) -> None:
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


def _agree(first: _Draft, other: _Draft) -> None:
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


def _shape(draft: _Draft, notion: str) -> str:
    kind = draft.observation_kind if notion == "observation" else draft.action_kind
    parts = draft.observation if notion == "observation" else draft.action
    return f"{kind} " + ", ".join(sorted(part.name(notion, kind) for part in parts))


def _id_types(drafts: Sequence[_Draft]) -> dict[str, Type]:
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


def _plan(draft: _Draft, index: int, types: Mapping[str, Type]) -> Plan:
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


def _schema(plans: Sequence[Plan], drafts: Sequence[_Draft], types: Mapping[str, Type]) -> Schema:
    first, draft = plans[0], drafts[0]
    every = (
        dict(types) | {f"next_{name}": types[name] for name in first.observation} | {"start": "bool", "source": "int"}
    )
    labelled = any("policy_id" in d.found or d.source.label is not None for d in drafts)
    return Schema(
        observation=first.observation,
        next_observation=first.next_observation,
        observation_kind=draft.observation_kind,
        action=first.action,
        action_kind=draft.action_kind,
        has_propensity=any(plan.columns["propensity"].raw is not None for plan in plans),
        has_policy_id=labelled,
        types=every,
        mapping=_mapping(draft),
    )


def _mapping(draft: _Draft) -> dict[str, str | tuple[str, ...]]:
    ends = "terminated" in draft.found or "truncated" in draft.found
    absent = {
        "episode_id": "derived: cut at terminated or truncated rows" if ends else "derived: one episode",
        "step": "derived: row order",
        "next_observation": "derived: next row",
        "terminated": "absent: false",
        "truncated": "absent: false",
        "policy_id": f"label: {draft.source.label}" if draft.source.label else "absent: one unlabelled pool",
        "action_prob": "absent: unknown",
    }
    if "action_logp" in draft.found and "action_prob" not in draft.found:
        del absent["action_prob"]
    return absent | {notion: assignment.words() for notion, assignment in draft.found.items()}


def _notes(plan: Plan, draft: _Draft) -> list[str]:
    name, found, notes = plan.source.name, draft.found, []
    if "step" in plan.derived:
        notes.append(f"{name}: no step column; steps are taken from the row order within each episode")
    if "episode_id" in plan.derived:
        ends = "terminated" in found or "truncated" in found
        how = (
            "episodes are cut after each terminated or truncated row"
            if ends
            else "all its rows are taken as one episode"
        )
        notes.append(f"{name}: no episode_id column; {how}")
    if plan.source.label is not None and "policy_id" in found:
        notes.append(f"{name}: has its own policy_id column; the label {plan.source.label!r} fills its nulls only")
    if "action_prob" in found and "action_logp" in found:
        notes.append(f"{name}: has both action_prob and action_logp; action_prob is used")
    if draft.observation_kind == "vector" and draft.observation[0].suffix is None:
        notes.append(f"{name}: observation is one column of floats, taken as a number; if they are ids, store integers")
    return notes
