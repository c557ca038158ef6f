"""Policies as the user gave them, made to fit the logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixope.errors import UsageError
from mixope.logs import Logs
from mixope.policies import Policy, read_policy


def resolve_policy(policy: Any, logs: Logs) -> Policy:
    """Any policy source; factor columns in the order of the logs."""
    found = read_policy(policy)
    names = tuple(column.partition(".")[2] for column in logs.schema.observation)
    if logs.schema.observation_kind == "factors" and getattr(found, "factors", None):
        ordered: Policy = found.in_factor_order(names)  # type: ignore[attr-defined]
        return ordered
    return found


def check_labels(known: Mapping[str, Policy], labels: Sequence[str]) -> None:
    """A policy for a logger that wrote no row is a misspelt label."""
    strangers = [label for label in known if label not in labels]
    if strangers:
        raise UsageError(f"no rows belong to logger {strangers[0]!r}; the logs know {', '.join(map(repr, labels))}")


def check_level(level: float) -> None:
    """0.95, never 95 or 0.05."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")
