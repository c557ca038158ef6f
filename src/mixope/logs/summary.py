"""What planning came to, in words: the schema of the logs, and notes on what was assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mixope.logs.draft import Draft, Plan
from mixope.logs.schema import Schema, Type


def schema_of(plans: Sequence[Plan], drafts: Sequence[Draft], types: Mapping[str, Type]) -> Schema:
    """The schema that all sources share; the mapping is that of the first."""
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


def _mapping(draft: Draft) -> dict[str, str | tuple[str, ...]]:
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


def notes_of(plan: Plan, draft: Draft) -> list[str]:
    """What was assumed of one source, in sentences."""
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
