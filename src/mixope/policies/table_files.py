"""Sources with columns as policies: files by extension, data frames, dicts of columns, and rules ``{state: action}``.

Files are those that logs can be (:mod:`mixope.logs.sources`). A table without a column prob is a rule: one row for each
state, with the action that is taken there.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.errors import Advice, DataError, MixopeWarning, Setting, UsageError
from mixope.base.files import has_text_name
from mixope.policies.archives import ARCHIVES
from mixope.policies.keys import listed
from mixope.policies.laws import Default, UnknownActions
from mixope.policies.pickles import PICKLED
from mixope.policies.table_roles import Names, Renaming, Roles, assign_roles
from mixope.policies.tables import (
    NamedColumns,
    column_keys,
    from_arrow,
    from_file,
    from_mapping,
    read_listing,
    to_policy,
)
from mixope.policies.tabular import TabularPolicy

if TYPE_CHECKING:
    from mixope.logs import Logs

FORMATS: Mapping[str, str] = {
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
    **dict.fromkeys((".tsv", ".tsv.gz"), "tsv"),
    ".parquet": "parquet",
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
    ".pq": "parquet",
    ".ipc": "arrow",
    **dict.fromkeys((".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), "jsonl"),
}
"""Endings of file names → formats of logs that hold a table."""
NETWORKS = (".onnx",)


def read_policies(
    source: Any,
    *,
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    columns: Renaming | None = None,
    actions: Any = None,
    logs: Logs | None = None,
) -> dict[str, TabularPolicy]:
    """Several policies from one table with a column ``policy_id``, by its values as strings, in order of appearance.

    All get the same set of actions, those listed anywhere in the table, so that they can be mixed. States and actions
    may be called as in the ``logs``.
    """
    names = Names.of(columns, logs)
    table = as_table(source)
    if table is None:
        raise UsageError(f"several policies are read from a table, got {type(source).__name__}")
    roles = assign_roles(table.names, names, table.where)
    if roles.policy_id is None:
        raise DataError(
            "the table has no column policy_id",
            where=table.where,
            got="columns " + ", ".join(table.names),
            hint=Advice(Setting("one_policy")),
        )
    _note_rule(roles, table.where)
    listing = read_listing(table, roles)
    labels = column_keys(table, roles.policy_id, "policy ids").array()
    called, first = np.unique(labels, return_index=True)
    every = np.unique(listing.actions.array()) if actions is None else actions
    return {
        str(called[k]): to_policy(listing.part(np.flatnonzero(labels == called[k])), default, unknown_actions, every)
        for k in np.argsort(first)
    }


def single_policy(
    table: NamedColumns,
    names: Names,
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    actions: Any = None,
    epsilon: float | None = None,
) -> TabularPolicy:
    """The one policy of a table; ``epsilon`` is only looked at: what a rule never takes must then be named."""
    roles = assign_roles(table.names, names, table.where)
    if roles.policy_id is not None:
        labels = np.unique(column_keys(table, roles.policy_id, "policy ids").array())
        if len(labels) > 1:
            raise DataError(
                f"the table holds {len(labels)} policies",
                where=table.where,
                column=roles.policy_id,
                expected="one policy",
                got=listed(labels),
                hint=Advice(Setting("several_policies")),
            )
    if roles.prob is None:
        check_all_actions(actions, epsilon)
    policy = to_policy(read_listing(table, roles), default, unknown_actions, actions)
    _note_rule(roles, table.where)
    return policy


def is_rule(source: Any) -> bool:
    """Whether a dict maps states to actions, or to laws ``{action: probability}``, rather than names to columns."""
    if not isinstance(source, Mapping) or not source:
        return False
    values = source.values()
    return all(isinstance(value, Mapping) for value in values) or all(map(_is_single, values))


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float | np.generic) or (hasattr(value, "ndim") and value.ndim == 0)


def rule_policy(
    rule: Mapping[Any, Any],
    default: Default = None,
    unknown_actions: UnknownActions = "error",
    actions: Any = None,
    epsilon: float | None = None,
) -> TabularPolicy:
    """The policy of a dict; a state is an id, or the tuple of its factors in the order of the logs."""
    if isinstance(next(iter(rule.values())), Mapping):
        triples = [(state, action, p) for state, law in rule.items() for action, p in law.items()]
        states, taken, probs = zip(*triples, strict=True) if triples else ((), (), ())
        columns = {"observation": _keyed(states), "action": list(taken), "prob": list(probs)}
        return single_policy(from_mapping(columns, "the rule"), Names(), default, unknown_actions, actions)
    check_all_actions(actions, epsilon)
    unknown: UnknownActions = "zero" if actions is None else unknown_actions
    options: dict[str, Any] = {"default": default, "unknown_actions": unknown}
    return TabularPolicy.deterministic(list(rule.values()), _keyed(rule), actions, **options)


def _keyed(states: Any) -> Any:
    """States that are tuples as rows of factors, which may mix integers and strings."""
    states = list(states)
    if not any(isinstance(state, tuple) for state in states):
        return states
    if len({len(state) if isinstance(state, tuple) else 0 for state in states}) > 1:
        raise DataError(
            "the states of the rule have different numbers of factors",
            expected="tuples of one length",
            got=listed(states),
        )
    return np.array(states, dtype=object)


def check_all_actions(actions: Any, epsilon: float | None) -> None:
    """A rule lists what it takes; what it never takes must be named before anything is spread over all actions."""
    if epsilon is not None and actions is None:
        asked = "epsilon is spread over all actions, and a rule lists only those that it takes; "
        raise UsageError(Advice(asked, Setting("actions")))


def _note_rule(roles: Roles, where: str) -> None:
    if roles.prob is None:
        note = f"{where} has no column prob: it is read as a rule, the action that is always taken in each state"
        warnings.warn(MixopeWarning(note), stacklevel=4)


def as_table(source: Any) -> NamedColumns | None:
    """Columns, if the source has any."""
    if isinstance(source, Mapping):
        return from_mapping(source)
    if hasattr(source, "__arrow_c_stream__"):
        return from_arrow(source, type(source).__name__)
    if isinstance(source, str | os.PathLike):
        return _read_file(existing(Path(source)))
    return None


def _read_file(path: Path) -> NamedColumns:
    known = extension(path)
    if path.suffix == ".py":
        raise UsageError(f"{path} is code, not a table; name the function in it: {path.stem}:NAME")
    if known not in FORMATS:
        raise UsageError(
            f"cannot read a policy table from {str(path)!r}: expected one of {', '.join(FORMATS)}; "
            f"an array (S, A) from {', '.join(ARCHIVES)}; a network from {', '.join(NETWORKS)}; "
            f"with trust a model from {', '.join(PICKLED)}; or a callable as module:name"
        )
    return from_file(path, FORMATS[known])


def extension(path: Path) -> str:
    """The known extension of a path, or nothing."""
    name = path.name.lower()
    known = [ending for ending in (*FORMATS, *ARCHIVES, *NETWORKS, *PICKLED) if name.endswith(ending)]
    return max(known, key=len, default="")


def existing(path: Path) -> Path:
    """The path of a file that is there."""
    if os.path.isfile(path):
        if not has_text_name(path):
            raise DataError("the name of the policy's file is not UTF-8", where=str(path), hint="rename the file")
        return path
    if os.path.isdir(path):
        raise DataError("the policy is a folder, not a file", where=str(path), hint="name one file in it")
    if os.path.exists(path):
        raise DataError("the policy is a pipe or a device, not a file", where=str(path), hint="write it to a file")
    beside = sorted(os.listdir(path.parent)) if os.path.isdir(path.parent) else []
    near = difflib.get_close_matches(path.name, beside, n=3, cutoff=0.5)
    raise DataError(
        "there is no such policy file",
        where=str(path),
        hint="did you mean " + " or ".join(str(path.parent / name) for name in near) + "?" if near else None,
    )
